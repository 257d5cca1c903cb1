import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import type { StoredPorts } from "../../src/gateway/stored-changes.ts";
import { changeEntries, type EntryChange } from "../../src/gateway/stored-edits.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createDatabase, queryPostgres, startPostgres } from "../support/postgres.ts";
import { launchRedis, type RedisServer } from "../support/redis.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { says, type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { HeldCalls } from "./support/held-calls.ts";
import { postChat } from "../support/post-json.ts";

const CHANGES = 10;
const SECRET = "the-credential-of-the-provider";
const encryptionKey = randomBytes(32).toString("base64");
const CONFIG = {
  limits: UNLIMITED,
  account_credentials: { encryption_key: encryptionKey },
  stored_configuration: { allow_private: true },
};

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startScriptedUpstream()));
afterAll(() => upstream.close());

function portsOf(store: Store, databaseUrl: string): StoredPorts {
  const source = { file: "parley.yaml", text: JSON.stringify({ ...CONFIG, database: { url: databaseUrl } }), env: {} };
  return {
    store: store.configuration,
    cipher: credentialCipherOf({ accountCredentials: { encryptionKey }, dataDir: "", providers: [] }),
    source: () => source,
    inForce: () => parseConfig(source),
    clock: systemClock,
    log: { record: async () => undefined },
  };
}

async function change(ports: StoredPorts, ...changes: Partial<EntryChange>[]): Promise<void> {
  await changeEntries(ports, {
    expected: await ports.store.latest(),
    comment: "",
    validateOnly: false,
    actor: { actorId: undefined, network: undefined },
    changes: changes.map((one) => ({
      section: "models",
      name: "",
      entry: undefined,
      apiKeys: [],
      removesCredential: false,
      ...one,
    })),
  });
}

const acme = (): Partial<EntryChange> => ({
  section: "providers",
  name: "acme",
  entry: `dialect: openai\nbase_url: ${upstream.url}/v1\nallow_private: true`,
  apiKeys: [SECRET],
});

const model = (name: string, upstreamModel: string): Partial<EntryChange> => ({
  name,
  entry: `provider: acme\nupstream_model: ${upstreamModel}\nprice: { input: 0, output: 0 }`,
});

async function ask({ url }: Product, key: string, name: string): Promise<number> {
  const response = await postChat(url, key, { model: name, max_tokens: 10 });
  await response.body?.cancel();
  return response.status;
}

/** The version that all of a replica has in force. */
async function versionOf({ operationsUrl }: Product): Promise<number> {
  const ready = (await (await fetch(`${operationsUrl}/readyz`)).json()) as {
    stored_configuration: { version: number };
  };
  return ready.stored_configuration.version;
}

