import type { Clock } from "../../../src/core/clock.ts";
import type { Limits } from "../../../src/core/principal.ts";
import { isAttributed } from "../../../src/limits/attributed.ts";
import { createMemoryRates } from "../../../src/limits/memory.ts";
import type { RateDecision, RateDemand, RateRelease, RateStore, RateSubject } from "../../../src/limits/rates.ts";
import { MAX_BANK_DELAY_MS } from "./bank.ts";
import type { Watch } from "./watch.ts";

/** Independent count for one key or account. */
interface Count {
  places: number;
  /** Independent token bucket for requests. */
  level: number;
  atMs: number;
  perMinute: number | undefined;
}

/** The product's in-memory rates, with an independent count beside them. */
export class WatchedRates implements RateStore {
  readonly #memory: RateStore;
  readonly #clock: Clock;
  readonly #burstMs: number;
  readonly #watch: Watch;
  readonly #outstanding = new Map<string, RateDemand & { readonly takenMs: number }>();
  /** Reported used tokens by reservation. */
  readonly #used = new Map<string, number>();
  readonly #counts = new Map<string, Count>();
  /** Subjects by reservation. */
  readonly #taken = new Map<string, readonly string[]>();
  /** Demands whose decision is pending. */
  #deciding = 0;

  constructor(clock: Clock, { burstMs, watch }: { readonly burstMs: number; readonly watch: Watch }) {
    this.#memory = createMemoryRates({ clock, burstMs });
    this.#clock = clock;
    this.#burstMs = burstMs;
    this.#watch = watch;
  }

