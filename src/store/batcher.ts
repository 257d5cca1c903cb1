/** Options of a Batcher. */
export interface BatcherOptions<D, A> {
  /** Decides all demands in order, in one transaction; returns an answer for each, or an error for one that is rejected alone. */
  readonly decide: (demands: readonly D[]) => Promise<readonly (A | Error)[]>;
  /** Waits for further demands before a batch begins. Default: for those of the same microtasks. */
  readonly gather?: () => Promise<void>;
  /** Limit for the answer to a demand, or a function that returns the one for a demand that is made now. */
  readonly limitMs: number | (() => number);
  /** Makes the error of a rejected demand: after the limit, with too many waiting, or when the transaction fails. */
  readonly toError: (message: string, cause?: unknown) => Error;
  /** Called with a decision that came after its demand was rejected, so that it can be undone. */
  readonly onLate?: ((demand: D, answer: A) => void) | undefined;
}

/** Demands per transaction, which must not take too long. */
const MAX_BATCH = 500;
/** Limit of waiting demands; further ones are rejected at once. */
const MAX_WAITING = 10_000;

interface Waiting<D, A> {
  readonly demand: D;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: Error) => void;
  /** Whether the demand was answered or rejected. */
  settled: boolean;
}

/**
 * Collects demands while a transaction is running, and decides them together in the next one: under load they share the wait
 * for locks and for the disk, and no two transactions of a process compete for the same rows.
 */
export class Batcher<D, A> {
  readonly #options: BatcherOptions<D, A>;
  readonly #waiting: Waiting<D, A>[] = [];
  #running = false;
  /** Whether the running transaction has exceeded a demand's limit. */
  #overdue = false;

  constructor(options: BatcherOptions<D, A>) {
    this.#options = options;
  }

  /**
   * Returns the answer to a demand. Rejects after `limitMs`, and at once while the running transaction is overdue: a hung
   * database delays the first callers, but not later ones. A late decision is passed to `onLate`.
   */
  ask(demand: D): Promise<A> {
    const { limitMs, toError } = this.#options;
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(toError("Too many requests wait for the database."));
    if (this.#overdue) return Promise.reject(toError(LATE));
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        waiting.settled = true;
      };
      const waiting: Waiting<D, A> = {
        demand,
        resolve: (answer) => {
          settle();
          resolve(answer);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
        settled: false,
      };
      // Pending I/O is read first: after this process was busy, the answer may already have arrived.
      const timer = setTimeout(
        () => setImmediate(() => this.#giveUp(waiting)),
        typeof limitMs === "number" ? limitMs : limitMs(),
      );
      this.#waiting.push(waiting);
      if (!this.#running) void this.#run();
    });
  }

  /** Rejects a demand that has waited too long, and all behind it, which wait for the same transaction. */
  #giveUp(waiting: Waiting<D, A>): void {
    if (waiting.settled) return;
    this.#overdue = true;
    for (const each of [waiting, ...this.#waiting.splice(0)]) each.reject(this.#options.toError(LATE));
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      await (this.#options.gather?.() ?? Promise.resolve());
      await this.#decide(this.#waiting.splice(0, MAX_BATCH));
      this.#overdue = false;
    }
    this.#running = false;
  }

  async #decide(batch: readonly Waiting<D, A>[]): Promise<void> {
    const { decide, toError, onLate } = this.#options;
    try {
      const answers = await decide(batch.map(({ demand }) => demand));
      // What `onLate` asks must not be rejected.
      this.#overdue = false;
      for (const [index, { demand, settled, resolve, reject }] of batch.entries()) {
        const answer = answers[index]!;
        if (answer instanceof Error) reject(answer);
        else if (settled) onLate?.(demand, answer);
        else resolve(answer);
      }
    } catch (cause) {
      const error = toError("The database is unavailable.", cause);
      for (const { reject } of batch) reject(error);
    }
  }
}

const LATE = "The database does not answer in time.";
