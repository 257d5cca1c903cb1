import { Agent, request } from "undici";
import { MODEL } from "./deployment.ts";

/** A caller with a constant request rate, independent of the responses. */
export interface Caller {
  readonly name: string;
  readonly everyMs: number;
  /** Returns the key for the next request. */
  readonly key: () => string;
}

/** One request as its caller saw it. Times are from `performance.now()`. */
export interface Seen {
  readonly caller: string;
  readonly replica: number;
  readonly beganMs: number;
  readonly endedMs: number;
  /** The status, or the error in the response as text. */
  readonly outcome: number | string;
  /** ID of a completion whose end was received. */
  readonly id: string | undefined;
}

/** Open-loop traffic. */
export interface Traffic {
  /** Sorted by their end. */
  readonly seen: readonly Seen[];
  /** Sends no more requests; resolves when those in flight have ended. */
  stop(): Promise<void>;
}

/** Upper bound of every request's duration. */
const TIMEOUT_MS = 15_000;

/** Starts the traffic: each caller uses the replicas in turn, for whole and streamed answers. */
export function startTraffic(urls: readonly string[], callers: readonly Caller[]): Traffic {
  const agent = new Agent({ connections: null, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  const seen: Seen[] = [];
  const underWay = new Set<Promise<void>>();

  const complete = async (url: string, key: string, stream: boolean): Promise<Pick<Seen, "outcome" | "id">> => {
    const { statusCode, body } = await request(`${url}/v1/chat/completions`, {
      dispatcher: agent,
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, stream, max_tokens: 10, messages: [{ role: "user", content: "hi" }] }),
    });
    const text = await body.text();
    if (statusCode !== 200) return { outcome: statusCode, id: undefined };
    if (stream && !text.endsWith("data: [DONE]\n\n")) return { outcome: "a stream without [DONE]", id: undefined };
    const first = stream ? text.slice("data: ".length, text.indexOf("\n")) : text;
    return { outcome: 200, id: (JSON.parse(first) as { id: string }).id };
  };

  const timers = callers.map(({ name, everyMs, key }) => {
    let count = 0;
    return setInterval(() => {
      const turn = count++;
      const replica = turn % urls.length;
      const beganMs = performance.now();
      const done = complete(urls[replica]!, key(), Math.floor(turn / urls.length) % 2 === 1)
        .catch((error: unknown) => ({ outcome: String(error), id: undefined }))
        .then((answer) => void seen.push({ caller: name, replica, beganMs, endedMs: performance.now(), ...answer }))
        .finally(() => underWay.delete(done));
      underWay.add(done);
    }, everyMs);
  });

  return {
    seen,
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(underWay);
      await agent.destroy();
    },
  };
}

/** Counts each outcome. */
export function countOutcomes(seen: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of seen) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** Median, 99th percentile and maximum; zeros for no values. */
export function spread(timesMs: readonly number[]): {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
} {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Latencies of requests. */
export function latencies(seen: readonly Seen[]): ReturnType<typeof spread> {
  return spread(seen.map(({ beganMs, endedMs }) => endedMs - beganMs));
}
