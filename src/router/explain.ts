import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { RouteReason } from "../../gen/parley/v1/route_pb.js";
import { Failure } from "../core/failure.ts";
import { describeRequirement, firstUnmet } from "../core/labels.ts";
import type { Model } from "../core/model.ts";
import type { Translation } from "../core/provider.ts";
import { isRoute, kindOf, type Route, type Target, type TargetCondition } from "../core/route.ts";
import type { ExplainAsked, ExplainedModel, ExplainedTranslation, PlanExplanation } from "../core/router.ts";
import type { Breaker } from "./breaker.ts";
import { type CompletionAttempts, MAX_KINDS_TRIED } from "./plan.ts";
import { usualCost } from "./policies.ts";
import { unmetCondition, type RequestFacts } from "./request-facts.ts";
import type { ExplainedRoute, HeldBack, Ranked } from "./routes.ts";
import type { UpstreamLoad } from "./upstream-load.ts";

/** A plan and its inputs. */
interface Planned {
  readonly candidates: readonly (Model | Route)[];
  readonly ranked: Ranked;
  readonly attempts: CompletionAttempts;
  /** The routes among the candidates. */
  readonly explained: readonly ExplainedRoute[];
  readonly asked: ExplainAsked;
}

interface ExplainPorts {
  readonly breakerOf: (model: Model) => Breaker;
  readonly loadOf: (model: Model) => UpstreamLoad;
}

const NOBODY = { accountId: "" };

/** Explains why each model has its place in a plan, and why other targets of its routes have none. */
export function explainPlan(planned: Planned, ports: ExplainPorts): PlanExplanation {
  const { attempts, explained, asked, ranked } = planned;
  const { isForOperator = false, caller: { accountId } = NOBODY } = asked;
  const { candidates, primary, prompt } = attempts;
  const [first] = planned.candidates;
  const targets = explained.flatMap(({ route, facts }) => route.targets.map((target) => ({ target, facts })));
  const figuresOf = (model: Model): ExplainedModel["figures"] => {
    const found = targets.find(({ target }) => target.model === model);
    if (found === undefined) return undefined;
    const load = ports.loadOf(model);
    const expectedMs = load.expectedMs(asked.mode, accountId);
    const cost = usualCost(model, found.facts);
    return {
      weight: found.target.weight,
      inFlight: isForOperator ? load.inFlight : load.inFlightOf(accountId),
      ...(expectedMs > 0 && { expectedMs }),
      ...(cost !== undefined && { usualCostMicroUsd: BigInt(cost) }),
    };
  };
  const translateFor = translationsOf(attempts);
  const steps = candidates.map((model, index): ExplainedModel => {
    const { reason, message } = placeOf(model, index, planned);
    const note = breakerNote(ports.breakerOf(model), accountId);
    const own = model.ownCredential === undefined ? "" : ", with the account's own credential";
    const figures = figuresOf(model);
    return { model, reason, message: message + own + note, figures, translate: translateFor(model) };
  });
  const leftOut = targets
    .filter(({ target: { model } }, index) => {
      const isFirst = targets.findIndex(({ target }) => target.model === model) === index;
      return isFirst && !candidates.includes(model);
    })
    .map(({ target, facts }): ExplainedModel => {
      const { model } = target;
      const isSurplus = ranked.models.includes(model);
      const why = isSurplus ? SURPLUS : whyUnfit(target, facts, asked);
      return { model, ...why, figures: figuresOf(model), translate: undefined };
    });
  const route = first !== undefined && isRoute(first) ? first : undefined;
  return { prompt, candidates, sent: primary.sent, route, steps, leftOut };
}

type Why = Pick<ExplainedModel, "reason" | "message">;

