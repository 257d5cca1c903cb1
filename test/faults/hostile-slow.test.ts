import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawConnection, rawRequest } from "../product/support/raw-http.ts";
import { RawHttp2 } from "./hostile/raw-http2.ts";
import { MIB, startTarget, type Target } from "./hostile/target.ts";
import { SLOW_KINDS, type SlowClient } from "./hostile/slow.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const SLOW_CLIENTS = scale(500, 4_000);
const GONE_MS = 15_000;
/** Interval between two writes of slow clients. */
const DRIP_MS = 500;
/** Number of normal clients. */
const GOOD_CLIENTS = 2;
/** Latencies below this cannot be distinguished on a shared machine. */
const NOISE_MS = 50;

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});

afterAll(async () => {
  await target.stop();
});

/** The p99 of normal requests, in sequence for each client, until the signal. */
async function goodP99(signal: AbortSignal): Promise<number> {
  const took: number[] = [];
  const client = async (): Promise<void> => {
    while (!signal.aborted) took.push(await target.goodRequest());
  };
  await Promise.all(Array.from({ length: GOOD_CLIENTS }, client));
  return took.toSorted((one, other) => one - other)[Math.floor(took.length * 0.99)]!;
}

/**
 * Waits until both entrances have accepted all connections: a listener's backlog is short, and excess connections are
 * lost.
 */
async function accepted(): Promise<void> {
  const { httpPort, grpcPort } = target.product;
  const http = new RawConnection(httpPort).write(rawRequest("GET /healthz", ["host: parley.example"]));
  const grpc = new RawHttp2(grpcPort).hello();
  await http.response();
  await expect.poll(() => grpc.arrived.length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
  http.close();
  grpc.close();
}

/** Opens all slow clients; returns when the last of each kind was closed, by the kind's name. */
async function attack(): Promise<Map<string, number>> {
  const clients: { readonly kind: string; readonly client: SlowClient; readonly sinceMs: number }[] = [];
  const lastMs = new Map<string, number>();
  const take = (): void => {
    for (const [index, { kind, client, sinceMs }] of [...clients.entries()].toReversed()) {
      if (!client.gone) continue;
      lastMs.set(kind, Math.max(lastMs.get(kind) ?? 0, performance.now() - sinceMs));
      client.close();
      clients.splice(index, 1);
    }
  };
  for (let index = 0; index < SLOW_CLIENTS; index++) {
    const { name, open } = SLOW_KINDS[index % SLOW_KINDS.length]!;
    clients.push({ kind: name, client: open(target), sinceMs: performance.now() });
    if (index % 100 === 99) await accepted();
  }
  const giveUpMs = performance.now() + 2 * GONE_MS;
  while (clients.length > 0 && performance.now() < giveUpMs) {
    for (const { client } of clients) client.drip();
    await wait(DRIP_MS);
    take();
  }
  for (const { client } of clients) client.close();
  expect(clients.map(({ kind }) => kind)).toEqual([]);
  return lastMs;
}

describe("slow clients that occupy connections", () => {
  it(
    "are closed within fifteen seconds, without an effect on other clients",
    { timeout: timeLimit(60, 120) },
    async () => {
      await goodP99(AbortSignal.timeout(1000));
      const idleBefore = await goodP99(AbortSignal.timeout(scale(2_000, 10_000)));
      const bytesBefore = target.product.rssBytes();
      const heardBefore = target.heard();

      const over = new AbortController();
      const good = goodP99(over.signal);
      const lastMs = await attack().finally(() => over.abort());
      const attacked = await good;
      const bytes = target.product.rssBytes() - bytesBefore;
      const served = target.heard() - heardBefore;
      const idleAfter = await goodP99(AbortSignal.timeout(scale(2_000, 10_000)));

      expect([...lastMs.keys()].toSorted()).toEqual(SLOW_KINDS.map(({ name }) => name).toSorted());
      for (const [kind, ms] of lastMs) console.log(`${kind}: ${Math.round(ms)} ms`);
      const slowestMs = Math.round(Math.max(...lastMs.values()));
      figure({ name: "slowloris: slow clients", value: SLOW_CLIENTS, unit: "", atLeast: SLOW_CLIENTS });
      figure({ name: "slowloris: the last slow client gone", value: slowestMs, unit: "ms", atMost: GONE_MS });
      const ratio = Math.max(attacked, NOISE_MS) / Math.max(idleBefore, idleAfter, NOISE_MS);
      const times = [idleBefore, attacked, idleAfter].map((ms) => Math.round(ms)).join(", ");
      console.log(`p99 of good clients before, during and after, in ms: ${times}; ${served} requests during`);
      figure({
        name: "slowloris: p99 of normal clients, as a multiple of the idle one",
        value: Math.round(ratio * 100) / 100,
        unit: "",
        atMost: 2,
      });
      // Some 90 MiB, 55 of them the heap of a process that begins to serve.
      figure({ name: "slowloris: memory", value: Math.round(bytes / MIB), unit: "MiB", atMost: scale(160, 384) });
      expect(served).toBeGreaterThan(0);
    },
  );
});
