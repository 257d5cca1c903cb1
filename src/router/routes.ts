import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Clock } from "../core/clock.ts";
import { invalidField } from "../core/failure.ts";
import { firstUnmet } from "../core/labels.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import { isRoute, type Route, type Target } from "../core/route.ts";
import type { Asked } from "../core/router.ts";
import type { Breaker } from "./breaker.ts";
import { Outliers, shareAfter, type Span } from "./outliers.ts";
import { type Choice, type Member, noteChoice, POLICIES } from "./policies.ts";
import { drawFor, hashOf } from "./rendezvous.ts";
import { unmetCondition, RequestFacts } from "./request-facts.ts";
import type { TrackRecord } from "./track-record.ts";
import type { UpstreamLoad } from "./upstream-load.ts";

/** The models of a plan. */
export interface Ranked {
  /** In the order in which they are tried, without duplicates. */
  readonly models: readonly Model[];
  /** The targets of the first candidate, any of which may be the primary; empty when it is a model. */
  readonly targets: readonly Target[];
  /** Number of leading `targets` that are not known to be down. */
  readonly up: number;
}

/** Requirements of a ranking. */
export interface RankAsked extends Pick<Asked, "mode" | "caller" | "requirements"> {
  /** Receives the replaced routes, for an explanation. With it the ranking changes no state. Default: none. */
  readonly explained?: ExplainedRoute[] | undefined;
}

/** A route whose targets were ranked. */
export interface ExplainedRoute {
  readonly route: Route;
  readonly facts: RequestFacts;
  /** Models that the ranking moved behind their policy's place, although their breakers permit a call. */
  readonly heldBack: ReadonlyMap<Model, HeldBack>;
}

/** Why a target is moved back: it is an outlier, it is in its slow start, or other processes find it down. */
export type HeldBack = "outlier" | "returning" | "down_elsewhere";

interface RankPorts {
  readonly clock: Pick<Clock, "monotonic">;
  /** Random number from 0 to 1. */
  readonly random: () => number;
  readonly breakerOf: (model: Model) => Breaker;
  readonly loadOf: (model: Model) => UpstreamLoad;
}

/** The state of a route in this process. */
interface LiveRoute {
  readonly members: readonly LiveMember[];
  readonly outliers: Outliers;
  /** Number of choices by latency so far. */
  choices: number;
}

interface LiveMember extends Member {
  /** `upstreamKey` of its model. */
  readonly key: string;
  load: UpstreamLoad;
  breaker: Breaker;
  /** `record` of the breaker. */
  readonly record: TrackRecord;
  /** Latest period in which it is or was passed over as an outlier. */
  out: Span | undefined;
  times: number;
}

/** As `filter`, but returns the same list in the usual case that all elements pass. May call `passes` twice per element. */
function filtered<T>(list: readonly T[], passes: (each: T) => boolean): readonly T[] {
  return list.every(passes) ? list : list.filter(passes);
}

const NOBODY = { keyFamilyId: "", accountId: "" };

/** Replaces routes by their targets. */
export class Routes {
  readonly #ports: RankPorts;
  /** State by route. A reload creates new routes, so the state of earlier ones can be collected. */
  readonly #live = new WeakMap<Route, LiveRoute>();
  /** Upstream models that other processes found to be down. */
  downElsewhere: ReadonlySet<string> = new Set();

  constructor(ports: RankPorts) {
    this.#ports = ports;
  }

  /**
   * The models of the candidates, with the targets of a route in the order of its policy. If no target of a route is for this request,
   * throws `invalid_request` for the first candidate, and leaves out any other.
   */
  rank(request: CompletionRequest, candidates: readonly (Model | Route)[], asked: RankAsked): Ranked {
    if (candidates.every((candidate): candidate is Model => !isRoute(candidate)))
      return { models: candidates, targets: [], up: 0 };
    const facts = new RequestFacts(request, asked.caller ?? NOBODY);
    const [first, ...others] = candidates as readonly [Model | Route, ...(Model | Route)[]];
    const { targets, up } = isRoute(first) ? this.#order(first, facts, asked) : { targets: [], up: 0 };
    if (isRoute(first) && targets.length === 0) {
      const which = (asked.requirements ?? []).length === 0 ? "" : "of those with the required labels ";
      throw invalidField(
        "model",
        `has no target for this request: ${first.id} has ${which}only targets with conditions, of which none is met`,
      );
    }
    const toModels = (candidate: Model | Route): Model[] =>
      isRoute(candidate) ? this.#order(candidate, facts, asked).targets.map(({ model }) => model) : [candidate];
    const before = isRoute(first) ? targets.map(({ model }) => model) : [first];
    const models = others.length === 0 ? before : [...new Set([...before, ...others.flatMap(toModels)])];
    return { models, targets, up };
  }

