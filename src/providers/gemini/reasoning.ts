import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities, UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { ThinkingConfig } from "./wire.ts";

/** Efforts from none to most, in the words of `Capabilities.reasoningEfforts`. */
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

type Effort = (typeof EFFORTS)[number];

/** Thinking tokens by effort; clamped to the model's range. */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: Number.MAX_SAFE_INTEGER,
  max: Number.MAX_SAFE_INTEGER,
};

/** Thinking counts against the token limit: a smaller limit than this would often be used up before the answer. */
const SMALL_LIMIT_TOKENS = 2048;

/**
 * Converts the reasoning effort. Without one the model's default applies, unless the token limit is so small that thinking
 * would use it up: then the lowest effort is requested.
 */
export function toReasoning(
  request: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): ThinkingConfig | undefined {
  const asked = EFFORTS[request.reasoningEffort - 1];
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

/** The nearest level, the higher of two equally near; undefined for a model without levels. */
function nearestLevel(effort: Effort, levels: readonly string[]): string | undefined {
  const wanted = EFFORTS.indexOf(effort);
  const distance = (level: string): number => Math.abs(EFFORTS.indexOf(level as Effort) - wanted);
  let best: string | undefined;
  for (const level of levels) if (best === undefined || distance(level) <= distance(best)) best = level;
  return best;
}
