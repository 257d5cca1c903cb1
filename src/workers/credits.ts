import type { Clock } from "../core/clock.ts";
import { type Amounts, isNothing, NOTHING } from "../limits/credits.ts";
import type {
  BucketLevel,
  RateDecision,
  RateDemand,
  RateRelease,
  RateSubject,
  SubjectLevels,
} from "../limits/rates.ts";
import type { CreditGrant, CreditStep } from "./rate-messages.ts";

/** Time after which a worker gives back what it has not spent, and states what it needs next. */
const WINDOW_MS = 100;
/** Demands in a window from which credit takes fewer messages than asking for each. */
const MIN_DEMANDS = 4;
/** Wished credit, as a multiple of what the last window needed. */
const MARGIN = 2;

const KINDS = ["requests", "tokens", "places"] as const;

type Counts = { -readonly [Kind in keyof Amounts]: Amounts[Kind] };

/** The credit of one subject. */
interface Line {
  readonly limits: RateSubject;
  /** Unspent credit that the worker may have at most, as the parent knows it. */
  size: Counts;
  /** How much of `size` is spent. More than it after use beyond a reservation. */
  spent: Counts;
  /** What cannot be spent again, because the worker would have more than `size`. */
  owed: Counts;
  /** Number of demands in this window. */
  demands: number;
  /** What the parent was asked for in this window and has not got back. */
  asked: Counts;
  /** Maximum of `spent` and `asked` together in this window. */
  peak: Counts;
  /** Whether a statement has no answer yet. */
  isStated: boolean;
  /** Levels that include `size`, and their time. */
  known: { readonly levels: SubjectLevels; readonly atMs: number } | undefined;
}

export interface CreditsOptions {
  readonly clock: Clock;
  /** Sends a statement to the parent. Its answer goes to `receive`. */
  readonly send: (step: CreditStep) => void;
}

/**
 * The worker's credit: parts of limits that it may spend without asking the parent. Every tenth of a second it gives back what it has
 * not spent, and wishes for what its demands of that time needed. What a request gives back is spent again, within the credit.
 */
export class Credits {
  readonly #options: CreditsOptions;
  readonly #lines = new Map<string, Line>();
  /** Requests in flight that were decided here. */
  readonly #decided = new Set<string>();
  #stopTimer: (() => void) | undefined;

  constructor(options: CreditsOptions) {
    this.#options = options;
  }

  /** Admits a demand if there is credit for all its subjects; otherwise the parent has to decide. */
  take(demand: RateDemand): RateDecision | undefined {
    const lines: Line[] = [];
    for (const limits of demand.subjects) {
      const line = this.#lines.get(limits.subject);
      if (line === undefined || !hasLimits(line, limits) || !hasRoom(line, demand)) {
        this.#ask(demand);
        return undefined;
      }
      lines.push(line);
    }
    for (const line of lines) count(line, "spent", demand);
    this.#decided.add(demand.id);
    const nowMs = this.#options.clock.monotonic();
    return { admitted: true, levels: lines.map((line) => levelsAt(line, nowMs)) };
  }

  /** Releases a request that was decided here; false for another one. */
  release({ id, subjects, reservedTokens, usedTokens, usedRequests = 1 }: RateRelease): boolean {
    const isDecidedHere = this.#decided.delete(id);
    for (const limits of subjects) {
      const taken = takenBy(limits, { tokens: reservedTokens - usedTokens });
      const returned = usedRequests === 0 ? taken : { ...taken, requests: 0 };
      if (isDecidedHere) this.#giveBack(limits, returned);
      else this.#noteReturned(limits, returned);
    }
    return isDecidedHere;
  }

  /** Corrects the parent's levels by what this worker has spent of its credit. */
  correct(decision: RateDecision): RateDecision {
    const atMs = this.#options.clock.monotonic();
    const levels = decision.levels.map((levelsOfOne) => {
      const line = this.#lines.get(levelsOfOne.subject);
      if (line === undefined) return levelsOfOne;
      line.known = { levels: levelsOfOne, atMs };
      return levelsAt(line, atMs);
    });
    return { ...decision, levels };
  }

  /** Receives the answer to a statement. */
  receive({ limits }: CreditStep, { granted, levels }: CreditGrant): void {
    // A line stays until its statement is answered.
    const line = this.#lines.get(limits.subject)!;
    line.isStated = false;
    line.known = { levels, atMs: this.#options.clock.monotonic() };
    for (const kind of KINDS) line.size[kind] += granted[kind];
    if (isNothing(line.size)) this.#state(line, NOTHING);
  }

  /** Gives back what is unspent of a subject. */
  recall(subject: string): Amounts {
    const line = this.#lines.get(subject);
    if (line === undefined) return NOTHING;
    const returned = { ...NOTHING };
    for (const kind of KINDS) returned[kind] = line.owed[kind] + line.size[kind] - line.spent[kind];
    [line.size, line.spent, line.owed] = [{ ...NOTHING }, { ...NOTHING }, { ...NOTHING }];
    return returned;
  }

  close(): void {
    this.#stopTimer?.();
  }

  /** Counts a demand that the parent decides. */
  #ask(demand: RateDemand): void {
    for (const limits of demand.subjects) {
      const line = this.#lineOf(limits);
      // If its limits were changed, a new line follows when this one has ended.
      if (hasLimits(line, limits)) count(line, "asked", demand);
    }
  }

