import { BoundedMap } from "../../core/bounded-map.ts";
import type { Clock } from "../../core/clock.ts";
import type { EndedRequest, RequestFeed } from "./request-feed.ts";
import { isAskedFor, type LogFilter } from "./request-filter.ts";
import { type AccountView, listRequests, type RequestListPorts } from "./request-list.ts";

/** Interval of queries for requests of other processes. */
const POLL_MS = 1_000;
/** Overlap of the queries: requests are written after their end, refused ones by seconds, and clocks differ. */
const OVERLAP_MS = 10_000;
/** Largest number of requests in a query. */
const POLL_ROWS = 200;
/** Shortest time between two batches. */
const GATHER_MS = 100;
/** Latest refused requests that are sent at the beginning. */
const MAX_REFUSED = 100;
/** Longest time without a batch: proxies and browsers close silent connections. */
const SILENCE_MS = 10_000;
/** Duration of a stream: the page then opens a new one. */
const LIFETIME_MS = 60 * 60_000;

/** Ports of watching. */
export interface WatchPorts extends RequestListPorts {
  readonly feed: RequestFeed;
  readonly clock: Clock;
}

interface Watched {
  readonly filter: LogFilter;
  readonly view: AccountView;
  /** Reads the database when the stream has its turn. May reject when the signal aborts. */
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>;
}

/** Requests that are sent together, and the number of omitted ones. */
export interface WatchBatch {
  readonly requests: readonly EndedRequest[];
  readonly skipped: number;
}

/**
 * Streams requests as they end: those of this process at once, those of others from the database. Begins with the latest refused
 * requests of this process, of which the list has samples only. Ends when the signal aborts, and after an hour.
 */
export async function* watchRequests(
  ports: WatchPorts,
  { filter, view, inTurn }: Watched,
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
    stopPolling = await startPolling(ports, { filter, view, inTurn }, unsent);
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

/** Polls the database for requests that were not there at the first query. Returns the function that stops it. */
async function startPolling(
  ports: WatchPorts,
  { filter, view, inTurn }: Watched,
  unsent: LiveQueue,
): Promise<() => void> {
  const { clock } = ports;
  let isOver = false;
  let cancelTimer = (): void => undefined;
  const read = () => listRequests(ports, { ...filter, limit: POLL_ROWS, sinceMs: clock.now() - OVERLAP_MS }, view);
  const look = () => inTurn(read);
  const poll = async (): Promise<void> => {
    const { requests, next } = await look();
    const news = requests.filter(({ entry }) => unsent.isNew(entry.completionId));
    if (isOver) return;
    for (const request of news.toReversed()) unsent.add(request);
    if (next !== undefined && news.length > 0 && news.length === requests.length) unsent.skip(1);
  };
  const wait = (): void => {
    if (!isOver) cancelTimer = clock.after(POLL_MS, () => void goOn());
  };
  /** While the database fails, only requests of this process arrive. */
  const goOn = (): Promise<void> => poll().then(wait, wait);

  await look().then(
    ({ requests }) => requests.forEach(({ entry }) => unsent.isNew(entry.completionId)),
    () => undefined,
  );
  wait();
  return () => {
    isOver = true;
    cancelTimer();
  };
}

/** Limit of waiting requests: a slow reader gets the latest. */
const MAX_WAITING = 200;
/** Largest number of requests in a batch. */
const MAX_BATCH = 100;
/** Limit of known IDs: more than overlapping queries return. */
const MAX_KNOWN = 2_000;

/** Queue of requests for one stream, each once. */
class LiveQueue {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #known = new BoundedMap<string, true>(MAX_KNOWN);
  readonly #waiting: EndedRequest[] = [];
  #skipped = 0;
  #added = (): void => undefined;

  /** `signal` ends all waits. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Whether a request is new; false the second time. */
  isNew(completionId: string): boolean {
    if (this.#known.has(completionId)) return false;
    this.#known.set(completionId, true);
    return true;
  }

  /** Adds a request. At the limit the oldest one is omitted. */
  add(ended: EndedRequest): void {
    this.isNew(ended.entry.completionId);
    this.#waiting.push(ended);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.skip(1);
    }
    this.#added();
  }

  /** Counts omitted requests. */
  skip(count: number): void {
    this.#skipped += count;
  }

  /** Takes the next batch, with the number of requests omitted since the last one. */
  take(): { readonly requests: readonly EndedRequest[]; readonly skipped: number } {
    const skipped = this.#skipped;
    this.#skipped = 0;
    return { requests: this.#waiting.splice(0, MAX_BATCH), skipped };
  }

  /** Resolves after this time, when the signal aborts, or, if waited for, when a request was added. */
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
