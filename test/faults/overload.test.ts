import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { answerText, localModel, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { rawRequest } from "../product/support/raw-http.ts";
import { quietMachine } from "./overload/core-time.ts";
import { type Processes, startProcesses } from "./overload/processes.ts";
import type { Outcome, Phase } from "./overload/generator.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";
import { postChat } from "../support/post-json.ts";

/**
 * 12,000 events in six seconds, in forty packets. This costs the product as much as some 400 separate events, which is
 * a page of text. Callers and upstream share one core, and could not serve ten times the product's load if each event
 * were a packet for them too.
 */
const ANSWER = { chunks: 12_000, intervalMs: 150, firstMs: 250, together: 300 };
const ALONE_MS = ANSWER.firstMs + (ANSWER.chunks / ANSWER.together) * ANSWER.intervalMs;
/** Streams that start together end together, so goodput is measured over at least two durations of an answer. */
const SHORT_SECONDS = (2 * ALONE_MS) / 1_000;
/** Timeout of callers: three times the duration of an answer without load. */
const TIMEOUT_MS = 20_000;
/**
 * An idle process lets a first queue form before it knows the cost of requests. What is left of that queue is refused after
 * `overload.max_wait_ms` (10 s).
 */
const SETTLE_SECONDS = 12;
const REFUSED_MS = 100;
const HEALTH_MS = 100;
/** More than the requests that are ever in flight. */
const CONNECTIONS = 2_000;
const MIN_REQUESTS = 40;
/** Timeout for the wait until the machine is idle. */
const IDLE_WAIT_MS = 20_000;

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
}

