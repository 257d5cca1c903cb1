import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities, UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { ThinkingConfig } from "./wire.ts";

/** Efforts in ascending order, in the words of `Capabilities.reasoningEfforts`. */
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

type Effort = (typeof EFFORTS)[number];

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
 * Converts the reasoning effort, or the token budget for reasoning. Without either the model's default applies. With a
 * token limit below SMALL_LIMIT_TOKENS the lowest effort is requested instead.
 */
export function toReasoning(
  request: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): ThinkingConfig | undefined {
  const asked = EFFORTS[request.reasoningEffort - 1];
  const { reasoningMaxTokens } = request;
  if (reasoningMaxTokens !== undefined && capabilities.reasoning === "budget") {
    const thinkingBudget = log.clamp("reasoning_max_tokens", reasoningMaxTokens, capabilities.reasoningBudget);
    return { thinkingBudget, includeThoughts: true };
  }
  log.omitWhen(reasoningMaxTokens !== undefined, "reasoning_max_tokens");
  if (capabilities.reasoning === "none") {
    log.omitWhen(asked !== undefined && asked !== "none", "reasoning_effort");
    return undefined;
  }
  const small = request.maxTokens !== undefined && request.maxTokens < SMALL_LIMIT_TOKENS;
  const effort = asked ?? (small && capabilities.reasoningByDefault ? "none" : undefined);
  if (effort === undefined) return undefined;
  // A model that cannot disable thinking gets its lowest effort.
  log.omitWhen(asked === "none" && !capabilities.reasoningCanBeDisabled, "reasoning_effort");
  const shown = effort === "none" ? {} : ({ includeThoughts: true } as const);
  if (capabilities.reasoning === "budget") return { thinkingBudget: toBudget(effort, capabilities), ...shown };
  const level = nearestLevel(effort, capabilities.reasoningEfforts);
  log.omitWhen(asked !== undefined && asked !== "none" && level === undefined, "reasoning_effort");
  return level === undefined ? undefined : { thinkingLevel: level.toUpperCase(), ...shown };
}

function toBudget(effort: Effort, { reasoningCanBeDisabled, reasoningBudget: [min, max] }: Capabilities): number {
  if (effort === "none" && reasoningCanBeDisabled) return 0;
  return Math.min(Math.max(BUDGETS[effort], min), max);
}

/** Returns the nearest level, and the higher one of two equally near. Undefined for a model without levels. */
function nearestLevel(effort: Effort, levels: readonly string[]): string | undefined {
  const wanted = EFFORTS.indexOf(effort);
  const distance = (level: string): number => Math.abs(EFFORTS.indexOf(level as Effort) - wanted);
  let best: string | undefined;
  for (const level of levels) if (best === undefined || distance(level) <= distance(best)) best = level;
  return best;
}
