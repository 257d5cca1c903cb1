import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import type { Capabilities } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";

/** All efforts of this dialect, lowest first. */
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/**
 * Returns the nearest effort that the model supports, the lower of two equally near. Undefined: the model's default. A model
 * without a list of efforts gets the requested one.
 */
export function toReasoning(
  { reasoningEffort, reasoningMaxTokens }: CompletionRequest,
  model: Capabilities,
  log: TranslationLog,
): string | undefined {
  log.omitWhen(reasoningMaxTokens !== undefined, "reasoning_max_tokens");
  const wanted = reasoningEffort - ReasoningEffort.NONE;
  const word = EFFORTS[wanted];
  if (word === undefined) return undefined;
  if (model.reasoning === "none") {
    log.omitWhen(word !== "none", "reasoning_effort");
    return undefined;
  }
  if (word === "none" && model.reasoningCanBeDisabled) return "none";
  const known = EFFORTS.filter((candidate) => candidate !== "none" && model.reasoningEfforts.includes(candidate));
  if (word === "none") log.omit("reasoning_effort");
  if (known.length === 0) return word === "none" ? undefined : word;
  const distance = (candidate: (typeof EFFORTS)[number]): number => Math.abs(EFFORTS.indexOf(candidate) - wanted);
  return known.reduce((best, candidate) => (distance(candidate) < distance(best) ? candidate : best));
}
