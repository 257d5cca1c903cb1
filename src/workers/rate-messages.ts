import { sizeOf, UNITS } from "../limits/bucket.ts";
import type { Amounts, CreditDemand } from "../limits/credits.ts";
import type {
  BucketLevel,
  RateDecision,
  RateDemand,
  RateLimit,
  RateRelease,
  RateSubject,
  SubjectLevels,
} from "../limits/rates.ts";

/** One operation on rates. A release names only the ID of its take: the parent keeps the rest. */
export type RateStep =
  | { readonly take: RateDemand }
  | { readonly release: RateReturn }
  | { readonly credit: CreditStep };

export type RateReturn = Pick<RateRelease, "id" | "usedTokens" | "usedRequests">;

/** A demand of the worker that sends it; it always states what it keeps. */
export type CreditStep = Omit<CreditDemand, "holder" | "kept"> & { readonly kept: Amounts };

/** Credit granted in addition to what was kept, and levels that include all credits. */
export interface CreditGrant {
  readonly granted: Amounts;
  readonly levels: SubjectLevels;
}

/** Null for a release. */
export type RateAnswer = RateDecision | CreditGrant | null;

/**
 * Steps as sent over the channel: as numbers, because JSON with names costs as much as the rest of the rate check. A subject is
 * described once and has a number from then on.
 */
export interface RateMessage {
  /** Subjects not mentioned before; they get the next numbers. */
  readonly subjects: readonly SubjectRow[];
  /** Clears all subjects mentioned before, before the new ones are added. */
  readonly forget: boolean;
  /**
   * Steps in order. A take: its own number, tokens, count of subjects, numbers of the subjects. A release: the take's
   * number, negated, tokens used, requests used. A credit: 0, the subject's number, then requests, tokens and places returned, kept,
   * and wished.
   */
  readonly steps: readonly number[];
}

/** Name, requests a minute, tokens a minute, concurrent requests; null for no limit. */
export type SubjectRow = readonly [string, number | null, number | null, number | null];

/**
 * Answers in the order of the takes and credits. A take: 1 if admitted, or 0, index of the refusing subject, index of the limit in
 * `LIMITS`, retry-after in ms; then the levels of all buckets of all subjects, requests before tokens. A credit: requests, tokens and
 * places granted, then the levels of the subject.
 */
export type RateReply = readonly number[];

const LIMITS: readonly RateLimit[] = ["requests", "tokens", "concurrency"];
/** Subjects numbered at a time; above this all are forgotten and numbered again. */
const MAX_SUBJECTS = 10_000;

/** The worker's side: encodes steps and decodes replies. */
export class RateEncoder {
  readonly #burstMs: number;
  readonly #subjects = new Map<string, number>();
  /** Numbers of the takes not yet released. */
  readonly #taken = new Map<string, number>();
  #last = 0;

  constructor(burstMs: number) {
    this.#burstMs = burstMs;
  }

  toMessage(all: readonly RateStep[]): RateMessage {
    const forget = this.#subjects.size > MAX_SUBJECTS;
    if (forget) this.#subjects.clear();
    const subjects: SubjectRow[] = [];
    const steps: number[] = [];
    for (const step of all) {
      if ("take" in step) this.#take(step.take, steps, subjects);
      else if ("release" in step) this.#release(step.release, steps);
      else this.#credit(step.credit, steps, subjects);
    }
    return { subjects, forget, steps };
  }

