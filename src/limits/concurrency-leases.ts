import type { Clock } from "../core/clock.ts";
import { type RateStore, type RateSubject, RENEW_MS } from "./rates.ts";

export interface HeldPlacesOptions {
  readonly rates: RateStore;
  readonly clock: Clock;
  /** This process among those that share the state. */
  readonly replica: string;
  /** Gives 0 to 1. */
  readonly random: () => number;
}

/** The places of this process's requests under way: says every ten seconds that they are still there, and so is it. */
export class ConcurrencyLeases {
  readonly #options: HeldPlacesOptions;
  readonly #held = new Map<string, { readonly subjects: readonly RateSubject[]; readonly untilMs: number }>();
  #stopTimer: (() => void) | undefined;
  #closed = false;

  /** Begins with a first word at once: the others divide by how many there are. */
  constructor(options: HeldPlacesOptions) {
    this.#options = options;
    void this.#renew();
  }

  /** From now on, until it is dropped, and for no longer than `lastsMs`. */
  add(id: string, subjects: readonly RateSubject[], lastsMs: number): void {
    if (!subjects.some(holdsPlaces)) return;
    const limited = subjects.filter(holdsPlaces);
    const untilMs = this.#options.clock.monotonic() + lastsMs;
    this.#held.set(id, { subjects: limited, untilMs });
  }

  drop(id: string): void {
    this.#held.delete(id);
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
  }

  async #renew(): Promise<void> {
    const { rates, clock, replica, random } = this.#options;
    const nowMs = clock.monotonic();
    const held = [];
    for (const [id, { subjects, untilMs }] of this.#held) {
      if (untilMs <= nowMs) this.#held.delete(id);
      else for (const { subject, accountId } of subjects) held.push({ id, subject, accountId });
    }
    // What could not be said now is said again well before the leases end.
    await rates.renew({ replica, held }).catch(() => undefined);
    if (this.#closed) return;
    this.#stopTimer = clock.after(RENEW_MS * (0.9 + random() * 0.1), () => void this.#renew());
  }
}

function holdsPlaces({ concurrentRequests }: RateSubject): boolean {
  return concurrentRequests !== undefined;
}
