import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { brokenCall, noOutput } from "../wire/response-failure.ts";

const REASONS: Readonly<Record<string, FinishReason | undefined>> = {
  max_tokens: FinishReason.LENGTH,
  model_context_window_exceeded: FinishReason.LENGTH,
  guardrail_intervened: FinishReason.CONTENT_FILTER,
  content_filtered: FinishReason.CONTENT_FILTER,
  refusal: FinishReason.CONTENT_FILTER,
};

/** Stop reasons of an ordinary end. */
const STOPS: ReadonlySet<string> = new Set(["end_turn", "stop_sequence", "tool_use"]);

/**
 * TOOL_CALLS if the answer has calls and was not cut short, independent of the provider's stop reason. Throws for output that the
 * provider could not parse.
 */
export function toFinishReason(stopReason: string, { calls }: { readonly calls: number }): FinishReason {
  if (stopReason === "malformed_tool_use") throw brokenCall();
  if (stopReason === "malformed_model_output") throw noOutput();
  const cut = Object.hasOwn(REASONS, stopReason) ? REASONS[stopReason] : undefined;
  if (cut !== undefined) return cut;
  if (calls > 0) return FinishReason.TOOL_CALLS;
  return STOPS.has(stopReason) ? FinishReason.STOP : FinishReason.OTHER;
}
