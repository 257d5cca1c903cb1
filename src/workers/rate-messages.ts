import { sizeOf, UNITS } from "../limits/bucket.ts";
import type { BucketLevel, RateDecision, RateDemand, RateLimit, RateRelease, RateSubject } from "../limits/rates.ts";

/** One operation on rates. A release names only the ID of its take: the parent keeps the rest. */
export type RateStep = { readonly take: RateDemand } | { readonly release: RateReturn };

export type RateReturn = Pick<RateRelease, "id" | "usedTokens" | "usedRequests">;

/**
 * Steps as sent over the channel, once or twice per request: as numbers, because JSON with names costs as much as the rest
 * of the rate check. A subject is described once and has a number from then on.
 */
export interface RateMessage {
  /** Subjects not mentioned before; they get the next numbers. */
  readonly subjects: readonly SubjectRow[];
  /** Clears all subjects mentioned before, before the new ones are added. */
  readonly forget: boolean;
  /**
   * Steps in order. A take: its own number, tokens, count of subjects, numbers of the subjects. A release: the take's
   * number, negated, tokens used, requests used.
   */
  readonly steps: readonly number[];
}

/** Name, requests a minute, tokens a minute, concurrent requests; null for no limit. */
export type SubjectRow = readonly [string, number | null, number | null, number | null];

/**
 * Decisions in the order of the takes: 1 if admitted, or 0, index of the refusing subject, index of the limit in `LIMITS`,
 * retry-after in ms; then the levels of all buckets of all subjects, requests before tokens.
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
      else this.#release(step.release, steps);
    }
    return { subjects, forget, steps };
  }

  /** Numbers of the takes with these IDs that are not yet released. */
  numbersOf(ids: Iterable<string>): number[] {
    return [...ids].flatMap((id) => this.#taken.get(id) ?? []);
  }

  /** Returns a decision for each step; null for a release. */
  readReply(all: readonly RateStep[], reply: RateReply): (RateDecision | null)[] {
    const numbers = reply.values();
    return all.map((step) => ("take" in step ? this.#readDecision(step.take, numbers) : null));
  }

  #take({ id, tokens, subjects }: RateDemand, steps: number[], fresh: SubjectRow[]): void {
    this.#taken.set(id, ++this.#last);
    steps.push(this.#last, tokens, subjects.length);
    for (const { subject, requestsPerMinute, tokensPerMinute, concurrentRequests } of subjects) {
      // A subject with changed limits gets a new number.
      const key = `${requestsPerMinute} ${tokensPerMinute} ${concurrentRequests} ${subject}`;
      let number = this.#subjects.get(key);
      if (number === undefined) {
        this.#subjects.set(key, (number = this.#subjects.size));
        fresh.push([subject, requestsPerMinute ?? null, tokensPerMinute ?? null, concurrentRequests ?? null]);
      }
      steps.push(number);
    }
  }

  #release({ id, usedTokens, usedRequests = 1 }: RateReturn, steps: number[]): void {
    const number = this.#taken.get(id);
    if (number === undefined) return;
    this.#taken.delete(id);
    steps.push(-number, usedTokens, usedRequests);
  }

  #readDecision({ id, subjects }: RateDemand, numbers: Iterator<number>): RateDecision {
    const next = (): number => (numbers.next().value as number | undefined) ?? 0;
    const admitted = next() === 1;
    if (!admitted) this.#taken.delete(id);
    const refusal = admitted ? [] : [next(), next(), next()];
    const levels = subjects.map((limits) => ({
      subject: limits.subject,
      requests: this.#readLevel("requests", limits, next),
      tokens: this.#readLevel("tokens", limits, next),
    }));
    if (admitted) return { admitted, levels };
    const [of = 0, limit = 0, retryAfterMs = 0] = refusal;
    return { admitted, subject: subjects[of]!.subject, limit: LIMITS[limit]!, retryAfterMs, levels };
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
    for (let at = 0; at < numbers.length;) {
      const [number = 0, tokens = 0, third = 0] = numbers.slice(at, at + 3);
      at += 3;
      if (number < 0) {
        steps.push({ release: { id: String(-number), usedTokens: tokens, usedRequests: third === 0 ? 0 : 1 } });
      } else {
        const of = numbers.slice(at, at + third).map((index) => this.#subjects[index]!);
        at += third;
        steps.push({ take: { id: String(number), tokens, subjects: of } });
      }
    }
    return steps;
  }
}

/** Appends a decision to a reply. */
export function addDecision(reply: number[], { subjects }: RateDemand, decision: RateDecision): void {
  if (decision.admitted) reply.push(1);
  else {
    const of = subjects.findIndex(({ subject }) => subject === decision.subject);
    reply.push(0, of, LIMITS.indexOf(decision.limit), decision.retryAfterMs);
  }
  for (const { requests, tokens } of decision.levels) {
    if (requests !== undefined) reply.push(requests.level);
    if (tokens !== undefined) reply.push(tokens.level);
  }
}
