import { Failure } from "../../core/failure.ts";
import { Turns } from "../../scheduling/turns.ts";

/**
 * Reports at a time. SQLite has one thread for them. To PostgreSQL a process has three connections for them at most; other reports of
 * an account wait here and not at the database, which serves statements in the order in which they come.
 */
const AT_A_TIME = { sqlite: 1, postgres: 3 } as const;

/**
 * Runs reports for the accounts in turn, one of an account at a time, so that an account with many reports does not keep the
 * connections from others.
 */
export class ReportTurns {
  readonly #turns: Turns;

  constructor(database: keyof typeof AT_A_TIME) {
    this.#turns = new Turns(AT_A_TIME[database], { ofKey: 1 });
  }

  /**
   * Runs the work in a turn of the account. Throws `deadline_exceeded` when a statement takes longer than the database gives it. When the
   * signal aborts before the work has begun, rejects with the signal's reason.
   */
  async run<T>(accountId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#turns.run(accountId, signal, work);
    } catch (reason) {
      if (!(reason instanceof Error && "isTimeLimit" in reason)) throw reason;
      throw new Failure(
        "deadline_exceeded",
        "This report takes the database too long. Choose a shorter time, an account or a key.",
        { cause: reason },
      );
    }
  }
}
