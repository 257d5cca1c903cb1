import type { Config } from "../config/config.ts";
import { formatAddress } from "../config/settings.ts";
import { type Clock, sleep } from "../core/clock.ts";

/** Runs `start`; if it fails, runs the `undo` steps collected so far in reverse. */
export async function undoneOnFailure<T>(start: (teardown: Teardown) => Promise<T>): Promise<T> {
  const undo: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    return await start({ undo, closeAll });
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Steps that undo what was started. */
export interface Teardown {
  readonly undo: (() => Promise<void> | void)[];
  readonly closeAll: () => Promise<void>;
}

/** Starts one inbound. When it cannot listen, rejects with a message that names its setting and its address. */
export async function startListening<T>(
  name: "http" | "grpc" | "operations",
  config: Config,
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (cause) {
    const { message } = cause as Error;
    const why = message.includes("EADDRINUSE") ? "another program listens there" : message;
    throw new Error(`${name}.listen: cannot use ${formatAddress(config[name].listen)}: ${why}`, { cause });
  }
}

/** Time between reporting "not ready" and refusing work, in which load balancers stop sending requests. */
export class ShutdownDelay {
  readonly #clock: Clock;
  readonly #shutdownDelayMs: number;
  readonly #cut = new AbortController();

  constructor(clock: Clock, shutdownDelayMs: number) {
    this.#clock = clock;
    this.#shutdownDelayMs = shutdownDelayMs;
  }

  /** Resolves when the time is over or was cut short. */
  async wait(): Promise<void> {
    if (this.#shutdownDelayMs > 0) await sleep(this.#clock, this.#shutdownDelayMs, this.#cut.signal);
  }

  /** Ends the wait now, and skips later ones. */
  cut(): void {
    this.#cut.abort();
  }
}
