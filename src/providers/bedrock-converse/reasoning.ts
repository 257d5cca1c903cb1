import {
  clampEffort,
  type Effort,
  effortDistance,
  EFFORTS,
  omitReasoning,
  readReasoning,
  type RequestedReasoning,
} from "../wire/reasoning.ts";
import type { TranslationContext } from "./cache-marks.ts";
import type { ModelFields } from "./wire.ts";

/** The reasoning fields of a request. */
export interface ReasoningRequest {
  /** Fields that Converse passes to the model. */
  readonly fields: Pick<ModelFields, "thinking" | "reasoning_effort">;
  /** `outputConfig.effort`. */
  readonly effort?: string | undefined;
  /** Whether the model thinks in blocks that restrict its sampling. */
  readonly thinks: boolean;
}

/** Facts beside the request that determine the reasoning parameters. */
export interface ReasoningSituation {
  readonly maxTokens: number;
  /** Whether the provider refuses thinking by budget: a tool is forced, or the running tool loop lacks its thinking. */
  readonly manualRefused: boolean;
}

/** Budget of an effort as a share of the answer's tokens, for models with budgets. */
const SHARES: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};

const UNCHANGED: ReasoningRequest = { fields: {}, thinks: false };
const OFF: ReasoningRequest = { fields: { thinking: { type: "disabled" } }, thinks: false };

/**
 * Maps the effort, or the tokens for reasoning, by the kind of control that the model has: `budget` and `adaptive` are fields of
 * Claude (`thinking`, `outputConfig.effort`), `level` is `reasoning_effort`, such as of gpt-oss.
 */
export function toReasoning(context: TranslationContext, situation: ReasoningSituation): ReasoningRequest {
  const { reasoning, reasoningByDefault } = context.model.capabilities;
  const asked = readReasoning(context.request);
  switch (reasoning) {
    case "budget":
      return toBudget(context, asked, situation);
    case "adaptive":
      return toAdaptive(context, asked);
    case "level": {
      const effort = toEffort(context, asked);
      return { fields: { reasoning_effort: effort }, thinks: false };
    }
    case "none":
      if (asked.effort !== "none" || reasoningByDefault) omitReasoning(asked, context.log);
      return UNCHANGED;
  }
}

function toBudget(
  { model: { capabilities }, log }: TranslationContext,
  asked: RequestedReasoning,
  { maxTokens, manualRefused }: ReasoningSituation,
): ReasoningRequest {
  const { effort, maxTokens: budget } = asked;
  const off = capabilities.reasoningCanBeDisabled ? OFF : UNCHANGED;
  if (effort === "none" && budget === undefined) {
    log.omitWhen(!capabilities.reasoningCanBeDisabled && capabilities.reasoningByDefault, "reasoning.effort");
    return capabilities.reasoningByDefault ? off : UNCHANGED;
  }
  if (effort === undefined && budget === undefined) return UNCHANGED;
  const [min, limit] = capabilities.reasoningBudget;
  const max = Math.min(limit, maxTokens - 1);
  if (manualRefused || max < min) {
    omitReasoning(asked, log);
    return manualRefused && capabilities.reasoningByDefault ? off : UNCHANGED;
  }
  const budget_tokens =
    budget === undefined
      ? Math.min(Math.max(Math.floor(SHARES[effort!] * maxTokens), min), max)
      : log.clampToRange("reasoning.max_tokens", budget, [min, max]);
  return { fields: { thinking: { type: "enabled", budget_tokens } }, thinks: true };
}

function toAdaptive(context: TranslationContext, asked: RequestedReasoning): ReasoningRequest {
  const { reasoningByDefault, reasoningCanBeDisabled } = context.model.capabilities;
  if (asked.effort === undefined) {
    omitReasoning(asked, context.log);
    return { fields: {}, thinks: reasoningByDefault };
  }
  if (asked.effort === "none" && (reasoningCanBeDisabled || !reasoningByDefault))
    return reasoningByDefault ? OFF : UNCHANGED;
  const effort = toEffort(context, asked);
  return { fields: { thinking: { type: "adaptive" } }, effort, thinks: true };
}

/** The model's effort nearest to the requested one, of two equally near ones the higher; undefined for none. */
function toEffort({ model, log }: TranslationContext, asked: RequestedReasoning): Effort | undefined {
  const { effort: wanted } = asked;
  if (wanted === undefined) {
    omitReasoning(asked, log);
    return undefined;
  }
  const known = EFFORTS.filter((effort) => model.capabilities.reasoningEfforts.includes(effort));
  const [nearest] = known.toReversed().toSorted((a, b) => effortDistance(a, wanted) - effortDistance(b, wanted));
  if (nearest === undefined) omitReasoning(asked, log);
  return nearest && clampEffort(wanted, nearest, log);
}
