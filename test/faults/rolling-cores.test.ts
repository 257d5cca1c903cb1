import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import {
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
} from "../product/support/upstream.ts";
import { startBalancer } from "../replicas/support/balancer.ts";
import { createDatabase } from "../support/postgres.ts";
import { makeHome, type Product, type ProductOptions, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { builtProgram } from "../support/built-program.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

/** Longer than a front's PING interval: Node cannot send PINGs on a connection that has received GOAWAY. */
const STREAM_MS = scale(25_000, 60_000);
const STREAMS = scale(60, 1_000);
const WORD_MS = 1_000;
const AGE_MS = 4_000;
const SHUTDOWN_DELAY_MS = 1_000;

/** Starts a product that can be restarted at the same addresses. */
async function openRestartable(options: ProductOptions): Promise<{ current: Product; restart(): Promise<void> }> {
  const home = makeHome();
  const restartable = {
    current: await startProduct({ ...options, home }),
    async restart() {
      const { current } = restartable;
      current.signal("SIGTERM");
      expect(await current.ending).toEqual({ code: 0, signal: null });
      const http = { listen: `127.0.0.1:${Number.isNaN(current.httpPort) ? 0 : current.httpPort}` };
      const grpc = { listen: `127.0.0.1:${Number.isNaN(current.grpcPort) ? 0 : current.grpcPort}` };
      const before = options.config as { grpc?: object };
      const config = { ...before, http, grpc: { ...before.grpc, ...grpc } };
      restartable.current = await startProduct({ ...options, home, config });
    },
  };
  onTestFinished(async () => {
    await restartable.current.stop();
    rmSync(home, { recursive: true, force: true });
  });
  return restartable;
}

it(
  `two fronts and two cores are restarted one after the other under ${STREAMS} streams of ${STREAM_MS / 1000} s, and none is cut`,
  async () => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const upstream = await startUpstream(({ response }) => {
      beginStream(response);
      const untilMs = performance.now() + STREAM_MS;
      const timer = setInterval(() => {
        if (performance.now() < untilMs) return void response.write(textEvent("word "));
        clearInterval(timer);
        response.end(END_EVENTS);
      }, WORD_MS);
      response.once("close", () => clearInterval(timer));
    });
    onTestFinished(() => upstream.close());
    const program = await builtProgram();
    const env = { ...program.env, PARLEY_DATABASE_URL: databaseUrl };
    const shutdown = { delay_ms: SHUTDOWN_DELAY_MS, drain_ms: 2 * STREAM_MS + 60_000 };
    const config = {
      ...localModel(upstream.url),
      log: { level: "warn" },
      limits: UNLIMITED,
      shutdown,
      grpc: { listen: "127.0.0.1:0", max_connection_age_ms: AGE_MS },
    };
    const openCore = () => openRestartable({ ...program, env, config, flags: ["--role", "core"] });
    const cores = [await openCore(), await openCore()];
    const target = cores.map(({ current }) => `127.0.0.1:${current.grpcPort}`).join(",");
    const flags = ["--role", "front", "--core", target];
    const openFront = () => openRestartable({ ...program, config: { shutdown, log: config.log }, flags });
    const fronts = [await openFront(), await openFront()];
    const store = await openStore({ dataDir: "/nowhere", databaseUrl });
    onTestFinished(() => store.close());
    const { secret: key } = await createKey({ store: store.keys, clock: systemClock }, { name: "rolling cores" });

    const balancer = startBalancer(() => fronts.map(({ current }) => current.url));
    const agent = new Agent({ pipelining: 0, connections: null, bodyTimeout: 0, headersTimeout: 0 });
    const failures: string[] = [];
    let whole = 0;
    let refused = 0;
    const stopping = new AbortController();
    const stream = async (): Promise<void> => {
      const { statusCode, body } = await request(`${balancer.pick()}/v1/chat/completions`, {
        dispatcher: agent,
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "local/test", stream: true, messages: [{ role: "user", content: "hi" }] }),
      });
      const text = await body.text();
      if (statusCode === 200 && text.endsWith("data: [DONE]\n\n")) whole += 1;
      else if (statusCode === 503 && text.includes("more requests than it can answer")) {
        // A thousand simultaneous callers would overload a process that has just started.
        refused += 1;
        await delay(500);
      } else failures.push(`${statusCode} ${text.slice(-300)}`);
    };
    const callers = Array.from({ length: STREAMS }, async (_, index) => {
      await delay((index * STREAM_MS) / STREAMS);
      while (!stopping.signal.aborted) {
        await stream().catch(async (error: unknown) => {
          // The connection was refused: a load balancer tries the next server.
          if ((error as NodeJS.ErrnoException).code === "ECONNREFUSED") await delay(50);
          else failures.push(String(error));
        });
      }
    });
    await delay(STREAM_MS / 4);
    // Restarts a core and a front at a time; their drain takes as long as the longest stream.
    for (const index of [0, 1]) await Promise.all([cores[index]!.restart(), fronts[index]!.restart()]);
    stopping.abort();
    await Promise.all(callers);
    await balancer.stop();
    await agent.destroy();

    expect(failures).toEqual([]);
    figure({ name: "streams during rolling restarts of fronts and cores", value: whole, unit: "", atLeast: STREAMS });
    figure({ name: "refused for overload before they began", value: refused, unit: "", atMost: scale(0, STREAMS) });
    figure({ name: "of these cut", value: failures.length, unit: "", atMost: 0 });
    const span = { sinceMs: 0, untilMs: Date.now() + 60_000 };
    const { rows: outcomes } = await store.usage.summarize({ by: "none", step: "all", ...span });
    expect(outcomes[0]?.sums).toMatchObject({ completions: whole, failed: 0 });
  },
  timeLimit(180, 420),
);