describe("ten times the capacity of one process", () => {
  let processes: Processes;
  /** Highest goodput in answers per second, corrected to a core of its own. */
  let peak: number;
  beforeAll(async () => {
    processes = await startProcesses({ answer: ANSWER, keys: 22 });
    // Warms up the code under measurement.
    await processes.run(all(20, { seconds: 4, settleSeconds: 1 }));
  }, 60_000);
  afterAll(() => processes.stop());

  const all = (perSecond: number, { seconds, settleSeconds }: Pick<Phase, "seconds" | "settleSeconds">): Phase => ({
    seconds,
    settleSeconds,
    connections: CONNECTIONS,
    patienceMs: TIMEOUT_MS,
    streams: [{ name: "all", keys: processes.keys.slice(0, 20), perSecond }],
  });
  /** Waits until other programs are idle, because their load cannot be corrected completely. */
  const quiet = async (): Promise<void> => {
    const others = await quietMachine(IDLE_WAIT_MS);
    console.log(`others have ${(100 * others).toFixed(0)} % of the processors`);
  };
  /** Goodput as measured, and corrected to a core of its own. */
  const goodput = async (
    perSecond: number,
    seconds: number,
  ): Promise<{ raw: number; own: number; told: Outcome; slowdown: number }> => {
    const { outcomes, slowdown } = await processes.run(
      all(perSecond, { seconds: seconds + SETTLE_SECONDS, settleSeconds: SETTLE_SECONDS }),
    );
    const told = outcomes["all"]!;
    const raw = told.servedMs.length / seconds;
    const words = `${perSecond.toFixed(0)} a second: ${raw.toFixed(0)} answered, ${told.refusedMs.length} refused,`;
    console.log(`${words} ${told.late} late; ${slowdown.toFixed(1)} times slower than on a core of its own`);
    return { raw, own: raw * slowdown, told, slowdown };
  };

  it(
    "goodput stays close to the peak, excess requests are refused at once, and the health endpoint responds",
    async () => {
      await quiet();
      let nominal = scale(80, 40);
      let raw = 0;
      peak = 0;
      // Doubles the load until goodput no longer follows.
      for (let found = false; !found; nominal *= 2) {
        const reached = await goodput(nominal, scale(SHORT_SECONDS, 20));
        found = reached.raw < nominal * 0.8;
        raw = Math.max(raw, reached.raw);
        peak = Math.max(peak, reached.own);
      }
      const measure = async () => {
        const looks: number[] = [];
        const look = setInterval(() => {
          const beganMs = performance.now();
          fetch(`${processes.operationsUrl}/healthz`).then(
            (answer) => void looks.push(answer.ok ? performance.now() - beganMs : NaN),
            () => void looks.push(NaN),
          );
        }, 50);
        const reached = await goodput(10 * raw, scale(SHORT_SECONDS, 60)).finally(() => clearInterval(look));
        return { ...reached, looks };
      };
      const measured = [await measure()];
      const refusalsMs = (): number =>
        Math.min(...measured.map((one) => quantile(one.told.refusedMs, 0.99) / one.slowdown));
      const healthMs = (): number => Math.min(...measured.map((one) => quantile(one.looks, 0.99) / one.slowdown));
      const share = (): number => Math.max(...measured.map((one) => (100 * one.own) / peak));
      const wrong = [measured[0]!.told.wrong];
      const wasPeak = (): boolean => measured.at(-1)!.own <= 1.25 * peak;
      for (let again = 0; again < 2; again++) {
        const { own, raw: reached } = measured.at(-1)!;
        if (!wasPeak()) {
          // The peak was higher, so ten times the load is higher too.
          peak = own;
          raw = reached;
          measured.length = 0;
        } else if (refusalsMs() <= REFUSED_MS && share() >= 80) break;
        // Retries, because load of other programs varies and a fault of the product does not.
        await quiet();
        measured.push(await measure());
        wrong.push(measured.at(-1)!.told.wrong);
      }
      expect(wasPeak()).toBe(true);
      const { told } = measured[0]!;
      expect(wrong).toEqual(wrong.map(() => ({})));
      figure({ name: "requests that were refused", value: told.refusedMs.length, unit: "", atLeast: MIN_REQUESTS });
      figure({
        name: "goodput at ten times the capacity, of the peak's",
        value: Math.round(share()),
        unit: "%",
        atLeast: 80,
      });
      figure({
        name: "refusals p99 at ten times the capacity, without time of other programs",
        value: Math.round(refusalsMs()),
        unit: "ms",
        atMost: REFUSED_MS,
      });
      figure({
        name: "health endpoint p99 at ten times the capacity, without time of other programs",
        value: Math.round(healthMs()),
        unit: "ms",
        atMost: HEALTH_MS,
      });
      // No log line per refusal.
      const lines = processes
        .log()
        .split("\n")
        .filter((line) => line.includes('"overload"') || /overload: /.test(line));
      expect(lines.length).toBeLessThan(20);
    },
    timeLimit(240, 480),
  );

  it(
    "one key's flood does not slow down the others",
    async () => {
      await quiet();
      const few = { name: "quiet", keys: processes.keys.slice(1), perSecond: 5 };
      const beside = await processes.run({
        seconds: scale(20, 45),
        settleSeconds: SETTLE_SECONDS,
        connections: CONNECTIONS,
        patienceMs: 60_000,
        streams: [few, { name: "flood", keys: processes.keys.slice(0, 1), perSecond: 10 * peak }],
      });
      expect(beside.outcomes["flood"]!.refusedMs.length).toBeGreaterThan(MIN_REQUESTS);
      const { refusedMs, servedMs, wrong } = beside.outcomes["quiet"]!;
      expect(wrong).toEqual({});
      figure({
        name: "requests of other keys refused during one key's flood",
        value: refusedMs.length,
        unit: "",
        atMost: 0,
      });
      figure({
        name: "other keys' p99 during one key's flood, as a multiple of the model's duration",
        value: Math.round((100 * quantile(servedMs, 0.99)) / ALONE_MS) / 100,
        unit: "",
        atMost: 2,
      });
    },
    timeLimit(90, 200),
  );
});

