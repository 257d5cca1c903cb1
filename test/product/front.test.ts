import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeHome, type Product, type ProductOptions, startProduct } from "../support/product.ts";
import { pieceText, startFlood } from "./support/flood.ts";
import { DONE, TEXT_STREAMS } from "./support/text-streams.ts";
import {
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";

const MIB = 1024 * 1024;
const undo: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function openProduct(options: ProductOptions): Promise<Product> {
  const product = await startProduct(options);
  undo.push(() => product.stop());
  return product;
}

const openCore = (options: ProductOptions): Promise<Product> => openProduct({ ...options, flags: ["--role", "core"] });

/** A front before these cores, called with the first one's key. */
async function openFront(cores: readonly Product[], options: ProductOptions = {}): Promise<Product> {
  const addresses = cores.map(({ grpcPort }) => `127.0.0.1:${grpcPort}`).join(",");
  const front = await openProduct({ ...options, flags: ["--role", "front", "--core", addresses] });
  return { ...front, firstKey: cores[0]!.firstKey };
}

async function openUpstream(answer: (exchange: UpstreamExchange) => void): Promise<Upstream> {
  const upstream = await startUpstream(answer);
  undo.push(() => upstream.close());
  return upstream;
}

/** A directory that outlives its products, and ends with the test. */
function openHome(): string {
  const home = makeHome();
  undo.push(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** Says one word, and waits. */
const saysOnce = ({ response }: UpstreamExchange): void => {
  beginStream(response);
  response.write(textEvent("Once"));
};

function post({ url }: Product, key: string, options: { body?: string; headers?: object; signal?: AbortSignal } = {}) {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...options.headers },
    body: options.body ?? JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] }),
    ...(options.signal && { signal: options.signal }),
  });
}

async function answerOf(call: Promise<Response>): Promise<string> {
  const response = await call;
  const { choices, error } = (await response.json()) as {
    choices?: [{ message: { content: string } }];
    error?: { code?: string | null };
  };
  return `${response.status} ${choices?.[0].message.content ?? error?.code}`;
}

/** The streams that a front has: it has no gRPC. */
const FRONT_STREAMS = TEXT_STREAMS.filter(([entrance]) => entrance !== "gRPC");

