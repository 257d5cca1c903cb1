import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import type { TranslationContext } from "./cache-marks.ts";
import type { Thinking } from "./wire.ts";

/** Smallest budget that the provider accepts, in tokens. A budget must also be below `max_tokens`. */
const MIN_BUDGET_TOKENS = 1024;

/**
 * Below this `max_tokens` a model that reasons by default would spend all tokens on reasoning. Applies to the caller's
 * limit only, never to our default.
 */
const SMALL_MAX_TOKENS = 1000;

const EFFORTS = ["low", "medium", "high", "xhigh", "max"];

/** The provider's effort, and the budget as a share of `max_tokens` for models with budgets. */
const LEVELS: Readonly<Partial<Record<ReasoningEffort, { readonly effort: string; readonly share: number }>>> = {
  [ReasoningEffort.MINIMAL]: { effort: "low", share: 0.1 },
  [ReasoningEffort.LOW]: { effort: "low", share: 0.2 },
  [ReasoningEffort.MEDIUM]: { effort: "medium", share: 0.5 },
  [ReasoningEffort.HIGH]: { effort: "high", share: 0.8 },
  [ReasoningEffort.XHIGH]: { effort: "xhigh", share: 0.95 },
  [ReasoningEffort.MAX]: { effort: "max", share: 0.95 },
};

/** The reasoning fields of a request. */
export interface ReasoningRequest {
  readonly thinking?: Thinking | undefined;
  readonly effort?: string | undefined;
}

/** Facts besides the request that decide about reasoning. */
export interface ReasoningSituation {
  readonly maxTokens: number;
  /** Manual reasoning is refused: a tool is forced, or the reasoning of the running tool calls did not come back. */
  readonly manualRefused: boolean;
  /** Reasoning of earlier answers is in the conversation. */
  readonly replayed: boolean;
}

/** Maps the reasoning effort, or the tokens for reasoning, to the model's parameters. An effort that the model cannot honour is logged as omitted. */
export function toReasoning(context: TranslationContext, situation: ReasoningSituation): ReasoningRequest {
  const { reasoning } = context.model.capabilities;
  if (reasoning === "budget") return toBudget(context, situation);
  context.log.omitWhen(context.request.reasoningMaxTokens !== undefined, "reasoning_max_tokens");
  if (reasoning !== "none") return toAdaptive(context, situation);
  context.log.omitWhen(LEVELS[toEffort(context)] !== undefined, "reasoning_effort");
  return {};
}

/** Whether the model reasons for this request. */
export function isReasoning({ thinking }: ReasoningRequest): boolean {
  return thinking !== undefined && thinking.type !== "disabled";
}

function toEffort({ request }: TranslationContext): ReasoningEffort {
  return request.reasoningEffort ?? ReasoningEffort.UNSPECIFIED;
}

function toBudget(
  context: TranslationContext,
  { maxTokens, manualRefused, replayed }: ReasoningSituation,
): ReasoningRequest {
  const effort = toEffort(context);
  const { reasoningByDefault, reasoningCanBeDisabled, reasoningBudget, preservedReasoning } =
    context.model.capabilities;
  const off: ReasoningRequest = reasoningCanBeDisabled ? { thinking: { type: "disabled" } } : {};
  if (effort === ReasoningEffort.NONE) {
    context.log.omitWhen(!reasoningCanBeDisabled && reasoningByDefault, "reasoning_effort");
    return off;
  }
  const { reasoningMaxTokens } = context.request;
  const share = LEVELS[effort]?.share;
  if (share === undefined && reasoningMaxTokens === undefined) return {};
  const field = reasoningMaxTokens === undefined ? "reasoning_effort" : "reasoning_max_tokens";
  const min = Math.max(MIN_BUDGET_TOKENS, reasoningBudget[0]);
  const max = Math.min(reasoningBudget[1], maxTokens - 1);
  if (manualRefused || max < min) {
    context.log.omit(field);
    return manualRefused ? off : {};
  }
  const budget_tokens =
    reasoningMaxTokens === undefined
      ? Math.min(Math.max(Math.floor((share ?? 0) * maxTokens), min), max)
      : context.log.clamp(field, reasoningMaxTokens, [min, max]);
  return { thinking: { type: "enabled", budget_tokens, block_binding: toBinding(preservedReasoning && replayed) } };
}

function toAdaptive(context: TranslationContext, { replayed }: ReasoningSituation): ReasoningRequest {
  const { reasoningByDefault, reasoningCanBeDisabled, reasoningEfforts, preservedReasoning } =
    context.model.capabilities;
  const requested = toEffort(context);
  const unasked = requested === ReasoningEffort.UNSPECIFIED;
  const small = (context.request.maxTokens ?? Infinity) < SMALL_MAX_TOKENS;
  const unwanted = requested === ReasoningEffort.NONE || (unasked && reasoningByDefault && small);
  if (unwanted && reasoningCanBeDisabled) return { thinking: { type: "disabled" } };
  if (!reasoningByDefault && (unasked || unwanted)) return {};

  const wanted = unwanted ? "low" : LEVELS[requested]?.effort;
  const effort = wanted === undefined ? undefined : nearest(wanted, reasoningEfforts);
  // A model that cannot stop reasoning gets its lowest effort, which does not honour `none`.
  const unkept = requested === ReasoningEffort.NONE || effort === undefined;
  context.log.omitWhen(!unasked && unkept, "reasoning_effort");
  const block_binding = toBinding(preservedReasoning && replayed);
  return { thinking: { type: "adaptive", display: "summarized", block_binding }, effort };
}

/** Returns the model's effort nearest to the wanted one; of two equally near ones the higher. */
function nearest(wanted: string, known: readonly string[]): string | undefined {
  const distance = (effort: string): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return EFFORTS.filter((effort) => known.includes(effort))
    .toReversed()
    .toSorted((a, b) => distance(a) - distance(b))[0];
}

/** Makes the provider drop reasoning that no longer matches its conversation instead of refusing the request. */
function toBinding(bound: boolean): { prefix_mismatch_behavior: "drop_block" } | undefined {
  return bound ? { prefix_mismatch_behavior: "drop_block" } : undefined;
}