it(
  "a core that hangs ends its calls within 30 s, and the front continues with the other core",
  async () => {
    const upstream = await startUpstream((exchange) => {
      if (!exchange.body.includes('"stream":true')) return answerText(exchange, "hi");
      beginStream(exchange.response);
      exchange.response.write(textEvent("Once"));
    });
    onTestFinished(() => upstream.close());
    const program = await builtProgram();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const env = { ...program.env, PARLEY_DATABASE_URL: databaseUrl };
    const config = { ...localModel(upstream.url), limits: UNLIMITED };
    const cores = [];
    for (let count = 0; count < 2; count++) {
      const core = await startProduct({ ...program, env, config, flags: ["--role", "core"] });
      onTestFinished(() => core.stop());
      cores.push(core);
    }
    const target = cores.map(({ grpcPort }) => `127.0.0.1:${grpcPort}`).join(",");
    const front = await startProduct({ ...program, flags: ["--role", "front", "--core", target] });
    onTestFinished(() => front.stop());
    const key = cores[0]!.firstKey;
    const ask = async (stream: boolean): Promise<string> => {
      const { body } = await request(`${front.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "local/test", stream, messages: [{ role: "user", content: "hi" }] }),
      });
      return body.text();
    };
    const streams = [ask(true), ask(true)];
    await expect.poll(() => upstream.exchanges.length).toBe(2);
    const hungMs = performance.now();
    cores[1]!.signal("SIGSTOP");
    expect(await Promise.race(streams)).toMatch(/middle of the answer|cannot be reached/);
    const noticedMs = Math.round(performance.now() - hungMs);
    figure({ name: "time from a core's hang to the end of its calls", value: noticedMs, unit: "ms", atMost: 32_000 });
    for (let count = 0; count < 4; count++) expect(await ask(false)).toContain("hi");
    for (const { response } of upstream.exchanges) response.end(END_EVENTS);
    const ends = await Promise.all(streams);
    expect(ends.filter((text) => text.endsWith("data: [DONE]\n\n"))).toHaveLength(1);
  },
  timeLimit(90, 90),
);