describe("a front before a core", () => {
  it("checks the key before it reads the body, and writes nothing to disk", async () => {
    const core = await openCore({ config: localModel("http://127.0.0.1:1") });
    const front = await openFront([core]);
    expect(core.output.stdout).not.toMatch(/^ +OpenAI-compatible HTTP/m);
    const wrongKey = `${core.firstKey.slice(0, -1)}${core.firstKey.endsWith("A") ? "B" : "A"}`;
    expect((await post(front, wrongKey, { body: "{" })).status).toBe(401);
    expect((await post(front, core.firstKey, { body: "{" })).status).toBe(400);
    expect(existsSync(join(front.home, "data"))).toBe(false);
  });

  it("serves the OpenAPI document without a key, but no page", async () => {
    const core = await openCore({ config: localModel("http://127.0.0.1:1") });
    const front = await openFront([core]);
    const document = await fetch(`${front.url}/openapi.json`);
    expect([document.status, await document.json()]).toEqual([200, expect.objectContaining({ openapi: "3.1.1" })]);
    expect((await fetch(`${front.url}/docs`)).status).toBe(404);
  });

  it("forwards the limits counted by the core", async () => {
    const upstream = await openUpstream((exchange) => answerText(exchange, "hi"));
    const limits = { requests_per_minute: 2 };
    const core = await openCore({ config: { ...localModel(upstream.url), limits } });
    const front = await openFront([core]);
    const seen: string[] = [];
    for (const body of [undefined, undefined, "{", undefined]) {
      const { status, headers } = await post(front, core.firstKey, body === undefined ? {} : { body });
      const [limit, left] = ["limit", "remaining"].map((what) => headers.get(`x-ratelimit-${what}-requests`));
      seen.push(`${status}: ${left} of ${limit}${headers.has("retry-after") ? ", wait" : ""}`);
    }
    expect(seen).toEqual(["200: 1 of 2", "200: 0 of 2", "400: 0 of 2", "429: 0 of 2, wait"]);
  });

  it("counts its own refusals by the limits of its file, which SIGHUP changes", async () => {
    const core = await openCore({ config: localModel("http://127.0.0.1:1") });
    const front = await openFront([core], { config: { limits: { requests_per_minute: 2 } } });
    const refused = async (): Promise<number> => {
      const response = await post(front, core.firstKey, { body: "{" });
      await response.body?.cancel();
      return response.status;
    };
    expect([await refused(), await refused(), await refused()]).toEqual([400, 400, 429]);
    front.writeConfig({ limits: { requests_per_minute: 6000 } });
    front.signal("SIGHUP");
    await expect.poll(refused, { timeout: 5_000 }).toBe(400);
  });

  it("closes the provider's connection when its caller leaves, and when its deadline passes", async () => {
    const upstream = await openUpstream(() => undefined);
    const core = await openCore({ config: { ...localModel(upstream.url), timeouts: { settle_ms: 100 } } });
    const front = await openFront([core]);
    const controller = new AbortController();
    const left = post(front, core.firstKey, { signal: controller.signal });
    await expect.poll(() => upstream.exchanges.length).toBe(1);
    controller.abort();
    await expect(left).rejects.toThrow(/abort/i);
    await expect.poll(() => upstream.exchanges[0]!.closed).toBe(true);

    const late = answerOf(post(front, core.firstKey, { headers: { "x-request-timeout-ms": "2000" } }));
    expect(await late).toBe("503 deadline_exceeded");
    await expect.poll(() => upstream.exchanges[1]!.closed).toBe(true);
    await expect.poll(() => core.output.stderr).toMatch(/"outcome":"deadline_exceeded"/);
  });

  it("ends streams with an error when its core is killed, and continues with the next core", async () => {
    const upstream = await openUpstream((exchange) =>
      exchange.body.includes('"stream":true') ? saysOnce(exchange) : answerText(exchange, "hi"),
    );
    const home = openHome();
    const core = await openCore({ home, config: localModel(upstream.url) });
    const front = await openFront([core]);
    const streams = FRONT_STREAMS.map(([, open]) => open(front, AbortSignal.timeout(30_000)));
    for (const stream of streams) expect(await stream.next()).toEqual({ done: false, value: "Once" });
    core.signal("SIGKILL");
    const endings = await Promise.allSettled(streams.map((stream) => Array.fromAsync(stream)));
    const lost = { status: "rejected", reason: { message: expect.stringContaining("middle of the answer") } };
    expect(endings).toMatchObject([lost, lost]);

    await core.ending;
    const readiness = async (): Promise<unknown> => (await fetch(`${front.operationsUrl}/readyz`)).json();
    // Still ready: callers get the reason.
    await expect.poll(readiness).toMatchObject({ ready: true, active_calls: 0, core: "unreachable" });
    const grpc = { listen: `127.0.0.1:${core.grpcPort}` };
    const next = answerOf(post(front, core.firstKey));
    await openCore({ home, config: { ...localModel(upstream.url), grpc } });
    expect(["200 hi", "503 overloaded"]).toContain(await next);
    await expect.poll(() => answerOf(post(front, core.firstKey))).toBe("200 hi");
    expect(await readiness()).toMatchObject({ core: "reachable" });
  });

  it("finishes streams in flight after SIGTERM, and exits with 0", async () => {
    const upstream = await openUpstream(saysOnce);
    const core = await openCore({ config: localModel(upstream.url) });
    const front = await openFront([core]);
    const streams = FRONT_STREAMS.map(([, open]) => open(front, AbortSignal.timeout(30_000)));
    for (const stream of streams) expect(await stream.next()).toEqual({ done: false, value: "Once" });
    front.signal("SIGTERM");
    await expect.poll(async () => (await fetch(`${front.operationsUrl}/readyz`)).status).toBe(503);
    for (const { response } of upstream.exchanges) response.end(textEvent(" upon") + END_EVENTS);
    for (const stream of streams) expect(await Array.fromAsync(stream)).toEqual([" upon", DONE]);
    expect(await front.ending).toEqual({ code: 0, signal: null });
  });

  it("reads no faster than its caller, and loses nothing", async () => {
    // 125 MB, as a stream may not have more: buffers of the kernel and of both processes swallow some.
    const pieces = 7_500;
    const flood = await startFlood(pieces);
    undo.push(() => flood.close());
    const core = await openCore({ config: localModel(flood.url) });
    const front = await openFront([core]);
    const before = [front.rssBytes(), core.rssBytes()];
    const texts = FRONT_STREAMS[0]![1](front, AbortSignal.timeout(50_000));
    expect(await texts.next()).toEqual({ done: false, value: pieceText(0) });
    let pulled = -1;
    await expect.poll(() => pulled === (pulled = flood.pulledBytes()), { interval: 500, timeout: 20_000 }).toBe(true);
    expect(pulled).toBeLessThanOrEqual(24 * MIB);
    const grown = [front.rssBytes(), core.rssBytes()].map((bytes, index) => bytes - before[index]!);
    for (const bytes of grown) expect(bytes).toBeLessThanOrEqual(64 * MIB);

    let next = 1;
    for await (const text of texts) if (text === pieceText(next)) next += 1;
    expect(next).toBe(pieces);
  });
});

