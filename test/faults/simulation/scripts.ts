import { Failure, type FailureCode } from "../../../src/core/failure.ts";
import type { Chance } from "./chance.ts";

/** Temporary behaviour of an upstream model. */
export const WEATHERS = ["fine", "fair", "stormy", "down", "limiting", "slow", "cutting"] as const;
export type Weather = (typeof WEATHERS)[number];

/** How one call can end. */
type Ending =
  | "well"
  | "refused"
  | "hangs"
  | "stalls"
  | "cut"
  | "error first"
  | "error in the middle"
  | "error instead of the end"
  | "rate limit"
  | "rejected"
  | "unreadable"
  | "nothing"
  | "refuses us"
  | "fault of ours";

const ENDINGS: Readonly<Record<Weather, Readonly<Partial<Record<Ending, number>>>>> = {
  fine: { well: 1 },
  fair: {
    well: 88,
    refused: 1,
    "error first": 3,
    cut: 2,
    "rate limit": 2,
    rejected: 2,
    "fault of ours": 0.5,
    nothing: 1,
  },
  stormy: {
    well: 30,
    refused: 8,
    hangs: 8,
    stalls: 8,
    cut: 10,
    "error first": 10,
    "error in the middle": 8,
    "error instead of the end": 8,
    "rate limit": 5,
    unreadable: 6,
    nothing: 3,
    "refuses us": 4,
  },
  down: { "refuses us": 5, refused: 60, "error first": 30, hangs: 10 },
  limiting: { "rate limit": 70, well: 30 },
  slow: { well: 60, hangs: 20, stalls: 20 },
  cutting: { cut: 40, "error in the middle": 20, "error instead of the end": 20, stalls: 10, well: 10 },
};

/** Script of one call of an upstream model. */
export interface Script {
  readonly ending: Ending;
  /** Number of chunks per batch; each batch is awaited. */
  readonly batches: readonly number[];
  /** Pauses before the first batch and between batches. Infinity never ends by itself. */
  readonly firstMs: number;
  readonly gapMs: number;
  /** The batch after which the usage is sent; undefined for none. */
  readonly usageAfter: number | undefined;
  /** Failure after the last batch; undefined for success. */
  readonly failure: Error | undefined;
}

/** Draws the script of a call from the model's behaviour, with durations on both sides of its timeouts. */
export function drawScript(chance: Chance, weather: Weather, idleMs: number): Script {
  const ending = chance.weighted(ENDINGS[weather]);
  const slowly = weather === "slow" ? 6 : 1;
  const size = chance.percent(10) ? 12 : 4;
  const batches = Array.from({ length: lengthOf(ending, chance, size) }, () => chance.between(1, 3));
  const early = batches.length > 1 && chance.percent(15) ? chance.between(0, batches.length - 2) : batches.length - 1;
  return {
    ending,
    batches,
    firstMs: ending === "hangs" ? Infinity : ending === "refused" ? 0 : chance.between(0, 300) * slowly,
    gapMs: chance.percent(30) ? 0 : chance.between(1, 120) * slowly,
    usageAfter: chance.percent(85) ? early : undefined,
    failure: failureOf(ending, chance, idleMs),
  };
}

function lengthOf(ending: Ending, chance: Chance, most: number): number {
  switch (ending) {
    case "well":
    case "stalls":
    case "cut":
    case "error in the middle":
    case "error instead of the end":
      return chance.between(1, most);
    default:
      return 0;
  }
}

function failureOf(ending: Ending, chance: Chance, idleMs: number): Error | undefined {
  const fails = (code: FailureCode, status?: number): Failure =>
    new Failure(code, `The upstream provider, as drawn: ${ending}.`, {
      ...(status !== undefined && { upstreamStatus: status }),
    });
  switch (ending) {
    case "well":
    case "nothing":
      return undefined;
    case "hangs":
    case "stalls":
      return new Failure("upstream_timeout", `The upstream provider fell silent for ${idleMs} ms.`);
    case "refused":
    case "cut":
      return fails("upstream_unavailable");
    case "error first":
    case "error in the middle":
      return fails("upstream_unavailable", chance.pick([500, 502, 503, 529]));
    case "error instead of the end":
    case "unreadable":
      return fails("upstream_protocol", 200);
    case "rejected":
      return fails("upstream_rejected", 400);
    case "refuses us":
      return fails("upstream_refused_us", 401);
    case "rate limit": {
      const retryAfterMs = chance.pick([undefined, 0, 200, 900, 1_500, 20_000]);
      const failure = fails("upstream_rate_limited", 429);
      return retryAfterMs === undefined ? failure : failure.with({ retryAfterMs });
    }
    case "fault of ours":
      return new TypeError("cannot read what is not there");
  }
}
