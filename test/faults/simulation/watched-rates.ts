import type { Clock } from "../../../src/core/clock.ts";
import type { Limits } from "../../../src/core/principal.ts";
import { createMemoryRates } from "../../../src/limits/memory.ts";
import type { RateDecision, RateDemand, RateRelease, RateStore, RateSubject } from "../../../src/limits/rates.ts";
import { MAX_BANK_DELAY_MS } from "./bank.ts";
import type { Watch } from "./watch.ts";

/** What somebody else would count of one key or account. */
interface Count {
  places: number;
  /** A bucket of its own, in requests. */
  level: number;
  atMs: number;
  perMinute: number | undefined;
}

/** The product's rates in memory, with somebody beside them who counts too. */
export class WatchedRates implements RateStore {
  readonly #memory: RateStore;
  readonly #clock: Clock;
  readonly #burstMs: number;
  readonly #watch: Watch;
  readonly #outstanding = new Map<string, RateDemand & { readonly takenMs: number }>();
  /** The tokens that were said to be used, by what they were taken for. */
  readonly #used = new Map<string, number>();
  readonly #counts = new Map<string, Count>();
  /** Demands that were decided a moment ago. */
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
    // Decided at once, but known here a little later: others may have been let in whom nobody has counted yet.
    const places = new Map(demand.subjects.map(({ subject }) => [subject, this.#countOf(subject).places]));
    const isAlone = this.#deciding === 1;
    const decision = await decided;
    this.#deciding -= 1;
    if (decision.admitted) this.#admitted(demand);
    else if (decision.limit === "concurrency" && isAlone)
      this.#keptOut(demand, decision.subject, places.get(decision.subject)!);
    return decision;
  }

  release(release: RateRelease): Promise<void> {
    const { id, reservedTokens, usedTokens } = release;
    const demand = this.#outstanding.get(id);
    if (demand === undefined) this.#watch.breach("limits", `${id} gave back what it did not have`);
    else if (demand.tokens !== reservedTokens) this.#watch.breach("limits", `${id} gave back what it had not taken`);
    else for (const limits of demand.subjects) this.#giveBack(this.#countOf(limits.subject), limits, release);
    this.#outstanding.delete(id);
    this.#used.set(id, usedTokens);
    return this.#memory.release(release);
  }

  renew(renewal: Parameters<RateStore["renew"]>[0]): Promise<number> {
    for (const { id } of renewal.held)
      if (!this.#outstanding.has(id)) this.#watch.breach("limits", `${id} is over and keeps its place`);
    const renewed = new Set(renewal.held.map(({ id }) => id));
    for (const { id, subjects, takenMs } of this.#outstanding.values()) {
      const holdsPlace = subjects.some(({ concurrentRequests }) => concurrentRequests !== undefined);
      if (holdsPlace && !renewed.has(id) && this.#clock.monotonic() - takenMs > MAX_BANK_DELAY_MS)
        this.#watch.breach("limits", `${id} is under way and its place is not renewed`);
    }
    return this.#memory.renew(renewal);
  }

  close(): Promise<void> {
    return this.#memory.close();
  }

  /** What has taken something and has not given it back. */
  outstanding(): string[] {
    return [...this.#outstanding.keys()];
  }

  /** The tokens that it gave back as used; undefined when it gave nothing back. */
  usedBy(id: string): number | undefined {
    return this.#used.get(id);
  }

  /** Nobody holds anything any more: whoever asks now gets all places of every limit that there was, and not one more. */
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
        this.#watch.breach("limits", `${subject} at rest has ${admitted} of ${concurrentRequests} places`);
    }
  }

  #admitted(demand: RateDemand): void {
    if (this.#outstanding.has(demand.id)) this.#watch.breach("limits", `${demand.id} was taken twice`);
    this.#outstanding.set(demand.id, { ...demand, takenMs: this.#clock.monotonic() });
    for (const limits of demand.subjects) {
      const { subject, concurrentRequests, requestsPerMinute } = limits;
      const count = this.#countOf(subject);
      count.places += 1;
      if (concurrentRequests !== undefined && count.places > concurrentRequests)
        this.#watch.breach("limits", `${subject} has ${count.places} at a time, and may have ${concurrentRequests}`);
      this.#takeRequest(count, { subject, perMinute: requestsPerMinute });
    }
  }

  #keptOut({ subjects, id }: RateDemand, subject: string, places: number): void {
    const most = subjects.find((one) => one.subject === subject)?.concurrentRequests ?? Infinity;
    if (places < most) this.#watch.breach("limits", `${id} was kept out: ${subject} had ${places} of ${most} places`);
  }

  #giveBack(count: Count, { requestsPerMinute }: RateSubject, { usedRequests = 1 }: RateRelease): void {
    count.places -= 1;
    if (requestsPerMinute !== count.perMinute) count.perMinute = undefined;
    count.level += 1 - usedRequests;
  }

  /** At most so many as come in while the bucket fills, from a full one on. */
  #takeRequest(count: Count, { subject, perMinute }: { subject: string; perMinute: number | undefined }): void {
    const nowMs = this.#clock.monotonic();
    if (perMinute === undefined) {
      count.perMinute = undefined;
      return;
    }
    const capacity = Math.max((perMinute * this.#burstMs) / 60_000, 1);
    const gained = ((nowMs - count.atMs) * perMinute) / 60_000;
    // What was let in by another limit is given back by that one, too, and fills the bucket at its rate. After that a full
    // bucket is never less than what there really is.
    const level = count.perMinute === perMinute ? Math.min(count.level + gained, capacity) : capacity;
    // Moments are rounded to milliseconds.
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
