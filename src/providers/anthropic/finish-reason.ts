import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk, finishChunk, usageChunk } from "../../core/chunks.ts";
import { type Json, object, string } from "../wire/json.ts";
import type { AnswerContent } from "./answer-content.ts";
import type { UsageCount } from "./usage.ts";

const REASONS: Readonly<Record<string, FinishReason | undefined>> = {
  max_tokens: FinishReason.LENGTH,
  model_context_window_exceeded: FinishReason.LENGTH,
  refusal: FinishReason.CONTENT_FILTER,
};

/** The finish fields that a whole answer and the last event of a stream share. */
export interface Finish {
  /** The provider's stop reason; not empty. */
  readonly stopReason: string;
  readonly stopDetails: Json;
}

/** Reads the finish; undefined if there is none yet. */
export function readFinish(message: Json): Finish | undefined {
  const stopReason = string(message["stop_reason"]);
  return stopReason === "" ? undefined : { stopReason, stopDetails: object(message["stop_details"]) };
}

/**
 * Appends the end of the answer: open blocks, the explanation of a refusal, the finish, the usage. An empty answer is
 * valid: after a tool result a model may have nothing to add.
 */
export function writeFinish(
  { stopReason, stopDetails }: Finish,
  { content, usage }: { readonly content: AnswerContent; readonly usage: UsageCount },
  out: CompletionChunk[],
): void {
  content.closeAll(out);
  const explanation = stopReason === "refusal" ? string(stopDetails["explanation"]) : "";
  if (explanation !== "") out.push(deltaChunk(0, { case: "refusal", value: explanation }));
  out.push(finishChunk(0, toFinishReason(stopReason, content), stopReason));
  const counted = usage.total();
  if (counted !== undefined) out.push(usageChunk(counted));
}

/** TOOL_CALLS if the answer has calls and was not cut short, whatever stop reason the provider sent. */
function toFinishReason(stopReason: string, { calls }: AnswerContent): FinishReason {
  const cut = Object.hasOwn(REASONS, stopReason) ? REASONS[stopReason] : undefined;
  return cut ?? (calls > 0 ? FinishReason.TOOL_CALLS : FinishReason.STOP);
}
