import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { MAX_TOKENS, MODEL, type Deployment, startDeployment } from "../replicas/support/deployment.ts";
import { HeldCalls } from "../replicas/support/held-calls.ts";
import { startLoad } from "../replicas/support/load.ts";
import { idsIn } from "../replicas/support/written-ids.ts";
import { says } from "../support/scripted-upstream.ts";
import { makeHome, type Product, runProduct, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const OVERLOAD = { overload: { max_calls: 500 } };
const REQUESTS = 200;
const ADMITTED = 50;
const MIN_ADMITTED = 49;
const ROUNDS = 3;
/** A cache uses what it knows for 4.5 s. */
const BEFORE_CACHES_END_MS = 4_000;

/** The processes that a process has started. */
function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

interface Readiness {
  readonly ready: boolean;
  readonly active_calls: number;
  readonly workers: { readonly configured: number; readonly ready: number; readonly replaced: number };
}

const readinessOf = async ({ operationsUrl }: Product): Promise<Readiness> =>
  (await (await fetch(`${operationsUrl}/readyz`)).json()) as Readiness;

const metricsOf = async ({ operationsUrl }: Product): Promise<string> =>
  (await fetch(`${operationsUrl}/metrics`)).text();

const served = (metrics: string): number =>
  Number(/^parley_completions_total\{[^}]*outcome="served"[^}]*\} (\d+)$/m.exec(metrics)?.[1] ?? 0);

/** Asks for one completion, on one of the agent's connections. */
async function complete(url: string, key: string, agent: Agent): Promise<number> {
  const { statusCode, body } = await request(`${url}/v1/chat/completions`, {
    dispatcher: agent,
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, max_tokens: MAX_TOKENS, messages: [{ role: "user", content: "hi" }] }),
  });
  await body.dump();
  return statusCode;
}

it("each worker reports which settings of the file wait for a restart of the parent, also one that replaces another", async () => {
  const product = await startProduct({ config: { workers: 2, ...OVERLOAD } });
  const states = (): { worker: number; pending: unknown }[] => {
    const database = new DatabaseSync(join(product.home, "data/parley.db"), { readOnly: true });
    const rows = database.prepare("select state from replica_states").all();
    database.close();
    return rows
      .map(({ state }) => JSON.parse(String(state)) as { worker: number; pending: unknown })
      .map(({ worker, pending }) => ({ worker, pending }))
      .toSorted((one, other) => one.worker - other.worker);
  };
  const bothWith = (pending: unknown) => [1, 2].map((worker) => ({ worker, pending }));
  try {
    await expect.poll(states, { timeout: 30_000 }).toEqual(bothWith([]));
    product.writeConfig({ workers: 2, ...OVERLOAD, overload: { max_calls: 20 } });
    product.signal("SIGHUP");
    const pending = [{ key: "overload.max_calls", value: "20" }];
    await expect.poll(states, { timeout: 30_000 }).toEqual(bothWith(pending));
    process.kill(childrenOf(product.pid)[0]!, "SIGKILL");
    // The killed one is known for another minute.
    await expect.poll(() => states().length, { timeout: 30_000 }).toBe(3);
    expect(states().map((state) => state.pending)).toEqual([pending, pending, pending]);
  } finally {
    await product.stop();
  }
}, 150_000);