async function knows({ url }: Product, key: string, name: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/models/${name}`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.ok;
}

describe("two replicas", () => {
  const products: Product[] = [];
  let ports: StoredPorts;
  let store: Store;
  let databaseUrl: string;
  beforeAll(async () => {
    databaseUrl = await createDatabase(inject("postgresUrl"));
    const config = { ...CONFIG, database: { url: databaseUrl } };
    // One after the other: the first one makes the key. The second one has workers.
    products.push(await startProduct({ config }));
    products.push(await startProduct({ config: { ...config, workers: 2 } }));
    store = await openStore({ dataDir: products[0]!.home, databaseUrl });
    ports = portsOf(store, databaseUrl);
    await change(ports, acme(), model("held", "held"));
  });
  afterAll(async () => {
    await Promise.all(products.map((product) => product.stop()));
    await store?.close();
  });

  it(`follow ${CHANGES} changes within a second, and drop none of the calls in flight`, async () => {
    const held = new HeldCalls();
    upstream.script("held", [held.act]);
    const [first] = products;
    const key = first!.firstKey;
    const isInForce = (product: Product): Promise<boolean> => knows(product, key, "held");
    await expect.poll(() => Promise.all(products.map(isInForce))).toEqual([true, true]);
    const inFlight = Promise.allSettled(products.map((product) => ask(product, key, "held")));
    await expect.poll(() => held.count, { timeout: 5_000 }).toBe(2);
    const latenciesMs: number[] = [];
    for (let number = 0; number < CHANGES; number++) {
      upstream.script(`m-${number}`, [says("yes")]);
      await change(ports, model(`new-${number}`, `m-${number}`));
      const beganMs = performance.now();
      await Promise.all(
        products.map(async (product) => {
          while ((await ask(product, key, `new-${number}`)) !== 200) await delay(10);
          latenciesMs.push(performance.now() - beganMs);
        }),
      );
    }
    const sorted = latenciesMs.toSorted((one, other) => one - other);
    const [median, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!];
    console.log(`stored configuration: in force after ${median.toFixed(0)} ms, ${most.toFixed(0)} ms at most`);
    // The longest time is that of the machine's other work.
    expect(median).toBeLessThan(1_000);
    expect(most).toBeLessThan(10_000);
    held.release();
    expect(await inFlight).toEqual([200, 200].map((value) => ({ status: "fulfilled", value })));
    expect(upstream.calls("m-0")[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
    const rows = await queryPostgres(databaseUrl, "select * from configuration_versions, provider_credentials");
    expect(rows.length).toBeGreaterThan(CHANGES);
    expect(JSON.stringify(rows)).not.toContain(SECRET);
  });
});

describe("default limits of two replicas, one of them with workers, which count in Redis", () => {
  const products: Product[] = [];
  let store: Store;
  let redis: RedisServer;
  let set: (name: string, entry: string) => Promise<void>;
  beforeAll(async () => {
    redis = await launchRedis();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const config = {
      account_credentials: CONFIG.account_credentials,
      stored_configuration: CONFIG.stored_configuration,
      database: { url: databaseUrl },
      redis: { url: redis.url },
    };
    products.push(await startProduct({ config }));
    products.push(await startProduct({ config: { ...config, workers: 2 } }));
    store = await openStore({ dataDir: products[0]!.home, databaseUrl });
    const ports = portsOf(store, databaseUrl);
    set = async (name, entry) => {
      await change(ports, { section: "limits", name, entry });
      const latest = await store.configuration.latest();
      for (const product of products) while ((await versionOf(product)) !== latest) await delay(20);
    };
    upstream.script("limited", [says("yes")]);
    await change(ports, acme(), model("acme/limited", "limited"));
    await set("concurrent_requests", "unlimited");
  });
  afterAll(async () => {
    await Promise.all(products.map((product) => product.stop()));
    await store?.close();
    await redis?.stop();
  });

  /** Sends `each` requests to each replica at once, and returns their statuses. */
  const askBoth = async (each: number): Promise<number[]> =>
    Promise.all(
      products.flatMap((product) =>
        Array.from({ length: each }, () => ask(product, products[0]!.firstKey, "acme/limited")),
      ),
    );
  const served = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length;

  it("admit together what a lowered limit allows, and a raised one again", async () => {
    await expect.poll(() => askBoth(1), { timeout: 5_000 }).toEqual([200, 200]);
    await set("requests_per_minute", "60");
    // One is added each second.
    const beganMs = performance.now();
    const admitted = served(await askBoth(60));
    const addedMs = performance.now() - beganMs;
    console.log(`a lowered limit: ${admitted} of 120 requests within ${addedMs.toFixed(0)} ms, 60 allowed`);
    expect(admitted).toBeGreaterThanOrEqual(60);
    expect(admitted).toBeLessThanOrEqual(60 + Math.ceil(addedMs / 1_000));
    await set("requests_per_minute", "60000");
    // 120 are added in 0.12 s.
    await delay(500);
    expect(served(await askBoth(60))).toBe(120);
  });

  it("count calls in flight of both towards a lowered limit of calls at a time", async () => {
    await set("requests_per_minute", "unlimited");
    await set("concurrent_requests", "100");
    const held = new HeldCalls();
    upstream.script("limited", [held.act]);
    const inFlight = askBoth(2);
    await expect.poll(() => held.count, { timeout: 5_000 }).toBe(4);
    upstream.script("limited", [says("yes")]);
    await set("concurrent_requests", "5");
    // Each call is alone for its time.
    for (const product of [...products, ...products])
      expect(await ask(product, products[0]!.firstKey, "acme/limited")).toBe(200);
    await set("concurrent_requests", "4");
    expect(await askBoth(2)).toEqual([429, 429, 429, 429]);
    held.release();
    expect(await inFlight).toEqual([200, 200, 200, 200]);
    await expect.poll(() => askBoth(1), { timeout: 5_000 }).toEqual([200, 200]);
  });
});

it("a replica that starts without PostgreSQL has the stored configuration that it knew last", async () => {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const databaseUrl = await createDatabase(server.url);
  const config = { ...CONFIG, database: { url: databaseUrl } };
  const home = makeHome();
  const before = await startProduct({ config, home });
  const store = await openStore({ dataDir: home, databaseUrl });
  upstream.script("known", [says("yes")]);
  await change(portsOf(store, databaseUrl), acme(), model("acme/known", "known"));
  await expect.poll(() => ask(before, before.firstKey, "acme/known"), { timeout: 5_000 }).toBe(200);
  await store.close();
  before.signal("SIGTERM");
  await before.ending;
  await server.stop();
  const after = await startProduct({ config, home, withFirstKey: false });
  onTestFinished(() => after.stop());
  expect(await ask(after, before.firstKey, "acme/known")).toBe(200);
});
