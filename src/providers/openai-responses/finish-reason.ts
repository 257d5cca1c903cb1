import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Json, object, string } from "../wire/json.ts";

/** The provider's `status` of an answer, and the reason why it is incomplete; empty without one. */
export interface Finish {
  readonly status: "completed" | "incomplete";
  readonly reason: string;
}

/** Finish reasons by the provider's reason of an incomplete answer. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["max_output_tokens", FinishReason.LENGTH],
  ["content_filter", FinishReason.CONTENT_FILTER],
]);

/** Reads the finish of a response; undefined if it has not ended. */
export function readFinish({ status, incomplete_details: details }: Json): Finish | undefined {
  if (status !== "completed" && status !== "incomplete") return undefined;
  return { status, reason: status === "completed" ? "" : string(object(details)["reason"]) };
}

/** TOOL_CALLS for a complete answer with calls, and never for an answer without calls. */
export function toFinishReason({ status, reason }: Finish, { called }: { readonly called: boolean }): FinishReason {
  if (status === "incomplete") return REASONS.get(reason) ?? FinishReason.OTHER;
  return called ? FinishReason.TOOL_CALLS : FinishReason.STOP;
}