describe("two workers on SQLite", () => {
  const held = new HeldCalls();
  let deployment: Deployment;
  let product: Product;
  let agent: Agent;
  beforeAll(async () => {
    const config = { workers: 2, log: { level: "info" } };
    deployment = await startDeployment({ replicas: 1, databaseUrl: undefined, redisUrl: undefined, config });
    product = deployment.products[0]!;
    agent = new Agent({ connections: REQUESTS });
  });
  afterAll(async () => {
    await agent?.destroy();
    await deployment?.close();
  });
  const keys = () => ({ store: deployment.store.keys, clock: systemClock });

  it.each<readonly [string, Partial<Limits>]>([
    ["request rate", { requestsPerMinute: ADMITTED }],
    ["concurrency", { concurrentRequests: ADMITTED }],
    ["token rate", { tokensPerMinute: ADMITTED * (MAX_TOKENS + 5) }],
  ])("admit never more than 50 of 200 requests at once: %s", async (name, limits) => {
    deployment.upstream.script(MODEL, [held.act]);
    for (let round = 0; round < ROUNDS; round++) {
      const { secret } = await createKey(keys(), { name: "race", limits: { ...NO_LIMITS, ...limits } });
      const beganMs = performance.now();
      let refused = 0;
      const asked = Array.from({ length: REQUESTS }, async () => {
        const status = await complete(product.url, secret, agent);
        if (status !== 200) refused += 1;
        return status;
      });
      await expect.poll(() => held.count + refused, { timeout: 20_000 }).toBe(REQUESTS);
      const elapsedMs = performance.now() - beganMs;
      const admitted = held.release();
      const seen = await Promise.all(asked);
      expect(new Set(seen)).toEqual(new Set([200, 429]));
      // A rate refills during the round.
      const refilled = name === "concurrency" ? 0 : Math.floor((elapsedMs / 60_000) * ADMITTED);
      expect(admitted).toBeLessThanOrEqual(ADMITTED + refilled);
      expect(admitted).toBeGreaterThanOrEqual(MIN_ADMITTED);
    }
    expect(await metricsOf(product)).toMatch(/^parley_rates_local_decisions_total 0$/m);
  });

  it("admit exactly the limit of a key whose requests they have decided by credit", async () => {
    deployment.upstream.script(MODEL, [says("one two three")]);
    const requestsPerMinute = 400;
    const { secret } = await createKey(keys(), { name: "steady", limits: { ...NO_LIMITS, requestsPerMinute } });
    const beganMs = performance.now();
    let admitted = 0;
    const call = async (): Promise<void> => {
      while ((await complete(product.url, secret, agent)) === 200) admitted += 1;
    };
    await Promise.all(Array.from({ length: 32 }, call));
    const refilled = Math.floor(((performance.now() - beganMs) / 60_000) * requestsPerMinute);
    expect(admitted).toBeLessThanOrEqual(requestsPerMinute + refilled);
    expect(admitted).toBeGreaterThanOrEqual(requestsPerMinute);
  });

  it("share the connections, and return the same metrics from any worker", async () => {
    deployment.upstream.script(MODEL, [says("one two three")]);
    const { secret } = await createKey(keys(), { name: "counted" });
    const before = served(await metricsOf(product));
    const statuses = await Promise.all(Array.from({ length: 20 }, () => complete(product.url, secret, agent)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    await expect.poll(async () => served(await metricsOf(product))).toBe(before + 20);
    expect(served(await metricsOf(product))).toBe(before + 20);
    const workers = new Set([...product.output.stderr.matchAll(/"worker":(\d)/g)].map(([, number]) => number));
    expect(workers).toEqual(new Set(["1", "2"]));
    expect(await readinessOf(product)).toMatchObject({ ready: true, workers: { configured: 2, ready: 2 } });
  });

  it("all refuse a key revoked in the dashboard, before their caches expire", async () => {
    let cookie = "";
    const call = async (method: string, input: object): Promise<unknown> => {
      const response = await fetch(`${product.url}/parley.console.v1.${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", "connect-protocol-version": "1", cookie },
        body: JSON.stringify(input),
      });
      cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? cookie;
      expect(response.status).toBe(200);
      return response.json();
    };
    const password = "a long enough passphrase";
    await call("SessionService/SignUp", { email: "ada@example.com", password, name: "Ada" });
    const created = (await call("KeyService/Create", { name: "revoked" })) as { key: { id: string }; secret: string };
    const ask = () => complete(product.url, created.secret, agent);
    const statuses = async () => new Set(await Promise.all(Array.from({ length: 20 }, ask)));
    expect(await statuses()).toEqual(new Set([200]));
    await call("KeyService/Revoke", { id: created.key.id });
    await expect.poll(statuses, { timeout: BEFORE_CACHES_END_MS, interval: 20 }).toEqual(new Set([401]));
  });

  it("are replaced when they are killed, lose no answered completion, and keep the counts", async () => {
    deployment.upstream.script(MODEL, [says("one two three")]);
    const { secret: key } = await createKey(keys(), { name: "crash" });
    const before = served(await metricsOf(product));
    const load = startLoad({ callers: 8, key, pick: () => product.url });
    await expect.poll(() => load.ended.length).toBeGreaterThan(30);
    const counted = served(await metricsOf(product));
    const [victim] = childrenOf(product.pid);
    process.kill(victim!, "SIGKILL");
    await expect.poll(() => readinessOf(product)).toMatchObject({ workers: { ready: 1 } });
    expect(served(await metricsOf(product))).toBeGreaterThanOrEqual(counted);
    await expect
      .poll(() => readinessOf(product), { timeout: 20_000 })
      .toMatchObject({ ready: true, workers: { ready: 2, replaced: 1 } });
    const atReplacement = load.ended.length;
    await expect.poll(() => load.ended.length).toBeGreaterThan(atReplacement + 20);
    await load.stop();
    // Each caller may have had one request on its way there.
    expect(load.failures.length).toBeLessThanOrEqual(8);
    expect(served(await metricsOf(product))).toBeGreaterThan(before);
    const written = await idsIn(join(product.home, "data"), undefined);
    expect(new Set(written).size).toBe(written.length);
    expect(load.ended.filter((id) => !written.includes(id))).toEqual([]);
  });

  it("release the concurrency units of a killed worker", async () => {
    deployment.upstream.script(MODEL, [held.act]);
    const limits = { ...NO_LIMITS, concurrentRequests: 4 };
    const { secret } = await createKey(keys(), { name: "places", limits });
    const fresh = new Agent({ connections: 4 });
    const asked = Array.from({ length: 4 }, () => complete(product.url, secret, fresh).catch(() => undefined));
    await expect.poll(() => held.count).toBe(4);
    expect(await complete(product.url, secret, agent)).toBe(429);
    const victims = childrenOf(product.pid);
    for (const pid of victims) process.kill(pid, "SIGKILL");
    await Promise.all(asked);
    held.release();
    deployment.upstream.script(MODEL, [says("one two three")]);
    // Also all at once: the addresses stay.
    await expect.poll(() => complete(product.url, secret, agent).catch(() => undefined), { timeout: 20_000 }).toBe(200);
    await fresh.destroy();
  });
});

describe("a gateway of two workers", () => {
  const undo: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  });
  const FAST = { simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 } };
  const open = async (config: object, flags: readonly string[] = []): Promise<Product> => {
    const product = await startProduct({ config: { workers: 2, ...config }, flags });
    undo.push(() => product.stop());
    return product;
  };

  it("prints its start-up output and first key once, reloads once, and exits with 0 with all its processes", async () => {
    const product = await open(FAST);
    const processes = childrenOf(product.pid);
    expect(processes).toHaveLength(2);
    expect(product.output.stdout.match(/Parley is ready/g)).toHaveLength(1);
    expect(product.firstKey).not.toBe("");
    const headers = { authorization: `Bearer ${product.firstKey}` };
    const statusOf = async (): Promise<number> => (await fetch(`${product.url}/v1/models`, { headers })).status;
    expect(await statusOf()).toBe(200);

    product.signal("SIGHUP");
    await expect.poll(() => product.output.stderr).toContain("configuration reloaded");
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    expect(processes.filter(isAlive)).toEqual([]);
    for (const once of ["configuration reloaded", "draining", "stopped"])
      expect(product.output.stderr.split(`"msg":"${once}"`)).toHaveLength(2);
  });

  it("reads a key of encryption by its command once at the start and once at a reload, for all processes", async () => {
    const key = randomBytes(32).toString("base64");
    const runs = join(mkdtempSync(join(tmpdir(), "parley-runs-")), "runs");
    undo.push(async () => rmSync(dirname(runs), { recursive: true }));
    const withKey = (text: string) => {
      const command = ["sh", "-c", `echo run >> ${runs}; echo ${text}; echo from the vault >&2; test ${text} != none`];
      return { workers: 2, ...FAST, account_credentials: { encryption_key_command: command } };
    };
    const product = await open(withKey(key));
    const runCount = (): number => readFileSync(runs, "utf8").split("\n").length - 1;
    expect(runCount()).toBe(1);
    product.signal("SIGHUP");
    await expect.poll(() => product.output.stderr).toContain("configuration reloaded");
    expect(runCount()).toBe(2);
    product.writeConfig(withKey("none"));
    product.signal("SIGHUP");
    await expect.poll(() => product.output.stderr).toContain("the old one stays");
    expect(product.output.stderr).toContain("it ended with status 1: from the vault");
    expect(await readinessOf(product)).toMatchObject({ workers: { ready: 2 } });
    expect(product.output.stderr + product.output.stdout).not.toContain(key);
  });

  it("reloads a worker that was starting in place of a killed one", async () => {
    const product = await open(FAST);
    const headers = { authorization: `Bearer ${product.firstKey}` };
    process.kill(childrenOf(product.pid)[0]!, "SIGKILL");
    await expect.poll(() => product.output.stderr, { interval: 5 }).toContain('"msg":"another worker takes its place"');
    product.writeConfig({
      workers: 2,
      ...FAST,
      models: {
        added: { provider: "alpha", upstream_model: "claude-haiku-4-5" },
        either: { targets: [{ model: "added" }] },
      },
      aliases: { "gpt-*": "either" },
    });
    // The successor has been given the configuration before; without that it would prove nothing.
    await expect.poll(() => childrenOf(product.pid).length, { interval: 5 }).toBe(2);
    product.signal("SIGHUP");
    await expect.poll(() => product.output.stderr, { timeout: 20_000 }).toContain("configuration reloaded");
    await expect
      .poll(() => readinessOf(product), { timeout: 20_000 })
      .toMatchObject({ workers: { ready: 2, replaced: 1 } });
    // Connections are distributed in turn, and each of these is a new one.
    const statuses = Array.from({ length: 8 }, async () => {
      const agent = new Agent();
      const { statusCode, body } = await request(`${product.url}/v1/models/gpt-5`, { dispatcher: agent, headers });
      await body.dump();
      await agent.destroy();
      return statusCode;
    });
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  });

  it("finishes calls in flight after a SIGTERM, and ends them after a second one", async () => {
    const product = await open({ simulator: { enabled: true, tokens_per_second: 1, first_token_ms: 0 } });
    const ask = async () =>
      postChat(product.url, product.firstKey, {
        model: "alpha-haiku-4.5",
        stream: true,
        messages: [{ role: "user", content: "Write 200 words" }],
      });
    const answers = await Promise.all(Array.from({ length: 4 }, ask));
    await expect.poll(async () => (await readinessOf(product)).active_calls).toBe(4);
    product.signal("SIGTERM");
    await expect.poll(() => product.output.stderr).toContain('"active_calls":4');
    await expect.poll(async () => (await readinessOf(product)).ready).toBe(false);
    await expect.poll(() => fetch(`${product.url}/healthz`).catch(() => "refused")).toBe("refused");
    product.signal("SIGTERM");
    for (const answer of answers) expect(await answer.text()).toContain("shutting down");
    expect(await product.ending).toEqual({ code: 0, signal: null });
  });

  it("leaves no worker running when the parent is killed", async () => {
    const product = await open(FAST);
    const processes = childrenOf(product.pid);
    product.signal("SIGKILL");
    await product.ending;
    await expect.poll(() => processes.filter(isAlive)).toEqual([]);
  });

  it("prints the reason of a failed start once", async () => {
    const holder = await open(FAST);
    const home = makeHome();
    const free = "127.0.0.1:0";
    const { ending, output } = runProduct(["serve"], {
      home,
      env: {
        PARLEY_WORKERS: "2",
        PARLEY_HTTP_LISTEN: `127.0.0.1:${holder.httpPort}`,
        PARLEY_GRPC_LISTEN: free,
        PARLEY_OPERATIONS_LISTEN: free,
      },
    });
    expect(await ending).toEqual({ code: 1, signal: null });
    expect(output.stdout).toBe("");
    const message = `parley: http.listen: another program listens on 127.0.0.1:${holder.httpPort}; `;
    expect(output.stderr.split(message)).toHaveLength(2);
  });

  it("serves as fronts before a core of several processes", async () => {
    const core = await open(FAST, ["--role", "core"]);
    const front = await open({}, ["--role", "front", "--core", `127.0.0.1:${core.grpcPort}`]);
    expect(childrenOf(front.pid)).toHaveLength(2);
    const response = await postChat(front.url, core.firstKey, { model: "alpha-haiku-4.5" });
    expect(response.status).toBe(200);
    expect(await readinessOf(front)).toMatchObject({ ready: true, workers: { ready: 2 } });
  });
});
