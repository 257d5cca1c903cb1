import { costOf } from "../core/cost.ts";
import { NO_TOKENS } from "../core/ledger.ts";
import type { Model } from "../core/model.ts";
import type { RoutePolicy, Target } from "../core/route.ts";
import type { Mode } from "../core/router.ts";
import { byRendezvous, byWeight, sortBy, type Weighted } from "./rendezvous.ts";
import type { RequestFacts } from "./request-facts.ts";
import type { UpstreamLoad } from "./upstream-load.ts";

/** A target with the facts that a policy needs. */
export interface Member extends Weighted {
  readonly target: Target;
  readonly load: UpstreamLoad;
  /** Number of the route's choice at which it was last chosen by its latency. */
  chosenAt: number;
}

/** The inputs of a policy for one request. */
export interface Choice {
  readonly facts: RequestFacts;
  readonly mode: Mode;
  /** Account of the caller. */
  readonly accountId: string;
  /** Whether the target depends on the conversation. */
  readonly affinity: boolean;
  /** Random number from 0 to 1. */
  readonly random: () => number;
  /** The clock's `monotonic`. */
  readonly nowMs: number;
  /** Number of choices that this route has made by latency so far. */
  readonly number: number;
}

/** Orders members: the first should serve, the others in this order when it fails. */
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
 * Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018): rendezvous hashing, with members above their
 * share of the load at the end.
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

/** Members with at most this multiple of the shortest expected time count as equally fast. */
const AS_FAST = 1.05;
/** As AS_FAST, with affinity: the prompt cache at the conversation's target usually saves more than the difference. */
const AS_FAST_WITH_CACHE = 1.5;
/** Choices per target of the route after which the expected time of a member that was not chosen is halved. */
const HALF_AFTER = 200;

/**
 * Power of two choices: takes two random members of the fastest and puts the faster one first; with affinity, the conversation's
 * member. The expected time of a member that is not chosen decays with every choice, so that the member is tried again: with twice
 * the time, once in HALF_AFTER choices per target; with ten times the time, once in three times as many. These trials cost a few
 * percent of the time at most. Members without samples are tried first.
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

/** Records that `first` of `members` was chosen by its latency. */
export function noteChoice(first: Member, members: readonly Member[], { mode, number }: Choice): void {
  // Old samples would only delay the average of new ones.
  if (number - first.chosenAt > HALF_AFTER * members.length) first.load.forget(mode);
  first.chosenAt = number;
}

function indexBelow(end: number, { random }: Choice): number {
  return Math.min(Math.floor(random() * end), end - 1);
}

/** Answer tokens with which prices are compared when the request has no limit. */
const USUAL_ANSWER_TOKENS = 1_000;

/** Sorts by the price of the request with a usual answer, the cheapest first and members without a price last. */
function cheapest(members: readonly Member[], { facts }: Choice): readonly Member[] {
  return sortBy(members, ({ target: { model } }) => usualCost(model, facts) ?? Infinity).order;
}

/** Price of a request with a usual answer, in micro-USD; undefined without one. */
export function usualCost({ price }: Model, facts: RequestFacts): number | undefined {
  const { promptTokens: prompt, maxOutputTokens = USUAL_ANSWER_TOKENS } = facts;
  const tokens = { ...NO_TOKENS, prompt, completion: Math.min(maxOutputTokens, USUAL_ANSWER_TOKENS) };
  return price && costOf(tokens, price);
}
