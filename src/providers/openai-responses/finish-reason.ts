import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Json, object, string } from "../wire/json.ts";

/** How an answer ended, in the provider's words: `status`, and why it is incomplete; empty without one. */
export interface Finish {
  readonly status: "completed" | "incomplete";
  readonly reason: string;
}

/** Why an answer is incomplete. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["max_output_tokens", FinishReason.LENGTH],
  ["content_filter", FinishReason.CONTENT_FILTER],
]);

/** Reads how a response ended; undefined for one that has not. */
export function readFinish({ status, incomplete_details: details }: Json): Finish | undefined {
  if (status !== "completed" && status !== "incomplete") return undefined;
  return { status, reason: status === "completed" ? "" : string(object(details)["reason"]) };
}

/** A complete answer with calls has TOOL_CALLS, and one without never has it. */
export function toFinishReason({ status, reason }: Finish, { called }: { readonly called: boolean }): FinishReason {
  if (status === "incomplete") return REASONS.get(reason) ?? FinishReason.OTHER;
  return called ? FinishReason.TOOL_CALLS : FinishReason.STOP;
}
