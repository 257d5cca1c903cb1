/** How a Batcher works. */
export interface BatcherOptions<D, A> {
  /** Decides all demands, in their order, in one transaction; an answer for each. */
  readonly decide: (demands: readonly D[]) => Promise<readonly A[]>;
  /** Waits for those who belong to a batch that is about to begin. Default: for those who ask in the same microtasks. */
  readonly gather?: () => Promise<void>;
  /** How long a demand waits for its answer. */
  readonly limitMs: number;
  /** What it is rejected with, when that time is over, too many wait, or the transaction fails. */
  readonly toError: (message: string, cause?: unknown) => Error;
  /** Is called with what was decided when nobody waited for it any more, for it to be undone. */
  readonly onLate?: ((demand: D, answer: A) => void) | undefined;
}

/** So many demands are decided together: one transaction must not take too long. */
const MAX_BATCH = 500;
/** So many may wait; the next ones are refused at once. */
const MAX_WAITING = 10_000;

interface Waiting<D, A> {
  readonly demand: D;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: Error) => void;
  /** Whoever asked has been told. */
  settled: boolean;
}

/**
 * Collects demands while a transaction is under way, and has them all decided in the next: under load many share the wait
 * for locks and for the disk, and no two transactions of one process compete for the same rows.
 */
export class Batcher<D, A> {
  readonly #options: BatcherOptions<D, A>;
  readonly #waiting: Waiting<D, A>[] = [];
  #running = false;
  /** The transaction under way has kept somebody waiting for too long. */
  #overdue = false;

  constructor(options: BatcherOptions<D, A>) {
    this.#options = options;
  }

  /**
   * The answer to one demand. Rejects when its time is over, whatever the database does, and at once behind a transaction
   * that takes too long already: a database that hangs delays those who met it first, and nobody after them. What was
   * decided too late goes to `onLate`.
   */
  ask(demand: D): Promise<A> {
    const { limitMs, toError } = this.#options;
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(toError("Too many wait for the database."));
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
      // What has arrived is read first: a process that was busy for so long is not the fault of the database.
      const timer = setTimeout(() => setImmediate(() => this.#giveUp(waiting)), limitMs);
      this.#waiting.push(waiting);
      if (!this.#running) void this.#run();
    });
  }

  /** For whoever has waited too long, and for those behind: they would wait for the same transaction. */
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
      for (const [index, { demand, settled, resolve }] of batch.entries()) {
        if (settled) onLate?.(demand, answers[index]!);
        else resolve(answers[index]!);
      }
    } catch (cause) {
      const error = toError("The database cannot be asked.", cause);
      for (const { reject } of batch) reject(error);
    }
  }
}

const LATE = "The database does not answer in time.";
