import type { KeyStore } from "../../access/key-store.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { Clock } from "../../core/clock.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import type { EndedRequest, RequestFeed } from "./request-feed.ts";
import { isAskedFor, type LogFilter } from "./request-filter.ts";

/** How often the ledger is asked for the requests of other processes. */
const POLL_MS = 1_000;
/** How far back it is asked each time: entries are written a moment after their end, and clocks differ. */
const OVERLAP_MS = 10_000;
/** How many entries it is asked for each time. */
const POLL_ROWS = 200;
/** The least time between two batches: nobody reads faster. */
const GATHER_MS = 100;
/** How many refused ones are told of at the beginning, the latest. */
const MAX_REFUSED = 100;
/** The longest time without a batch: proxies and browsers take a silent connection for a dead one. */
const SILENCE_MS = 10_000;
/** How long it goes on: the page then asks anew. */
const LIFETIME_MS = 60 * 60_000;

/** What watching stands on. */
export interface WatchPorts {
  readonly ledger: Pick<LedgerStore, "list">;
  readonly keys: Pick<KeyStore, "names">;
  readonly feed: RequestFeed;
  readonly clock: Clock;
}

/** Requests to be sent together, and how many were left out. */
export interface WatchBatch {
  readonly requests: readonly EndedRequest[];
  readonly skipped: number;
}

/**
 * The requests that end from now on: this process' at once, and what others write into the ledger by asking it. Begins,
 * when it has begun to look, with those that this process has refused lately, which are in no list. Ends when the signal
 * aborts, and after an hour.
 */
export async function* watchRequests(
  ports: WatchPorts,
  filter: LogFilter,
  signal: AbortSignal,
): AsyncGenerator<WatchBatch> {
  const { clock, feed } = ports;
  const unsent = new LiveQueue(clock, signal);
  const unsubscribe = feed.subscribe((ended) => {
    if (isAskedFor(ended.entry, filter)) unsent.add(ended);
  });
  const refused = [...feed.refusedOnes()].filter(({ entry }) => isAskedFor(entry, filter)).slice(-MAX_REFUSED);
  let stopPolling = (): void => undefined;
  try {
    stopPolling = await startPolling(ports, filter, unsent);
    const untilMs = clock.monotonic() + LIFETIME_MS;
    yield { requests: refused, skipped: 0 };
    while (!signal.aborted && clock.monotonic() < untilMs) {
      await unsent.wait({ forMs: SILENCE_MS, until: "some" });
      if (!signal.aborted) yield unsent.take();
      await unsent.wait({ forMs: GATHER_MS, until: "the end" });
    }
  } finally {
    unsubscribe();
    stopPolling();
  }
}

/** Looks into the ledger again and again, for what was not there at the first look. Returns what ends it. */
async function startPolling(
  { ledger, keys, clock }: WatchPorts,
  filter: LogFilter,
  unsent: LiveQueue,
): Promise<() => void> {
  let isOver = false;
  let cancelTimer = (): void => undefined;
  const look = () => ledger.list({ ...filter, limit: POLL_ROWS, sinceMs: clock.now() - OVERLAP_MS });
  const poll = async (): Promise<void> => {
    const { entries, next } = await look();
    const news = entries.filter(({ completionId }) => unsent.isNew(completionId));
    if (news.length === 0 || isOver) return;
    const names = await keys.names([...new Set(news.map(({ keyId }) => keyId))]);
    for (const entry of news.toReversed()) {
      // What was said to its caller, only its own process knows.
      unsent.add({ entry, keyName: names.get(entry.keyId), message: "", refused: false });
    }
    if (next !== undefined && news.length === entries.length) unsent.skip(1);
  };
  const wait = (): void => {
    if (!isOver) cancelTimer = clock.after(POLL_MS, () => void goOn());
  };
  /** A ledger that is away says nothing for a while; this process' own requests come in any case. */
  const goOn = (): Promise<void> => poll().then(wait, wait);

  await look().then(
    ({ entries }) => entries.forEach(({ completionId }) => unsent.isNew(completionId)),
    () => undefined,
  );
  wait();
  return () => {
    isOver = true;
    cancelTimer();
  };
}

/** How many requests wait to be sent at most: a slow reader gets the latest. */
const MAX_WAITING = 200;
/** How many are sent together. */
const MAX_BATCH = 100;
/** How many are known to have been seen: more than are ever looked at again. */
const MAX_KNOWN = 2_000;

/** The requests that one who watches has still to be sent, each once. */
class LiveQueue {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #known = new BoundedMap<string, true>(MAX_KNOWN);
  readonly #waiting: EndedRequest[] = [];
  #skipped = 0;
  #added = (): void => undefined;

  /** `signal` ends every wait. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Whether this is the first that is heard of a request; it is not the second time. */
  isNew(completionId: string): boolean {
    if (this.#known.has(completionId)) return false;
    this.#known.set(completionId, true);
    return true;
  }

  /** Takes a request to be sent. When too many wait, the one that has waited longest is left out. */
  add(ended: EndedRequest): void {
    this.isNew(ended.entry.completionId);
    this.#waiting.push(ended);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.skip(1);
    }
    this.#added();
  }

  /** Takes note of some that are left out. */
  skip(count: number): void {
    this.#skipped += count;
  }

  /** What is to be sent next, and how many have been left out since the last time. */
  take(): { readonly requests: readonly EndedRequest[]; readonly skipped: number } {
    const skipped = this.#skipped;
    this.#skipped = 0;
    return { requests: this.#waiting.splice(0, MAX_BATCH), skipped };
  }

  /** Resolves after this time, when the signal aborts, or when there is something to send if that is waited for. */
  async wait({ forMs, until }: { readonly forMs: number; readonly until: "some" | "the end" }): Promise<void> {
    if (this.#signal.aborted || (until === "some" && this.#waiting.length > 0)) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancelTimer();
        this.#signal.removeEventListener("abort", end);
        this.#added = () => undefined;
        resolve();
      };
      const cancelTimer = this.#clock.after(forMs, end);
      this.#signal.addEventListener("abort", end);
      if (until === "some") this.#added = end;
    });
  }
}
