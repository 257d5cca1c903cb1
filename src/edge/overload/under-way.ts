import type { Clock } from "../../core/clock.ts";

/** A place among the completions that are under way. */
export interface Place {
  /** Its first content is there, or will come with all the rest. */
  started(): void;
  /** It is over. Must be called once. */
  end(): void;
}

/** What is known of the completions under way. */
export interface Progress {
  /** Those that have content, or will have all of it at once. */
  readonly started: number;
  /** Those that have none yet; without those that have been waiting for it for too long to be expected. */
  readonly starting: number;
  /** How long completions take to their first content, on average. */
  readonly firstContentMs: number;
  /** How long they take in all. */
  readonly wholeMs: number;
}

/** Who has no content after so many times as long as the others took, and after so long, is not expected to have any soon. */
const PATIENCE = 4;
const LEAST_PATIENCE_MS = 2_000;

/** Counts the completions under way, and learns how long they take. */
export class UnderWay {
  readonly #clock: Clock;
  /** When those began that are expected to have content soon, in that order. */
  readonly #starting = new Set<{ readonly begunMs: number }>();
  readonly #firstContent = new RecentMean();
  readonly #whole = new RecentMean();
  #started = 0;
  #count = 0;
  #firstBegunMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#count;
  }

  begin(): Place {
    const one = { begunMs: this.#clock.monotonic() };
    this.#firstBegunMs ??= one.begunMs;
    this.#count += 1;
    this.#starting.add(one);
    let hasStarted = false;
    const started = (): void => {
      if (hasStarted) return;
      hasStarted = true;
      this.#starting.delete(one);
      this.#started += 1;
      this.#firstContent.add(this.#clock.monotonic() - one.begunMs);
    };
    return {
      started,
      end: () => {
        started();
        this.#started -= 1;
        this.#count -= 1;
        this.#whole.add(this.#clock.monotonic() - one.begunMs);
      },
    };
  }

  /** What is known now. To be asked regularly: what is older counts less each time. */
  progress(): Progress {
    const nowMs = this.#clock.monotonic();
    this.#firstContent.fade();
    this.#whole.fade();
    const firstContentMs = this.#firstContent.value ?? 0;
    const patienceMs = Math.max(PATIENCE * firstContentMs, LEAST_PATIENCE_MS);
    // A model that hangs says nothing about the load of this process, and neither does a body that comes slowly.
    for (const one of this.#starting) {
      if (nowMs - one.begunMs <= patienceMs) break;
      this.#starting.delete(one);
    }
    return {
      started: this.#started,
      starting: this.#starting.size,
      firstContentMs,
      // As long as none has ended, at least as long as the first has taken.
      wholeMs: this.#whole.value ?? nowMs - (this.#firstBegunMs ?? nowMs),
    };
  }
}

/** How much of what was counted still counts when it has faded once. */
const FADED = 0.9;

/** A mean in which what is older counts less. */
class RecentMean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count += 1;
  }

  fade(): void {
    this.#sum *= FADED;
    this.#count *= FADED;
  }

  /** Undefined as long as there is nothing. */
  get value(): number | undefined {
    return this.#count === 0 ? undefined : this.#sum / this.#count;
  }
}