describe("cancelled calls", () => {
  let product: Product;
  let upstream: Upstream;
  beforeAll(async () => {
    upstream = await startUpstream(() => undefined);
    product = await startProduct({
      config: { ...localModel(upstream.url), limits: UNLIMITED, overload: { max_wait_ms: 60_000 } },
    });
  }, 30_000);
  afterAll(async () => {
    await product.stop();
    await upstream.close();
  });

  /** Opens connections in advance, so that requests arrive at once. */
  const connectAll = (count: number): Promise<Socket[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect(product.httpPort, "127.0.0.1").on("error", () => undefined);
        await once(socket, "connect");
        return socket;
      }),
    );
  const send = (socket: Socket, who: string): void => {
    const headers = [
      `host: 127.0.0.1:${product.httpPort}`,
      `authorization: Bearer ${product.firstKey}`,
      "content-type: application/json",
    ];
    const body = JSON.stringify({ model: "local/test", stream: true, messages: [{ role: "user", content: who }] });
    socket.write(rawRequest("POST /v1/chat/completions", headers, body));
  };
  const ready = async (): Promise<{ active_calls: number; overload: { waiting: number } }> =>
    (await (await fetch(`${product.operationsUrl}/readyz`)).json()) as Awaited<ReturnType<typeof ready>>;
  const waiting = async (): Promise<number> => (await ready()).overload.waiting;

  it(
    "in the waiting queue cause no upstream calls",
    async () => {
      const stay = await connectAll(3_000);
      const gone = await connectAll(scale(100, 1_000));
      const calls = (who: string): number => upstream.exchanges.filter(({ body }) => body.includes(`"${who}"`)).length;
      // The upstream never responds, so the cost of these streams is unknown and a thousand are admitted in a second.
      for (const socket of stay) send(socket, "stays");
      for (const socket of gone) send(socket, "gone");
      const arrived = async (): Promise<number> => (await waiting()) + calls("stays");
      await expect.poll(arrived, { timeout: 20_000, interval: 10 }).toBeGreaterThan(stay.length);
      expect(await waiting()).toBeGreaterThan(gone.length);
      for (const socket of gone) socket.destroy();
      // The product has processed the cancellations.
      const active = async (): Promise<number> => (await ready()).active_calls;
      await expect.poll(active, { timeout: 20_000 }).toBe(stay.length);
      const begun = calls("gone");
      for (const socket of stay) socket.destroy();
      await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
      figure({
        name: "upstream calls for requests cancelled in the waiting queue",
        value: calls("gone") - begun,
        unit: "",
        atMost: 0,
      });
    },
    timeLimit(90, 180),
  );
});

it("memory pressure refuses new completions and lets open streams end", async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const upstream = await startUpstream(async (exchange) => {
    await released;
    answerText(exchange, "done");
  });
  const { providers, models } = localModel(upstream.url);
  const other = { ...(models as Record<string, object>)["local/test"], upstream_model: "other" };
  const product = await startProduct({
    config: { providers, models: { ...models, "local/other": other }, limits: UNLIMITED },
    env: { NODE_OPTIONS: "--max-old-space-size=160" },
  });
  try {
    // A request keeps its conversation while a fallback may be called.
    const text = "x".repeat(3_000_000);
    const choice = { model: "local/test", fallback_models: ["local/other"] };
    const ask = async (): Promise<{ status: number; text: string }> => {
      const response = await postChat(product.url, product.firstKey, {
        ...choice,
        messages: [{ role: "user", content: text }],
      });
      return { status: response.status, text: await response.text() };
    };
    const asked: Promise<{ status: number; text: string }>[] = [];
    let refused: { status: number; text: string } | undefined;
    while (refused === undefined) {
      expect(asked.length).toBeLessThan(200);
      // Errors are ignored: the end of the test closes these connections.
      const one = ask().catch(() => ({ status: 0, text: "" }));
      asked.push(one);
      // A request that waited too long for admission is refused; send another one.
      let isOver = false;
      void one.then(() => (isOver = true));
      const before = upstream.exchanges.length;
      const isShort = (): boolean => product.output.stderr.includes("memory is short");
      await expect
        .poll(() => isOver || upstream.exchanges.length > before || isShort(), { timeout: 10_000 })
        .toBe(true);
      if (!isShort()) continue;
      refused = await ask();
    }
    expect(refused.status).toBe(503);
    expect(refused.text).toContain("short of memory");
    release();
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    const cut = statuses.filter((status) => status !== 200 && status !== 503);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(upstream.exchanges.length);
    figure({ name: "answers in flight lost under memory pressure", value: cut.length, unit: "", atMost: 0 });
  } finally {
    release();
    await product.stop();
    await upstream.close();
  }
}, 60_000);
