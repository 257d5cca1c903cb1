import { costOf } from "../core/cost.ts";
import { NO_TOKENS } from "../core/ledger.ts";
import type { Model } from "../core/model.ts";
import type { RoutePolicy, Target } from "../core/route.ts";
import type { Mode } from "../core/router.ts";
import { byRendezvous, byWeight, sortBy, type Weighted } from "./rendezvous.ts";
import type { RequestFacts } from "./request-facts.ts";
import type { UpstreamLoad } from "./upstream-load.ts";

/** A target with what a policy knows of it. */
export interface Member extends Weighted {
  readonly target: Target;
  readonly load: UpstreamLoad;
  /** Number of the route's choice at which it was last chosen by its latency. */
  chosenAt: number;
}

/** What a policy decides by. */
export interface Choice {
  readonly facts: RequestFacts;
  readonly mode: Mode;
  /** Of the caller. */
  readonly accountId: string;
  /** Whether the target depends on the conversation. */
  readonly affinity: boolean;
  /** Random number from 0 to 1. */
  readonly random: () => number;
  /** The clock's `monotonic`. */
  readonly nowMs: number;
  /** Choices of this route by latency so far. */
  readonly number: number;
}

/** Orders members: the first one should serve, each other one when those before it cannot. */
type Policy = (members: readonly Member[], choice: Choice) => readonly Member[];

export const POLICIES: Readonly<Record<RoutePolicy, Policy>> = {
  ordered: (members) => members,
  weighted: (members, choice) => (choice.affinity ? byAffinity(members, choice) : byWeight(members, choice.random)),
  least_latency: leastLatency,
  cheapest,
};

/** A member is passed over when it has this much more than its share of the calls in flight. */
const MOST_OF_SHARE = 1.25;
/** Calls in flight that a member may always have. */
const ALWAYS_IN_FLIGHT = 16;

/**
 * Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018): by rendezvous, with the members that have
 * more than their share at the end.
 */
function byAffinity(members: readonly Member[], { facts }: Choice): readonly Member[] {
  const order = byRendezvous(members, facts.conversation);
  let inFlight = 1;
  let weights = 0;
  for (const { load, weight } of members) {
    inFlight += load.inFlight;
    weights += weight;
  }
  const isFull = ({ load, weight }: Member): boolean =>
    load.inFlight >= Math.max(ALWAYS_IN_FLIGHT, Math.ceil((MOST_OF_SHARE * inFlight * weight) / weights));
  if (!isFull(order[0]!)) return order;
  return [...order.filter((member) => !isFull(member)), ...order.filter(isFull)];
}

/** Members whose expected time is at most this much longer than the shortest one are as good. */
const AS_FAST = 1.05;
/** The same for a conversation, whose prompt cache at its target usually saves more. */
const AS_FAST_WITH_CACHE = 1.5;
/** Choices, for each target of the route, after which the expected time of one that was not chosen counts half. */
const HALF_AFTER = 200;

/**
 * Two random ones of the fastest members, the faster of the two first; or, with affinity, the conversation's. A member that is
 * not chosen counts as faster with every choice, so that it is tried again: one of twice the time once in HALF_AFTER
 * choices per target, one of ten times it once in three times as many, which costs some percent of the time at most. Members
 * of which nothing is known are tried first.
 */
function leastLatency(members: readonly Member[], choice: Choice): readonly Member[] {
  const { accountId, affinity, mode, nowMs, number } = choice;
  const halfAfter = HALF_AFTER * members.length;
  const { order, values } = sortBy(
    members,
    ({ load, chosenAt }) => load.expectedMs(mode, accountId, nowMs) * 2 ** ((chosenAt - number) / halfAfter),
  );
  const longestMs = values[0]! * (affinity ? AS_FAST_WITH_CACHE : AS_FAST);
  let fast = 1;
  while (fast < order.length && values[fast]! <= longestMs) fast++;
  const first = affinity
    ? byAffinity(order.slice(0, fast), choice)[0]!
    : order[Math.min(indexBelow(fast, choice), indexBelow(fast, choice))]!;
  return first === order[0] ? order : [first, ...order.filter((member) => member !== first)];
}

/** Notes that a request goes to one of `members`, by its latency. */
export function noteChoice(first: Member, members: readonly Member[], { mode, number }: Choice): void {
  // What was measured so long ago does not slow down what is measured now.
  if (number - first.chosenAt > HALF_AFTER * members.length) first.load.forget(mode);
  first.chosenAt = number;
}

function indexBelow(end: number, { random }: Choice): number {
  return Math.min(Math.floor(random() * end), end - 1);
}

/** Tokens of an answer by which prices are compared. */
const USUAL_ANSWER_TOKENS = 1_000;

/** By the price of the request with a usual answer, the cheapest first and those without a price last. */
function cheapest(members: readonly Member[], { facts }: Choice): readonly Member[] {
  return sortBy(members, ({ target: { model } }) => usualCost(model, facts) ?? Infinity).order;
}

/** Price of a request with a usual answer, in micro-USD; undefined without one. */
export function usualCost({ price }: Model, facts: RequestFacts): number | undefined {
  const { promptTokens: prompt, maxOutputTokens = USUAL_ANSWER_TOKENS } = facts;
  const tokens = { ...NO_TOKENS, prompt, completion: Math.min(maxOutputTokens, USUAL_ANSWER_TOKENS) };
  return price && costOf(tokens, price);
}
