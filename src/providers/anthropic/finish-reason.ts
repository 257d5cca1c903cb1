import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { usageChunk } from "../../core/chunks.ts";
import { type Json, object, string } from "../wire/json.ts";
import type { AnswerContent } from "./answer-content.ts";
import type { UsageCount } from "./usage.ts";

const REASONS: Readonly<Record<string, FinishReason | undefined>> = {
  max_tokens: FinishReason.LENGTH,
  model_context_window_exceeded: FinishReason.LENGTH,
  refusal: FinishReason.CONTENT_FILTER,
  pause_turn: FinishReason.PAUSE,
};

/** Stop reasons of an ordinary end. */
const STOPS: ReadonlySet<string> = new Set(["end_turn", "stop_sequence", "tool_use"]);

/** The finish fields that a whole answer and the last event of a stream share. */
export interface Finish {
  /** The provider's stop reason; not empty. */
  readonly stopReason: string;
  /** The stop sequence that was met; empty for another end. */
  readonly stopSequence: string;
  readonly stopDetails: Json;
}

/** Reads the finish; undefined if there is none yet. */
export function readFinish(message: Json): Finish | undefined {
  const stopReason = string(message["stop_reason"]);
  if (stopReason === "") return undefined;
  return { stopReason, stopSequence: string(message["stop_sequence"]), stopDetails: object(message["stop_details"]) };
}

/**
 * Appends the end of the answer: open blocks, the explanation of a refusal, the finish, the usage. An empty answer is
 * valid: after a tool result a model may have nothing to add.
 */
export function writeFinish(
  { stopReason, stopSequence, stopDetails }: Finish,
  {
    content,
    usage,
    details,
  }: {
    readonly content: AnswerContent;
    readonly usage: UsageCount;
    /** `Choice.provider_details_json`. */
    readonly details: Record<string, string>;
  },
  out: CompletionChunk[],
): void {
  const refusal = stopReason === "refusal" ? string(stopDetails["explanation"]) : "";
  const reason = toFinishReason(stopReason, content);
  content.finish({ reason, native: stopReason, stopSequence, details, refusal }, out);
  const counted = usage.total();
  if (counted !== undefined) out.push(usageChunk(counted));
}

/** TOOL_CALLS if the answer has calls and was not cut short, independent of the provider's stop reason. */
function toFinishReason(stopReason: string, { calls }: AnswerContent): FinishReason {
  const cut = Object.hasOwn(REASONS, stopReason) ? REASONS[stopReason] : undefined;
  if (cut !== undefined) return cut;
  if (calls > 0) return FinishReason.TOOL_CALLS;
  return STOPS.has(stopReason) ? FinishReason.STOP : FinishReason.OTHER;
}
