import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities } from "../../core/provider.ts";
import { clampEffort, effortDistance, EFFORTS, omitReasoning, readReasoning } from "../wire/reasoning.ts";
import type { TranslationLog } from "../wire/translation.ts";

/**
 * Returns the nearest effort that the model supports, the lower of two equally near. Undefined: the model's default. A model
 * without a list of efforts gets the requested one.
 */
export function toReasoning(request: CompletionRequest, model: Capabilities, log: TranslationLog): string | undefined {
  const requested = readReasoning(request);
  const { effort } = requested;
  if (effort === undefined || (model.reasoning === "none" && effort !== "none")) {
    omitReasoning(requested, log);
    return undefined;
  }
  if (model.reasoning === "none") return undefined;
  if (effort === "none" && model.reasoningCanBeDisabled) return "none";
  const known = EFFORTS.filter((candidate) => candidate !== "none" && model.reasoningEfforts.includes(candidate));
  if (known.length > 0) {
    const nearest = known.reduce((best, candidate) =>
      effortDistance(candidate, effort) < effortDistance(best, effort) ? candidate : best,
    );
    return clampEffort(effort, nearest, log);
  }
  if (effort !== "none") return effort;
  omitReasoning(requested, log);
  return undefined;
}
