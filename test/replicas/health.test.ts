import { Agent, fetch } from "undici";
import { expect, inject, it, onTestFinished } from "vitest";
import { answerJson, answerText, startUpstream } from "../product/support/upstream.ts";
import { UTC } from "../../src/ledger/time-zone.ts";
import { openStore } from "../../src/store/store.ts";
import { createDatabase } from "../support/postgres.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { startRedis } from "../support/redis.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { postChat } from "../support/post-json.ts";

/** A time in which all processes have exchanged their notes twice, as they do every two seconds, also on a busy machine. */
const EXCHANGED_MS = 7_000;

/** One provider that fails, and one that works; `name` tries the failing one first. */
async function startUpstreams() {
  const failing = await startUpstream(({ response }) => answerJson(response, 503, {}));
  const working = await startUpstream((exchange) => answerText(exchange, "hi"));
  onTestFinished(async () => {
    await failing.close();
    await working.close();
  });
  const configOf = (urls: { readonly failing: string; readonly working: string }) => ({
    providers: Object.fromEntries(
      Object.entries(urls).map(([name, url]) => [
        name,
        { dialect: "openai", base_url: `${url}/v1`, allow_private: true },
      ]),
    ),
    models: {
      ...Object.fromEntries(
        Object.keys(urls).map((name) => [
          name,
          { provider: name, upstream_model: "m", context_window: 1_000, max_output_tokens: 100 },
        ]),
      ),
      name: { targets: [{ model: "failing" }, { model: "working" }] },
    },
    limits: UNLIMITED,
    // Longer than the test.
    breaker: { open_ms: 120_000, max_open_ms: 120_000 },
    retries: { base_ms: 0, cap_ms: 0 },
  });
  return { failing, working, configOf };
}

async function start(config: object, home?: string): Promise<Product> {
  const product = await startProduct({ config, ...(home !== undefined && { home }) });
  onTestFinished(() => product.stop());
  return product;
}

async function ask({ url }: Product, key: string, dispatcher?: Agent): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "name", messages: [{ role: "user", content: "hi" }] }),
    ...(dispatcher !== undefined && { dispatcher }),
  });
  expect(await response.text()).toContain('"hi"');
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

it.each(["PostgreSQL", "Redis"])(
  "replicas pass over a target that one of them found down, through %s",
  async (place) => {
    const { failing, working, configOf } = await startUpstreams();
    const url = await createDatabase(inject("postgresUrl"));
    const redis = place === "Redis" ? { redis: { url: (await startRedis()).url } } : {};
    const config = { ...configOf({ failing: failing.url, working: working.url }), database: { url }, ...redis };
    const one = await start(config);
    const two = await start(config);
    const key = one.firstKey;
    for (let count = 0; count < 6; count++) await ask(one, key);
    const before = failing.exchanges.length;
    expect(before).toBeGreaterThan(0);
    await pass(EXCHANGED_MS);
    for (let count = 0; count < 10; count++) await ask(two, key);
    expect(failing.exchanges.length).toBe(before);
  },
  60_000,
);

it("replicas write one history of targets, and the state of each", async () => {
  const { failing, working, configOf } = await startUpstreams();
  const url = await createDatabase(inject("postgresUrl"));
  const config = { ...configOf({ failing: failing.url, working: working.url }), database: { url } };
  const [one, two] = [await start(config), await start(config)];
  for (let count = 0; count < 6; count++) await ask(one, one.firstKey);
  for (let count = 0; count < 4; count++) await ask(two, one.firstKey);
  const store = await openStore({ dataDir: one.home, databaseUrl: url });
  onTestFinished(() => store.close());
  const { targetHistory } = store;
  const query = { targets: ["failing/m", "working/m"], sinceMs: 0, offsets: UTC } as const;
  const served = async (step: "half_hour" | "day") =>
    (await targetHistory.read({ ...query, step }))
      .filter(({ target, outcome }) => target === "working/m" && outcome === "served")
      .reduce((sum, { attempts }) => sum + attempts, 0);
  await expect.poll(() => served("half_hour"), { timeout: 20_000 }).toBe(10);
  expect(await served("day")).toBe(10);
  const states = await targetHistory.replicas();
  expect(states).toHaveLength(2);
  const open = states.flatMap(({ breakers }) => breakers.map(({ target }) => target));
  expect(new Set(open)).toEqual(new Set(["failing/m"]));
  two.signal("SIGTERM");
  await two.ending;
  expect(await targetHistory.replicas()).toHaveLength(1);
}, 60_000);

it("a replica whose own network is broken takes no target from the others", async () => {
  const { working, configOf } = await startUpstreams();
  const url = await createDatabase(inject("postgresUrl"));
  const nowhere = "http://127.0.0.1:1";
  const first = await startUpstream((exchange) => answerText(exchange, "hi"));
  onTestFinished(() => first.close());
  const here = await start({ ...configOf({ failing: first.url, working: working.url }), database: { url } });
  const cutOff = await start({ ...configOf({ failing: nowhere, working: nowhere }), database: { url } });
  for (let count = 0; count < 6; count++) await (await postChat(cutOff.url, here.firstKey, { model: "name" })).text();
  await pass(EXCHANGED_MS);
  for (let count = 0; count < 5; count++) await ask(here, here.firstKey);
  expect([first.exchanges.length, working.exchanges.length]).toEqual([5, 0]);
}, 60_000);

it("workers pass over a target that one of them found down", async () => {
  const { failing, working, configOf } = await startUpstreams();
  const product = await start({ ...configOf({ failing: failing.url, working: working.url }), workers: 3 }, makeHome());
  // One connection is of one worker.
  const pinned = new Agent({ connections: 1 });
  onTestFinished(() => pinned.close());
  for (let count = 0; count < 6; count++) await ask(product, product.firstKey, pinned);
  const before = failing.exchanges.length;
  await pass(EXCHANGED_MS);
  for (let count = 0; count < 6; count++) {
    const fresh = new Agent();
    await ask(product, product.firstKey, fresh);
    await fresh.close();
  }
  const workers = (): number =>
    new Set(
      product.output.stderr
        .split("\n")
        .flatMap((line) => (line.includes('"msg":"completion"') ? [/"worker":\d/.exec(line)?.[0]] : [])),
    ).size;
  await expect.poll(workers, { timeout: 10_000 }).toBe(3);
  expect(failing.exchanges.length).toBe(before);
}, 60_000);
