import type { Config } from "../config/config.ts";
import { formatAddress } from "../config/settings.ts";
import { type Clock, sleep } from "../core/clock.ts";

/** Runs `start`; what it has noted to be undone is undone when it fails. */
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

/** What was begun, and how it ends. */
export interface Teardown {
  readonly undo: (() => Promise<void> | void)[];
  readonly closeAll: () => Promise<void>;
}

/** Starts one entrance. Rejects with a message that names its setting and its address when it cannot listen. */
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

/** The time between saying that no work is taken any more and refusing it, in which balancers look elsewhere. */
export class ShutdownDelay {
  readonly #clock: Clock;
  readonly #shutdownDelayMs: number;
  readonly #cut = new AbortController();

  constructor(clock: Clock, shutdownDelayMs: number) {
    this.#clock = clock;
    this.#shutdownDelayMs = shutdownDelayMs;
  }

  /** Resolves when the time is over, or was cut short. */
  async wait(): Promise<void> {
    if (this.#shutdownDelayMs > 0) await sleep(this.#clock, this.#shutdownDelayMs, this.#cut.signal);
  }

  /** Waits no longer, now and later. */
  cut(): void {
    this.#cut.abort();
  }
}
