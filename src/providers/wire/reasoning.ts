import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities } from "../../core/provider.ts";
import type { TranslationLog } from "./translation.ts";

/** All efforts, lowest first, named as in `Capabilities.reasoningEfforts`: the values of `ReasoningEffort` from 1 on. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

export type Effort = (typeof EFFORTS)[number];

/** The requested amount of reasoning: an effort, a token budget, or both. */
export interface RequestedReasoning {
  readonly effort: Effort | undefined;
  readonly maxTokens: number | undefined;
}

/** Reads `reasoning`. */
export function readReasoning({ reasoning }: CompletionRequest): RequestedReasoning {
  return { effort: EFFORTS[(reasoning?.effort ?? 0) - 1], maxTokens: reasoning?.maxTokens };
}

/** Logs all requested reasoning fields as omitted. If one of them is honoured, the other is not logged. */
export function omitReasoning({ effort, maxTokens }: RequestedReasoning, log: TranslationLog): void {
  log.omitWhen(effort !== undefined, "reasoning.effort");
  log.omitWhen(maxTokens !== undefined, "reasoning.max_tokens");
}

/** Returns `sent`, and logs it if it differs from the requested effort. */
export function clampEffort(requested: Effort, sent: Effort, log: TranslationLog): Effort {
  const inJson = (effort: Effort): string => `REASONING_EFFORT_${effort.toUpperCase()}`;
  log.clamp("reasoning.effort", inJson(requested), inJson(sent));
  return sent;
}

/** Distance of two efforts in levels. */
export function effortDistance(a: Effort, b: Effort): number {
  return Math.abs(EFFORTS.indexOf(a) - EFFORTS.indexOf(b));
}

/**
 * Returns the name of the nearest effort that the model supports, the lower of two equally near. Undefined: the model's default. A model
 * without a list of efforts gets the requested one.
 */
export function toEffort(request: CompletionRequest, model: Capabilities, log: TranslationLog): string | undefined {
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