/** Why the candidate with this index has its place. */
function placeOf(model: Model, index: number, { candidates: [first], ranked, attempts, explained }: Planned): Why {
  if (index >= attempts.targets) {
    if (model === first) return { reason: RouteReason.REQUESTED, message: "asked for by its ID" };
    return { reason: RouteReason.FALLBACK, message: "of fallback_models" };
  }
  const placeAmong = (of: Model | undefined): number => ranked.targets.findIndex((target) => target.model === of);
  const place = placeAmong(model);
  const held = explained.find(({ route }) => route === first)?.heldBack.get(model);
  const places = held === undefined ? `place ${place + 1} ${howOf(first as Route)}` : HELD_BACK[held];
  const primary = placeAmong(attempts.candidates[0]);
  if (place === primary && place > 0)
    return { reason: RouteReason.LOSES_LEAST, message: `${places}, first because it loses less than those before it` };
  if (place >= ranked.up) return { reason: RouteReason.BREAKER_OPEN, message: "after those that work" };
  if (place < primary)
    return { reason: RouteReason.PASSED_OVER, message: `${places}, not first because of what it would lose` };
  return { reason: held === undefined ? RouteReason.POLICY : RouteReason.HELD_BACK, message: places };
}

const HELD_BACK: Readonly<Record<HeldBack, string>> = {
  outlier: "moved back, because it fails more often than the others",
  returning: "moved back, because it was away and gets its requests back bit by bit",
  down_elsewhere: "moved back, because other processes find it down",
};

/** How a route orders its targets. */
function howOf({ policy, affinity }: Route): string {
  switch (policy) {
    case "ordered":
      return "in the configured order";
    case "weighted":
      return affinity
        ? "for this conversation, by weight"
        : "in a draw by weight, which is another one for each request";
    case "least_latency":
      return affinity ? "for this conversation, among the fastest" : "in a draw among the fastest";
    case "cheapest":
      return "by price";
  }
}

/** Note about a breaker that permits no attempt of this account; empty for any other breaker. */
function breakerNote(breaker: Breaker, accountId: string): string {
  if (breaker.mayAdmit(accountId)) return "";
  const remainingMs = breaker.remainingMs(accountId);
  const left = remainingMs > 0 ? ` for ${Math.ceil(remainingMs / 100) / 10} s more` : "";
  return `; its circuit breaker is open${left}`;
}

const SURPLUS: Why = { reason: RouteReason.SURPLUS, message: "as many others are tried as a request may be sent to" };

function whyUnfit(
  { model, when }: Target,
  facts: RequestFacts,
  { requirements = [], isForOperator = false }: ExplainAsked,
): Why {
  const unmet = firstUnmet(model.labels, requirements);
  if (unmet !== undefined) return { reason: RouteReason.LABEL, message: `is not of ${describeRequirement(unmet)}` };
  return {
    reason: RouteReason.CONDITION,
    message: when === undefined ? "" : describeUnmet(when, facts, isForOperator),
  };
}

function describeUnmet(when: TargetCondition, facts: RequestFacts, isForOperator: boolean): string {
  const { promptTokens, modalities, keyTags } = when;
  switch (unmetCondition(facts, when)) {
    case "tools":
      return facts.hasTools ? "is for requests without tools" : "is for requests with tools";
    case "keyTags":
      return isForOperator ? `is for keys with one of the tags ${[...keyTags!].join(", ")}` : "is for other keys";
    case "promptTokens": {
      const { min, max } = promptTokens!;
      const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
      return `is for prompts of ${range} tokens; this one has about ${facts.promptTokens}`;
    }
    case "modalities":
      return `is for requests with one of ${[...modalities!].map((one) => Modality[one].toLowerCase()).join(", ")}`;
    case undefined:
      return "";
  }
}

/**
 * The translations for the models of a plan: one for each kind, for MAX_KINDS_TRIED kinds at most. The plan already has the
 * primary's.
 */
function translationsOf(attempts: CompletionAttempts): (model: Model) => Translate | undefined {
  const [first] = attempts.candidates as readonly [Model];
  const kinds = new Map<string, Translate>([[kindOf(first), () => withoutBody(() => attempts.primary)]]);
  return (model) => {
    const kind = kindOf(model);
    if (!kinds.has(kind) && kinds.size < MAX_KINDS_TRIED)
      kinds.set(kind, () => withoutBody(() => attempts.translate(model)));
    return kinds.get(kind);
  };
}

type Translate = NonNullable<ExplainedModel["translate"]>;

/** The omitted and clamped fields of a translation, or its refusal. Drops the body: the bodies for all models could fill the memory. */
function withoutBody(translate: () => Translation): ExplainedTranslation | Failure {
  try {
    const { omitted, clamped, sent } = translate();
    return { omitted, clamped, sent };
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
}
