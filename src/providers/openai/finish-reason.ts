import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";

/** Finish reasons of this dialect. Any other one counts as STOP. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", FinishReason.STOP],
  ["length", FinishReason.LENGTH],
  ["max_tokens", FinishReason.LENGTH],
  ["model_length", FinishReason.LENGTH],
  ["tool_calls", FinishReason.TOOL_CALLS],
  ["function_call", FinishReason.TOOL_CALLS],
  ["content_filter", FinishReason.CONTENT_FILTER],
]);

/** Values of `finish_reason` for an incomplete answer. */
const BROKEN: ReadonlySet<string> = new Set(["error", "abort", "insufficient_system_resource"]);

/** Whether `word` means an incomplete answer. */
export function isBroken(word: string): boolean {
  return BROKEN.has(word);
}

/** Whether `word` is a known reason. */
export function isKnown(word: string): boolean {
  return REASONS.has(word);
}

/**
 * Maps a choice's finish reason. A choice with calls has TOOL_CALLS unless it was cut off or filtered; one without calls
 * never has it.
 */
export function toFinishReason(word: string, { called }: { readonly called: boolean }): FinishReason {
  const reason = REASONS.get(word) ?? FinishReason.STOP;
  if (reason === FinishReason.LENGTH || reason === FinishReason.CONTENT_FILTER) return reason;
  return called ? FinishReason.TOOL_CALLS : FinishReason.STOP;
}