describe("two cores behind a front", () => {
  it("are restarted one after the other without a failed request", async () => {
    const upstream = await openUpstream(({ body, response, ...rest }) => {
      setTimeout(() => answerText({ body, response, ...rest }, "hi"), 20);
    });
    const envs = [0, 1].map(() => ({ PARLEY_DATA_DIR: join(openHome(), "data") }));
    const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited" };
    const config = { ...localModel(upstream.url), limits };
    // One process serves an SQLite database: each has its own, with the same key.
    const first = await openCore({ config, env: envs[0]! });
    const { firstKey } = first;
    first.signal("SIGTERM");
    await first.ending;
    cpSync(envs[0]!.PARLEY_DATA_DIR, envs[1]!.PARLEY_DATA_DIR, { recursive: true });
    const cores = await Promise.all(envs.map((env) => openCore({ config, env })));
    const front = { ...(await openFront(cores)), firstKey };

    const outcomes = new Map<string, number>();
    const stopping = new AbortController();
    const note = (outcome: string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    // So many that no connection is ever idle: a request that meets the end of an idle one may have begun or not, for
    // all that a client can know, and is not sent again.
    const load = Array.from({ length: 32 }, async (_, caller) => {
      while (!stopping.signal.aborted) {
        if (caller % 2 === 0) note(await answerOf(post(front, firstKey)));
        else note((await Array.fromAsync(FRONT_STREAMS[0]![1](front, AbortSignal.timeout(30_000)))).join(" "));
      }
    });
    for (const [index, core] of cores.entries()) {
      core.signal("SIGTERM");
      expect(await core.ending).toEqual({ code: 0, signal: null });
      const next = await openCore({
        config: { ...config, grpc: { listen: `127.0.0.1:${core.grpcPort}` } },
        env: envs[index]!,
      });
      // As every rolling restart does, it waits until the new one has work: that the front has found it again.
      const metrics = async (): Promise<string> => (await fetch(`${next.operationsUrl}/metrics`)).text();
      await expect.poll(metrics).toMatch(/^parley_completions_total\{.*\} \d\d/m);
    }
    stopping.abort();
    await Promise.all(load);
    expect([...outcomes.keys()].toSorted()).toEqual(["200 hi", `hi ${DONE}`]);
  });
});
