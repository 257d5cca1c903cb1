import { Agent, request } from "undici";
import { MODEL } from "./deployment.ts";

/** Somebody who asks for completions at an even pace, whatever becomes of them. */
export interface Caller {
  readonly name: string;
  readonly everyMs: number;
  /** The key for the next request. */
  readonly key: () => string;
}

/** One request as its caller saw it. Times are of `performance.now()`. */
export interface Seen {
  readonly caller: string;
  readonly replica: number;
  readonly beganMs: number;
  readonly endedMs: number;
  /** The status, or what was wrong with the answer in words. */
  readonly outcome: number | string;
  /** Of the completion whose end was seen. */
  readonly id: string | undefined;
}

/** Requests on their way at a pace that does not depend on how they fare. */
export interface Traffic {
  /** In the order of their ends. */
  readonly seen: readonly Seen[];
  /** Asks nothing more; resolves when everything has been answered. */
  stop(): Promise<void>;
}

/** Longer than anything here is supposed to take. */
const PATIENCE_MS = 15_000;

/** Starts it: each caller asks one replica after the other, for whole and for streamed answers. */
export function startTraffic(urls: readonly string[], callers: readonly Caller[]): Traffic {
  const agent = new Agent({ connections: null, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS });
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
    if (stream && !text.endsWith("data: [DONE]\n\n")) return { outcome: "a stream without its end", id: undefined };
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

/** How often each outcome was seen. */
export function countOutcomes(seen: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of seen) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** Median, 99th percentile and maximum of a list of times; zeros for none. */
export function spread(timesMs: readonly number[]): {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
} {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** How long requests took. */
export function latencies(seen: readonly Seen[]): ReturnType<typeof spread> {
  return spread(seen.map(({ beganMs, endedMs }) => endedMs - beganMs));
}