  /** Numbers of the takes with these IDs that are not yet released. */
  numbersOf(ids: Iterable<string>): number[] {
    return [...ids].flatMap((id) => this.#taken.get(id) ?? []);
  }

  /** Returns an answer for each step. */
  readReply(all: readonly RateStep[], reply: RateReply): RateAnswer[] {
    const numbers = reply.values();
    const next = (): number => numbers.next().value ?? 0;
    return all.map((step) => {
      if ("take" in step) return this.#readDecision(step.take, next);
      if ("release" in step) return null;
      const granted: Amounts = { requests: next(), tokens: next(), places: next() };
      return { granted, levels: this.#readLevels(step.credit.limits, next) };
    });
  }

  #take({ id, tokens, subjects }: RateDemand, steps: number[], fresh: SubjectRow[]): void {
    this.#taken.set(id, ++this.#last);
    steps.push(this.#last, tokens, subjects.length);
    for (const limits of subjects) steps.push(this.#numberOf(limits, fresh));
  }

  #credit({ limits, returned, kept, wished }: CreditStep, steps: number[], fresh: SubjectRow[]): void {
    steps.push(0, this.#numberOf(limits, fresh));
    for (const { requests, tokens, places } of [returned, kept, wished]) steps.push(requests, tokens, places);
  }

  #numberOf(limits: RateSubject, fresh: SubjectRow[]): number {
    const { subject, requestsPerMinute, tokensPerMinute, concurrentRequests } = limits;
    // A subject with changed limits gets a new number.
    const key = `${requestsPerMinute} ${tokensPerMinute} ${concurrentRequests} ${subject}`;
    let number = this.#subjects.get(key);
    if (number === undefined) {
      this.#subjects.set(key, (number = this.#subjects.size));
      fresh.push([subject, requestsPerMinute ?? null, tokensPerMinute ?? null, concurrentRequests ?? null]);
    }
    return number;
  }

  #release({ id, usedTokens, usedRequests = 1 }: RateReturn, steps: number[]): void {
    const number = this.#taken.get(id);
    if (number === undefined) return;
    this.#taken.delete(id);
    steps.push(-number, usedTokens, usedRequests);
  }

  #readDecision({ id, subjects }: RateDemand, next: () => number): RateDecision {
    const admitted = next() === 1;
    if (!admitted) this.#taken.delete(id);
    const refusal = admitted ? [] : [next(), next(), next()];
    const levels = subjects.map((limits) => this.#readLevels(limits, next));
    if (admitted) return { admitted, levels };
    const [of = 0, limit = 0, retryAfterMs = 0] = refusal;
    return { admitted, subject: subjects[of]!.subject, limit: LIMITS[limit]!, retryAfterMs, levels };
  }

  #readLevels(limits: RateSubject, next: () => number): SubjectLevels {
    return {
      subject: limits.subject,
      requests: this.#readLevel("requests", limits, next),
      tokens: this.#readLevel("tokens", limits, next),
    };
  }

  #readLevel(kind: "requests" | "tokens", limits: RateSubject, next: () => number): BucketLevel | undefined {
    const size = sizeOf(kind, limits, this.#burstMs);
    return size && { capacity: size.capacity / UNITS, level: next(), perMinute: size.perMinute };
  }
}

/** The parent's side: decodes the messages of one worker, with the subjects it has described. */
export class RateDecoder {
  #subjects: RateSubject[] = [];

  /** Returns the steps of a message; the ID of a take is its number. */
  read({ subjects, forget, steps: numbers }: RateMessage): RateStep[] {
    if (forget) this.#subjects = [];
    for (const [subject, requests, tokens, places] of subjects) {
      this.#subjects.push({
        subject,
        // Not used: the parent counts all accounts in one memory.
        accountId: "",
        requestsPerMinute: requests ?? undefined,
        tokensPerMinute: tokens ?? undefined,
        concurrentRequests: places ?? undefined,
      });
    }
    const steps: RateStep[] = [];
    let at = 0;
    const next = (): number => numbers[at++] ?? 0;
    const nextAmounts = (): Amounts => ({ requests: next(), tokens: next(), places: next() });
    while (at < numbers.length) {
      const number = next();
      if (number === 0) {
        const limits = this.#subjects[next()]!;
        steps.push({ credit: { limits, returned: nextAmounts(), kept: nextAmounts(), wished: nextAmounts() } });
      } else if (number < 0) {
        const usedTokens = next();
        steps.push({ release: { id: String(-number), usedTokens, usedRequests: next() === 0 ? 0 : 1 } });
      } else {
        const tokens = next();
        const of = Array.from({ length: next() }, () => this.#subjects[next()]!);
        steps.push({ take: { id: String(number), tokens, subjects: of } });
      }
    }
    return steps;
  }
}

/** Appends the answer to a step to a reply. */
export function addAnswer(reply: number[], step: RateStep, answer: RateAnswer): void {
  if (answer === null) return;
  if ("granted" in answer) {
    reply.push(answer.granted.requests, answer.granted.tokens, answer.granted.places);
    addLevels(reply, answer.levels);
    return;
  }
  if (answer.admitted) reply.push(1);
  else if ("take" in step) {
    const of = step.take.subjects.findIndex(({ subject }) => subject === answer.subject);
    reply.push(0, of, LIMITS.indexOf(answer.limit), answer.retryAfterMs);
  }
  for (const levels of answer.levels) addLevels(reply, levels);
}

function addLevels(reply: number[], { requests, tokens }: SubjectLevels): void {
  if (requests !== undefined) reply.push(requests.level);
  if (tokens !== undefined) reply.push(tokens.level);
}
