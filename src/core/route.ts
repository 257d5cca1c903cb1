import type { Modality } from "../../gen/parley/v1/modality_pb.js";
import { LABELS, type Labels } from "./labels.ts";
import type { Hedge, ListedFacts, ListedModel, Model } from "./model.ts";
import type { Capabilities, UpstreamModel } from "./provider.ts";

/** How a route orders its targets. docs/routing.md describes them. */
export type RoutePolicy = "ordered" | "weighted" | "least_latency" | "cheapest";

/** Requests for which a target is used: each condition that is defined must hold. */
export interface TargetCondition {
  /** Estimated tokens of the prompt, both ends included. */
  readonly promptTokens: { readonly min: number; readonly max: number } | undefined;
  /** The request holds, or asks for, at least one of these. */
  readonly modalities: ReadonlySet<Modality> | undefined;
  /** Whether the request has tools. */
  readonly tools: boolean | undefined;
  /** The key has at least one of these tags. */
  readonly keyTags: ReadonlySet<string> | undefined;
}

/** One of the models behind a route. */
export interface Target {
  readonly model: Model;
  /** Share of the requests, relative to the other targets; more than 0. */
  readonly weight: number;
  /** Undefined: it is used for all requests. */
  readonly when: TargetCondition | undefined;
  /** `kindOf` the model: targets of the same kind omit and clamp the same fields of a request. */
  readonly kind: string;
}

/** A name with several models, one of which serves each request. Immutable. */
export interface Route extends ListedModel {
  readonly policy: RoutePolicy;
  /** Whether the requests of a conversation go to the same target while that is possible. */
  readonly affinity: boolean;
  /** Hedging, with the next target. Default: none. */
  readonly hedge?: Hedge | undefined;
  /** At least one, in the order of the configuration. */
  readonly targets: readonly Target[];
  /** The widest bounds of its targets, by which requests are checked. */
  readonly widest: Pick<UpstreamModel, "maxOutputTokens" | "outputModalities">;
}

interface RouteParts extends Pick<Route, "id" | "description" | "created" | "policy" | "affinity" | "hedge"> {
  readonly targets: readonly Omit<Target, "kind">[];
}

/** A route whose listed facts hold for all its targets. It has no price, because each target has its own. */
export function createRoute(parts: RouteParts): Route {
  const models = parts.targets.map(({ model }) => model);
  const upstreams = models.map(({ upstream }) => upstream);
  return {
    ...parts,
    targets: parts.targets.map((target) => ({ ...target, kind: kindOf(target.model) })),
    providerName: common(models.map(({ providerName }) => providerName)),
    dialect: common(models.map(({ dialect }) => dialect)),
    stage: "stable",
    shutdown: undefined,
    price: undefined,
    labels: commonLabels(models.map(({ labels }) => labels)),
    upstream: commonFacts(upstreams),
    widest: {
      maxOutputTokens: Math.max(...upstreams.map(({ maxOutputTokens }) => maxOutputTokens)),
      outputModalities: new Set(upstreams.flatMap(({ outputModalities }) => [...outputModalities])),
    },
  };
}

/** Whether a name has several models behind it. */
export function isRoute(found: ListedModel): found is Route {
  return "targets" in found;
}

/** Equal for models at one provider with the same options and facts, whose translations omit and clamp the same fields. */
export function kindOf({ providerName, options, upstream }: Model): string {
  const modalities = [[...upstream.inputModalities], [...upstream.outputModalities]];
  return JSON.stringify([providerName, options && [...options], modalities, { ...upstream, name: "" }]);
}

function commonLabels(all: readonly Labels[]): Labels {
  const shared = LABELS.map((label) => [label, common(all.map((labels) => labels[label] ?? ""))] as const);
  return Object.fromEntries(shared.filter(([, value]) => value !== ""));
}

function common(names: readonly string[]): string {
  const [first = ""] = names;
  return names.every((name) => name === first) ? first : "";
}

function commonFacts(upstreams: readonly UpstreamModel[]): ListedFacts {
  const inAll = (sets: readonly ReadonlySet<Modality>[]): ReadonlySet<Modality> =>
    sets.reduce((one, other) => one.intersection(other));
  return {
    contextWindow: Math.min(...upstreams.map(({ contextWindow }) => contextWindow)),
    maxOutputTokens: Math.min(...upstreams.map(({ maxOutputTokens }) => maxOutputTokens)),
    inputModalities: inAll(upstreams.map(({ inputModalities }) => inputModalities)),
    outputModalities: inAll(upstreams.map(({ outputModalities }) => outputModalities)),
    capabilities: upstreams.map(({ capabilities }) => capabilities).reduce(commonCapabilities),
  };
}

/** The capabilities that both have. Those that only a dialect reads are taken from `one`, because no request is translated by them. */
function commonCapabilities(one: Capabilities, other: Capabilities): Capabilities {
  const both = Object.fromEntries(
    Object.entries(one).map(([name, value]) => [
      name,
      typeof value === "boolean" ? value && other[name as keyof Capabilities] : value,
    ]),
  ) as unknown as Capabilities;
  return {
    ...both,
    maxTemperature: Math.min(one.maxTemperature, other.maxTemperature),
    reasoning: other.reasoning === "none" ? "none" : one.reasoning,
    reasoningEfforts: one.reasoningEfforts.filter((effort) => other.reasoningEfforts.includes(effort)),
  };
}