  #order(
    route: Route,
    facts: RequestFacts,
    { mode, caller = NOBODY, requirements = [], explained }: RankAsked,
  ): Pick<Ranked, "targets" | "up"> {
    const live = this.#liveOf(route);
    const able = filtered(live.members, ({ target: { model, when } }) => {
      if (requirements.length > 0 && firstUnmet(model.labels, requirements) !== undefined) return false;
      return when === undefined || unmetCondition(facts, when) === undefined;
    });
    const up = filtered(able, ({ breaker }) => breaker.mayAdmit(caller.accountId));
    const ranked = up.length === 0 ? able : up;
    const { policy, affinity } = route;
    const { clock, random } = this.#ports;
    const { accountId } = caller;
    const nowMs = clock.monotonic();
    const choice: Choice = { facts, mode, accountId, affinity, random, nowMs, number: live.choices + 1 };
    // An explanation changes no later choice.
    if (explained === undefined) live.outliers.compare(live.members, nowMs);
    const fit = ranked.length <= 1 ? ranked : this.#fitOf(ranked, affinity ? facts : undefined, nowMs);
    const order = fit.length <= 1 ? fit : POLICIES[policy](fit, choice);
    if (explained !== undefined) {
      const held = ranked.filter((member) => !fit.includes(member));
      const heldBack = new Map(held.map((member) => [member.target.model, this.#whyHeldBack(member)]));
      explained.push({ route, facts, heldBack });
    } else {
      live.choices = choice.number;
      if (policy === "least_latency" && fit.length > 1) noteChoice(order[0]!, fit, choice);
    }
    const all =
      fit === able
        ? order
        : [
            ...order,
            ...ranked.filter((member) => !fit.includes(member)),
            ...able.filter((member) => !ranked.includes(member)),
          ];
    return { targets: all.map(({ target }) => target), up: up.length };
  }

  /**
   * The members that are no outliers, are not down by other processes' votes, and get this request if they are in their slow start.
   * Returns all members when none qualifies.
   */
  #fitOf(members: readonly LiveMember[], facts: RequestFacts | undefined, nowMs: number): readonly LiveMember[] {
    const isQuiet = ({ out, breaker, key }: LiveMember): boolean =>
      out === undefined && breaker.lastOutage === undefined && !this.downElsewhere.has(key);
    if (members.every(isQuiet)) return members;
    const isFit = (member: LiveMember): boolean => {
      if (isQuiet(member)) return true;
      const { out, breaker, key } = member;
      if (this.downElsewhere.has(key)) return false;
      const { lastOutage: outage } = breaker;
      const share = Math.min(out ? shareAfter(out, nowMs) : 1, outage ? shareAfter(outage, nowMs) : 1);
      if (share === 0 || share === 1) return share === 1;
      // The draw of a conversation is fixed, so that it moves back to the target only once.
      return (facts === undefined ? this.#ports.random() : drawFor(facts.conversation, member)) < share;
    };
    const fit = members.filter(isFit);
    return fit.length === 0 ? members : fit;
  }

  /** Why `#fitOf` leaves a member out. */
  #whyHeldBack({ key, out }: LiveMember): HeldBack {
    if (this.downElsewhere.has(key)) return "down_elsewhere";
    return out !== undefined && out.untilMs > this.#ports.clock.monotonic() ? "outlier" : "returning";
  }

  /** IDs of the targets of a route that are passed over as outliers. */
  outliersOf(route: Route): readonly string[] {
    const nowMs = this.#ports.clock.monotonic();
    const members = this.#live.get(route)?.members ?? [];
    return members.flatMap(({ out, target }) => (out !== undefined && out.untilMs > nowMs ? [target.model.id] : []));
  }

  /** Copies the outliers of the earlier routes with the same IDs, for the upstream models in `kept`. */
  inherit(before: readonly Route[], routes: readonly Route[], kept: ReadonlySet<string>): void {
    const known = new Map(before.map((route) => [route.id, this.#live.get(route)]));
    for (const route of routes) {
      const members = new Map(known.get(route.id)?.members.map((member) => [member.key, member]));
      if (members.size === 0) continue;
      for (const member of this.#liveOf(route).members.filter(({ key }) => kept.has(key))) {
        const { out, times } = members.get(member.key) ?? member;
        member.out = out;
        member.times = times;
      }
    }
  }

  /** Looks load and breaker up again for an account's own credential: `PerUpstream` may have evicted and recreated them. */
  #lookUp(member: LiveMember): void {
    const { model } = member.target;
    if (model.ownCredential === undefined) return;
    member.load = this.#ports.loadOf(model);
    member.breaker = this.#ports.breakerOf(model);
  }

  #liveOf(route: Route): LiveRoute {
    let live = this.#live.get(route);
    if (live !== undefined) {
      for (const member of live.members) this.#lookUp(member);
      return live;
    }
    const { breakerOf, loadOf } = this.#ports;
    const members = route.targets.map((target): LiveMember => ({
      target,
      weight: target.weight,
      seed: hashOf(target.model.id),
      load: loadOf(target.model),
      breaker: breakerOf(target.model),
      key: upstreamKey(target.model),
      get record() {
        return this.breaker.record;
      },
      out: undefined,
      times: 0,
      chosenAt: 0,
    }));
    this.#live.set(route, (live = { members, outliers: new Outliers(), choices: 0 }));
    return live;
  }
}
