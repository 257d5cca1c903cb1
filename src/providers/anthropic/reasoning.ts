import {
  clampEffort,
  type Effort,
  effortDistance,
  omitReasoning,
  readReasoning,
  type RequestedReasoning,
} from "../wire/reasoning.ts";
import type { TranslationContext } from "./cache-marks.ts";
import type { Thinking } from "./wire.ts";

/** Smallest budget that the provider accepts, in tokens. A budget must also be below `max_tokens`. */
const MIN_BUDGET_TOKENS = 1024;

/**
 * Below this `max_tokens` a model that reasons by default would spend all tokens on reasoning. Applies to the caller's
 * limit only, never to our default.
 */
const SMALL_MAX_TOKENS = 1000;

/** The provider's efforts, lowest first. */
const EFFORTS = ["low", "medium", "high", "xhigh", "max"] as const;

/** The provider's effort, and the budget as a share of `max_tokens` for models with budgets. */
const LEVELS: Readonly<Record<Effort, { readonly effort: Effort; readonly share: number }>> = {
  // For models that cannot stop reasoning.
  none: { effort: "low", share: 0 },
  minimal: { effort: "low", share: 0.1 },
  low: { effort: "low", share: 0.2 },
  medium: { effort: "medium", share: 0.5 },
  high: { effort: "high", share: 0.8 },
  xhigh: { effort: "xhigh", share: 0.95 },
  max: { effort: "max", share: 0.95 },
};

/** The reasoning fields of a request. */
export interface ReasoningRequest {
  readonly thinking?: Thinking | undefined;
  readonly effort?: string | undefined;
}

/** Facts beside the request that determine the reasoning parameters. */
export interface ReasoningSituation {
  readonly maxTokens: number;
  /** Whether the provider refuses manual reasoning: a tool is forced, or the running tool loop lacks its reasoning. */
  readonly manualRefused: boolean;
  /** Whether the conversation contains reasoning of earlier answers. */
  readonly replayed: boolean;
}

/**
 * Maps the reasoning effort, or the tokens for reasoning, to the model's parameters. An effort that the model does not have is logged
 * as clamped to the nearest one; an effort without any counterpart is logged as omitted.
 */
export function toReasoning(context: TranslationContext, situation: ReasoningSituation): ReasoningRequest {
  const { reasoning } = context.model.capabilities;
  const requested = readReasoning(context.request);
  if (reasoning === "budget") return toBudget(context, requested, situation);
  if (reasoning !== "none") return toAdaptive(context, requested, situation);
  if (requested.effort !== "none") omitReasoning(requested, context.log);
  return {};
}

/** Whether the model reasons for this request. */
export function isReasoning({ thinking }: ReasoningRequest): boolean {
  return thinking !== undefined && thinking.type !== "disabled";
}

function toBudget(
  context: TranslationContext,
  requested: RequestedReasoning,
  { maxTokens, manualRefused, replayed }: ReasoningSituation,
): ReasoningRequest {
  const { reasoningByDefault, reasoningCanBeDisabled, reasoningBudget, preservedReasoning } =
    context.model.capabilities;
  const { effort, maxTokens: budget } = requested;
  const off: ReasoningRequest = reasoningCanBeDisabled ? { thinking: { type: "disabled" } } : {};
  if (effort === "none" && budget === undefined) {
    context.log.omitWhen(!reasoningCanBeDisabled && reasoningByDefault, "reasoning.effort");
    return off;
  }
  const share = effort && LEVELS[effort].share;
  if (share === undefined && budget === undefined) return {};
  const min = Math.max(MIN_BUDGET_TOKENS, reasoningBudget[0]);
  const max = Math.min(reasoningBudget[1], maxTokens - 1);
  if (manualRefused || max < min) {
    omitReasoning(requested, context.log);
    return manualRefused ? off : {};
  }
  const budget_tokens =
    budget === undefined
      ? Math.min(Math.max(Math.floor((share ?? 0) * maxTokens), min), max)
      : context.log.clampToRange("reasoning.max_tokens", budget, [min, max]);
  return { thinking: { type: "enabled", budget_tokens, block_binding: toBinding(preservedReasoning && replayed) } };
}

function toAdaptive(
  context: TranslationContext,
  asked: RequestedReasoning,
  { replayed }: ReasoningSituation,
): ReasoningRequest {
  const { reasoningByDefault, reasoningCanBeDisabled, reasoningEfforts, preservedReasoning } =
    context.model.capabilities;
  const { effort: requested } = asked;
  const unasked = requested === undefined;
  if (unasked) omitReasoning(asked, context.log);
  const small = (context.request.maxOutputTokens ?? Infinity) < SMALL_MAX_TOKENS;
  const unwanted = requested === "none" || (unasked && reasoningByDefault && small);
  if (unwanted && reasoningCanBeDisabled) return { thinking: { type: "disabled" } };
  if (!reasoningByDefault && (unasked || unwanted)) return {};

  const wanted = unasked && !unwanted ? undefined : LEVELS[requested ?? "none"].effort;
  const effort = wanted && nearest(wanted, reasoningEfforts);
  if (!unasked && effort !== undefined) clampEffort(requested, effort, context.log);
  else if (!unasked) omitReasoning(asked, context.log);
  const block_binding = toBinding(preservedReasoning && replayed);
  return { thinking: { type: "adaptive", display: "summarized", block_binding }, effort };
}

/** Returns the model's effort nearest to the wanted one; of two equally near ones the higher. */
function nearest(wanted: Effort, known: readonly string[]): Effort | undefined {
  return EFFORTS.filter((effort) => known.includes(effort))
    .toReversed()
    .toSorted((a, b) => effortDistance(a, wanted) - effortDistance(b, wanted))[0];
}

/** Makes the provider drop reasoning that no longer matches its conversation instead of refusing the request. */
function toBinding(bound: boolean): { prefix_mismatch_behavior: "drop_block" } | undefined {
  return bound ? { prefix_mismatch_behavior: "drop_block" } : undefined;
}