  #noteReturned({ subject }: RateSubject, returned: Amounts): void {
    const line = this.#lines.get(subject);
    if (line === undefined) return;
    for (const kind of KINDS) line.asked[kind] = Math.max(line.asked[kind] - returned[kind], 0);
  }

  #lineOf(limits: RateSubject): Line {
    let line = this.#lines.get(limits.subject);
    if (line === undefined) {
      this.#lines.set(limits.subject, (line = createLine(limits)));
      this.#stopTimer ??= this.#options.clock.after(WINDOW_MS, () => this.#endWindow());
    }
    return line;
  }

  #giveBack(limits: RateSubject, returned: Amounts): void {
    const line = this.#lineOf(limits);
    for (const kind of KINDS) {
      const spent = line.spent[kind] - returned[kind];
      line.spent[kind] = Math.max(spent, 0);
      line.owed[kind] += Math.max(-spent, 0);
    }
    // Without credit the subject may be close to its limit, so others need it at once.
    if (isNothing(line.size) && !line.isStated) this.#state(line, NOTHING);
  }

  #endWindow(): void {
    for (const line of this.#lines.values()) {
      if (line.isStated) continue;
      const { demands, peak } = line;
      Object.assign(line, { demands: 0, peak: { ...NOTHING }, asked: { ...NOTHING } });
      const needed = { ...NOTHING };
      if (demands >= MIN_DEMANDS) for (const kind of KINDS) needed[kind] = MARGIN * peak[kind];
      this.#state(line, needed);
      if (!line.isStated) this.#lines.delete(line.limits.subject);
    }
    this.#stopTimer =
      this.#lines.size === 0 ? undefined : this.#options.clock.after(WINDOW_MS, () => this.#endWindow());
  }

  /** Gives back what the worker does not need, and wishes for what it lacks. Sends nothing if there is neither. */
  #state(line: Line, needed: Amounts): void {
    const hadCredit = !isNothing(line.size);
    const [returned, kept, wished] = [{ ...NOTHING }, { ...NOTHING }, { ...NOTHING }];
    for (const kind of KINDS) {
      const left = line.size[kind] - line.spent[kind];
      kept[kind] = Math.min(Math.max(left, 0), needed[kind]);
      returned[kind] = line.owed[kind] + left - kept[kind];
      wished[kind] = needed[kind] - kept[kind];
    }
    Object.assign(line, { size: { ...kept }, spent: { ...NOTHING }, owed: { ...NOTHING } });
    if (!hadCredit && isNothing(returned) && isNothing(wished)) return;
    line.isStated = true;
    this.#options.send({ limits: line.limits, returned, kept, wished });
  }
}

function createLine(limits: RateSubject): Line {
  return {
    limits,
    size: { ...NOTHING },
    spent: { ...NOTHING },
    owed: { ...NOTHING },
    demands: 0,
    peak: { ...NOTHING },
    asked: { ...NOTHING },
    isStated: false,
    known: undefined,
  };
}

/** Counts a demand as spent or asked for. */
function count(line: Line, how: "spent" | "asked", demand: RateDemand): void {
  line.demands += 1;
  const taken = takenBy(line.limits, demand);
  for (const kind of KINDS) {
    line[how][kind] += taken[kind];
    line.peak[kind] = Math.max(line.peak[kind], line.spent[kind] + line.asked[kind]);
  }
}

function hasLimits({ limits }: Line, other: RateSubject): boolean {
  return (
    limits.requestsPerMinute === other.requestsPerMinute &&
    limits.tokensPerMinute === other.tokensPerMinute &&
    limits.concurrentRequests === other.concurrentRequests
  );
}

/** What a demand takes of the limits that are set. */
function takenBy(limits: RateSubject, { tokens }: Pick<RateDemand, "tokens">): Amounts {
  return {
    requests: limits.requestsPerMinute === undefined ? 0 : 1,
    tokens: limits.tokensPerMinute === undefined ? 0 : tokens,
    places: limits.concurrentRequests === undefined ? 0 : 1,
  };
}

function hasRoom({ limits, size, spent }: Line, demand: RateDemand): boolean {
  const taken = takenBy(limits, demand);
  return KINDS.every((kind) => spent[kind] + taken[kind] <= size[kind]);
}

function levelsAt({ known, spent }: Line, nowMs: number): SubjectLevels {
  const { levels, atMs } = known!;
  const levelOf = (kind: "requests" | "tokens"): BucketLevel | undefined => {
    const bucket = levels[kind];
    if (bucket === undefined) return undefined;
    const refilled = bucket.level + ((nowMs - atMs) * bucket.perMinute) / 60_000;
    return { ...bucket, level: Math.min(refilled, bucket.capacity) - spent[kind] };
  };
  return { subject: levels.subject, requests: levelOf("requests"), tokens: levelOf("tokens") };
}