  async take(demand: RateDemand): Promise<RateDecision> {
    this.#deciding += 1;
    const decided = this.#memory.take(demand);
    // The decision is taken at once but known here later, so other admitted demands may not be counted yet.
    const places = new Map(demand.subjects.map(({ subject }) => [subject, this.#countOf(subject).places]));
    const isAlone = this.#deciding === 1;
    const decision = await decided;
    this.#deciding -= 1;
    if (!decision.admitted && isAttributed(decision.subject)) this.#watch.count("refused by a rate of an end user");
    if (decision.admitted) this.#admitted(demand);
    else if (decision.limit === "concurrency" && isAlone)
      this.#keptOut(demand, decision.subject, places.get(decision.subject)!);
    return decision;
  }

  release(release: RateRelease): Promise<void> {
    const { id, reservedTokens, usedTokens } = release;
    const demand = this.#outstanding.get(id);
    if (demand === undefined) this.#watch.breach("limits", `${id} was released without a reservation`);
    else if (demand.tokens !== reservedTokens)
      this.#watch.breach("limits", `${id} released other tokens than reserved`);
    else for (const limits of demand.subjects) this.#giveBack(this.#countOf(limits.subject), limits, release);
    this.#outstanding.delete(id);
    this.#used.set(id, usedTokens);
    return this.#memory.release(release);
  }

  renew(renewal: Parameters<RateStore["renew"]>[0]): Promise<number> {
    for (const { id } of renewal.held)
      if (!this.#outstanding.has(id)) this.#watch.breach("limits", `${id} was released, but its slot is renewed`);
    const renewed = new Set(renewal.held.map(({ id }) => id));
    for (const { id, subjects, takenMs } of this.#outstanding.values()) {
      const holdsPlace = subjects.some(({ concurrentRequests }) => concurrentRequests !== undefined);
      if (holdsPlace && !renewed.has(id) && this.#clock.monotonic() - takenMs > MAX_BANK_DELAY_MS)
        this.#watch.breach("limits", `${id} is in flight, but its slot is not renewed`);
    }
    return this.#memory.renew(renewal);
  }

  close(): Promise<void> {
    return this.#memory.close();
  }

  /** Reservations that were not released. */
  outstanding(): string[] {
    return [...this.#outstanding.keys()];
  }

  /** Whose rates a reservation took; undefined before it, and for one without limits. */
  takenOf(id: string): readonly string[] | undefined {
    return this.#taken.get(id);
  }

  /** Used tokens reported at release; undefined before it. */
  usedBy(id: string): number | undefined {
    return this.#used.get(id);
  }

  /** Checks, after all releases, that every concurrency limit has exactly all of its slots. */
  async audit(subjects: ReadonlyMap<string, Limits>): Promise<void> {
    for (const [subject, { concurrentRequests }] of subjects) {
      if (concurrentRequests === undefined) continue;
      const alone = {
        subject,
        accountId: "",
        requestsPerMinute: undefined,
        tokensPerMinute: undefined,
        concurrentRequests,
      };
      let admitted = 0;
      for (; admitted <= concurrentRequests; admitted++) {
        const demand = { id: `audit ${subject} ${admitted}`, subjects: [alone], tokens: 0 };
        if (!(await this.#memory.take(demand)).admitted) break;
      }
      if (admitted !== concurrentRequests)
        this.#watch.breach(
          "limits",
          `${subject} has ${admitted} of ${concurrentRequests} free slots after all releases`,
        );
    }
  }

  #admitted(demand: RateDemand): void {
    if (this.#outstanding.has(demand.id)) this.#watch.breach("limits", `${demand.id} was reserved twice`);
    this.#taken.set(
      demand.id,
      demand.subjects.map(({ subject }) => subject),
    );
    this.#outstanding.set(demand.id, { ...demand, takenMs: this.#clock.monotonic() });
    for (const limits of demand.subjects) {
      const { subject, concurrentRequests, requestsPerMinute } = limits;
      const count = this.#countOf(subject);
      // As in the product: a request without this limit, and a refused one that is only counted, hold none of it.
      if (concurrentRequests !== undefined && ++count.places > concurrentRequests)
        this.#watch.breach("limits", `${subject} has ${count.places} concurrent requests of ${concurrentRequests}`);
      this.#takeRequest(count, { subject, perMinute: requestsPerMinute });
    }
  }

  #keptOut({ subjects, id }: RateDemand, subject: string, places: number): void {
    const most = subjects.find((one) => one.subject === subject)?.concurrentRequests ?? Infinity;
    if (places < most)
      this.#watch.breach("limits", `${id} was refused, but ${subject} had ${places} of ${most} slots in use`);
  }

  #giveBack(
    count: Count,
    { requestsPerMinute, concurrentRequests }: RateSubject,
    { usedRequests = 1 }: RateRelease,
  ): void {
    if (concurrentRequests !== undefined) count.places -= 1;
    if (requestsPerMinute !== count.perMinute) count.perMinute = undefined;
    count.level += 1 - usedRequests;
  }

  /** Checks that requests are at most a full bucket and its refill. */
  #takeRequest(count: Count, { subject, perMinute }: { subject: string; perMinute: number | undefined }): void {
    const nowMs = this.#clock.monotonic();
    if (perMinute === undefined) {
      count.perMinute = undefined;
      return;
    }
    const capacity = Math.max((perMinute * this.#burstMs) / 60_000, 1);
    const gained = ((nowMs - count.atMs) * perMinute) / 60_000;
    // Requests admitted under another limit are also released under that one, and refill the bucket at its rate. After
    // that, a full bucket is an upper bound.
    const level = count.perMinute === perMinute ? Math.min(count.level + gained, capacity) : capacity;
    // Times are rounded to milliseconds.
    const rounding = perMinute / 60_000 + 1e-6;
    if (level - 1 < -rounding) this.#watch.breach("limits", `${subject} has more than ${perMinute} requests a minute`);
    count.level = level - 1;
    count.atMs = nowMs;
    count.perMinute = perMinute;
  }

  #countOf(subject: string): Count {
    let count = this.#counts.get(subject);
    if (count === undefined)
      this.#counts.set(subject, (count = { places: 0, level: 0, atMs: 0, perMinute: undefined }));
    return count;
  }
}
