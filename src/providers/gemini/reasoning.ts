import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities, UpstreamModel } from "../../core/provider.ts";
import { clampEffort, type Effort, effortDistance, EFFORTS, omitReasoning, readReasoning } from "../wire/reasoning.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { ThinkingConfig } from "./wire.ts";

/** Thinking tokens by effort, clamped to the model's range. */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: Number.MAX_SAFE_INTEGER,
  max: Number.MAX_SAFE_INTEGER,
};

/**
 * Thinking counts against the token limit. Below this limit thinking would often use up all tokens before the answer.
 */
const SMALL_LIMIT_TOKENS = 2048;

/**
 * Converts the reasoning effort, or the token budget for reasoning, which is preferred for a model with budgets. Without either, the
 * model's default applies; with a token limit below SMALL_LIMIT_TOKENS, the lowest effort is requested instead. A requested effort that
 * the model does not have is logged as clamped to the nearest one.
 */
export function toReasoning(
  request: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): ThinkingConfig | undefined {
  const requested = readReasoning(request);
  const { effort: asked, maxTokens } = requested;
  if (maxTokens !== undefined && capabilities.reasoning === "budget") {
    const thinkingBudget = log.clampToRange("reasoning.max_tokens", maxTokens, capabilities.reasoningBudget);
    return { thinkingBudget, includeThoughts: true };
  }
  if (capabilities.reasoning === "none") {
    if (asked !== "none") omitReasoning(requested, log);
    return undefined;
  }
  if (asked === undefined) omitReasoning(requested, log);
  const small = request.maxOutputTokens !== undefined && request.maxOutputTokens < SMALL_LIMIT_TOKENS;
  const effort = asked ?? (small && capabilities.reasoningByDefault ? "none" : undefined);
  if (effort === undefined) return undefined;
  const shown = effort === "none" ? {} : ({ includeThoughts: true } as const);
  const unstoppable = asked === "none" && !capabilities.reasoningCanBeDisabled;
  if (capabilities.reasoning === "budget") {
    log.omitWhen(unstoppable, "reasoning.effort");
    return { thinkingBudget: toBudget(effort, capabilities), ...shown };
  }
  // A model that cannot disable thinking gets its lowest level.
  const level = nearestLevel(effort, capabilities.reasoningEfforts);
  if (level === undefined) {
    if (unstoppable || (asked !== undefined && asked !== "none")) omitReasoning(requested, log);
    return undefined;
  }
  if (asked !== undefined) clampEffort(asked, level, log);
  return { thinkingLevel: level.toUpperCase(), ...shown };
}

function toBudget(effort: Effort, { reasoningCanBeDisabled, reasoningBudget: [min, max] }: Capabilities): number {
  if (effort === "none" && reasoningCanBeDisabled) return 0;
  return Math.min(Math.max(BUDGETS[effort], min), max);
}

/** Returns the nearest level, and the higher one of two equally near. Undefined for a model without levels. */
function nearestLevel(effort: Effort, levels: readonly string[]): Effort | undefined {
  let best: Effort | undefined;
  for (const level of EFFORTS) {
    if (!levels.includes(level)) continue;
    if (best === undefined || effortDistance(level, effort) <= effortDistance(best, effort)) best = level;
  }
  return best;
}
