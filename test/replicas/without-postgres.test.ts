import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { generateApiKey } from "../../src/access/api-key.ts";
import { createKey, type CreatedKey, revokeKey } from "../../src/access/keys.ts";
import { monthOf, systemClock } from "../../src/core/clock.ts";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createDatabase, type PostgresServer, queryPostgres, startPostgres } from "../support/postgres.ts";
import { makeHome, type Product, type ProductOptions, runProduct, startProduct } from "../support/product.ts";
import { startRedis } from "../support/redis.ts";
import { says, type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { openTcpLink } from "./support/tcp-link.ts";
import { idsIn } from "./support/written-ids.ts";
import { postChat } from "../support/post-json.ts";

const MODEL = "held";
const REVOKED_MS = 5_000;
const FILE = "known-keys-0.sealed";

let server: PostgresServer;
let databaseUrl: string;
let store: Store;
let upstream: ScriptedUpstream;

beforeEach(async () => {
  server = await startPostgres();
  onTestFinished(() => server.stop());
  databaseUrl = await createDatabase(server.url);
  store = await openStore({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => store.close());
  upstream = await startScriptedUpstream();
  onTestFinished(() => upstream.close());
  upstream.script(MODEL, [says("one two three")]);
});

function make(limits: Partial<Limits> = {}): Promise<CreatedKey> {
  return createKey({ store: store.keys, clock: systemClock }, { name: "a", limits: { ...NO_LIMITS, ...limits } });
}

/** Files of entries that the database does not have. */
const unwrittenIn = ({ home }: Replica): readonly string[] =>
  readdirSync(join(home, "data")).filter((name) => /^unwritten-ledger-.*\.(?:jsonl|open)$/.test(name));

/** A replica with a data directory, that can be killed and started again. */
class Replica {
  readonly home = makeHome();
  readonly #options: () => ProductOptions & { readonly home: string };
  product: Product | undefined;

  constructor({ config = {}, env = {} }: { readonly config?: object; readonly env?: Record<string, string> } = {}) {
    const full = {
      limits: UNLIMITED,
      providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
      models: { [MODEL]: { provider: "local", upstream_model: MODEL, price: { input: 0, output: 1_000 } } },
      ...config,
    };
    this.#options = () => ({
      home: this.home,
      config: full,
      env: { PARLEY_DATABASE_URL: databaseUrl, ...env },
      withFirstKey: false,
    });
    onTestFinished(async () => {
      await this.kill();
      rmSync(this.home, { recursive: true, force: true });
    });
  }

  async start(): Promise<Product> {
    return (this.product = await startProduct(this.#options()));
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.product?.stop();
    this.product = undefined;
  }

  /** Starts it when it is expected to exit. */
  async fail(): Promise<{ readonly code: number | null; readonly stderr: string }> {
    const { ending, output, child } = runProduct(["serve"], this.#options());
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    const { code } = await ending;
    clearTimeout(timer);
    return { code, stderr: output.stderr };
  }

  /** Resolves when the file of known keys has what was known before the call. */
  async keptKeys(): Promise<void> {
    const sinceMs = Date.now();
    const path = join(this.home, "data", FILE);
    const isKept = (): boolean => existsSync(path) && statSync(path).mtimeMs > sinceMs + 100;
    for (let tries = 0; !isKept(); tries++) {
      if (tries > 900) throw new Error(`${path} was not written again`);
      await delay(100);
    }
  }
}

interface Told {
  readonly status: number;
  readonly id: string | undefined;
  readonly message: string | undefined;
}

async function ask({ url }: Product, key: string): Promise<Told> {
  const response = await postChat(url, key, { model: MODEL, max_tokens: 10 });
  const body = (await response.json()) as { id?: string; error?: { message: string } };
  return { status: response.status, id: body.id, message: body.error?.message };
}

async function statusOf(product: Product, key: string): Promise<number> {
  return (await ask(product, key)).status;
}

interface Readiness {
  readonly ready: boolean;
  readonly database: { readonly up: boolean };
  readonly ledger: { readonly waiting: number; readonly away: boolean };
}

async function readinessOf({ operationsUrl }: Product): Promise<Readiness> {
  return (await (await fetch(`${operationsUrl}/readyz`)).json()) as Readiness;
}

describe("a replica that starts while PostgreSQL is unavailable", { timeout: 180_000 }, () => {
  it("serves the keys that it knew, and books each completion once, through kills and the return", async () => {
    const replica = new Replica();
    const [plain, budget, late] = [await make(), await make({ monthlyBudgetMicroUsd: 1_000_000_000 }), await make()];
    let product = await replica.start();
    for (const { secret } of [plain, budget, late]) expect(await statusOf(product, secret)).toBe(200);
    await replica.keptKeys();
    const text = readFileSync(join(replica.home, "data", FILE), "latin1");
    for (const { record } of [plain, budget]) expect(text).not.toContain(record.id);
    for (const name of [FILE, "known-keys.key"]) {
      expect(statSync(join(replica.home, "data", name)).mode & 0o777).toBe(0o600);
    }

    await server.halt();
    const ids: string[] = [];
    const complete = async (): Promise<void> => {
      const { status, id, message } = await ask(product, plain.secret);
      expect([status, message]).toEqual([200, undefined]);
      ids.push(id!);
    };
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 10; count++) await complete();
      await replica.kill();
      product = await replica.start();
    }
    expect(await readinessOf(product)).toMatchObject({ ready: true, database: { up: false }, ledger: { away: true } });
    expect(product.output.stderr).toContain("the database cannot be reached: serving the keys that were known before");
    await complete();
    expect(await ask(product, budget.secret)).toMatchObject({ status: 503 });
    expect(await ask(product, generateApiKey())).toMatchObject({ status: 503 });
    const signedIn = await fetch(`${product.url}/parley.console.v1.SessionService/SignIn`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: product.url },
      body: JSON.stringify({ email: "a@example.com", password: "a long password of mine" }),
    });
    const { message } = (await signedIn.json()) as { message: string };
    expect([signedIn.status, message]).toEqual([503, expect.stringMatching(/\w+ .*\.$/) as string]);
    console.log(`  the dashboard says: ${message}`);

    await server.start();
    await expect
      .poll(() => readinessOf(product), { timeout: 20_000 })
      .toMatchObject({ database: { up: true }, ledger: { away: false, waiting: 0 } });
    expect(await statusOf(product, budget.secret)).toBe(200);
    expect(await statusOf(product, generateApiKey())).toBe(401);
    const written = await idsIn("/nowhere", databaseUrl);
    expect(ids.filter((id) => written.filter((one) => one === id).length !== 1)).toEqual([]);
    expect(unwrittenIn(replica)).toEqual([]);

    await revokeKey({ store: store.keys, clock: systemClock }, plain.record.id);
    await expect.poll(() => statusOf(product, plain.secret), { timeout: REVOKED_MS }).toBe(401);
    await replica.keptKeys();
    await server.halt();
    await replica.kill();
    product = await replica.start();
    expect([await statusOf(product, plain.secret), await statusOf(product, late.secret)]).toEqual([503, 200]);
  });

  it("exits with the reason without known keys, and when they are too old", async () => {
    const replica = new Replica({ config: { outage: { serve_ms: 20_000 } } });
    const { secret } = await make();
    const product = await replica.start();
    await server.halt();
    await replica.kill();
    const { code, stderr } = await replica.fail();
    expect([code, stderr]).toEqual([1, expect.stringContaining("nothing listens there") as string]);
    await server.start();
    await replica.start();
    expect(await statusOf(replica.product!, secret)).toBe(200);
    await replica.keptKeys();
    await server.halt();
    await replica.kill();
    expect(await statusOf(await replica.start(), secret)).toBe(200);
    await expect.poll(() => statusOf(replica.product!, secret), { timeout: 30_000, interval: 500 }).toBe(503);
    await replica.kill();
    expect((await replica.fail()).code).toBe(1);
    expect(product.output.stderr).not.toContain("known keys cannot be written");
  });

  it("exits when a newer Parley has migrated the database meanwhile", async () => {
    const replica = new Replica();
    const { secret } = await make();
    expect(await statusOf(await replica.start(), secret)).toBe(200);
    await replica.keptKeys();
    await replica.kill();
    await queryPostgres(databaseUrl, "update parley_schema set version = version + 1, usable_from = version + 1");
    await server.halt();
    const product = await replica.start();
    expect(await statusOf(product, secret)).toBe(200);
    await server.start();
    expect(await product.ending).toMatchObject({ code: 1 });
    expect(product.output.stderr).toContain("It was last used by a newer Parley");
    expect(unwrittenIn(replica)).toHaveLength(1);
  });
});

describe("keys under a budget while PostgreSQL is unavailable", { timeout: 180_000 }, () => {
  it("are served by two replicas up to what each holds, and are booked within the budget", async () => {
    const config = { outage: { budget_percent: 10 } };
    const replicas = [new Replica({ config }), new Replica({ config })] as const;
    // A completion holds 10,000 and costs 3,000; each replica holds 50,000.
    const { secret, record } = await make({ monthlyBudgetMicroUsd: 500_000 });
    const products = await Promise.all(replicas.map((replica) => replica.start()));
    for (const product of products) expect(await statusOf(product, secret)).toBe(200);
    const month = monthOf(systemClock.now());
    const spending = async () => (await store.ledger.spending([`key:${record.id}`], month))[0]!;
    await expect.poll(spending, { timeout: 20_000 }).toEqual({ spentMicroUsd: 6_000, heldMicroUsd: 100_000 });

    await server.halt();
    const ids: string[] = [];
    for (const product of products) {
      let told = await ask(product, secret);
      for (let count = 0; told.status === 200 && count < 50; count++) {
        ids.push(told.id!);
        told = await ask(product, secret);
      }
      expect(told).toMatchObject({ status: 503, message: expect.stringContaining("meanwhile is used up") as string });
    }
    // Until less than 10,000 are left.
    expect(ids).toHaveLength(2 * 14);
    await replicas[0].kill();

    await server.start();
    const restarted = await replicas[0].start();
    for (const product of [restarted, products[1]!]) {
      await expect
        .poll(() => readinessOf(product), { timeout: 20_000 })
        .toMatchObject({ database: { up: true }, ledger: { away: false, waiting: 0 } });
    }
    // The slice of the killed process stays held.
    await expect
      .poll(spending, { timeout: 30_000 })
      .toEqual({ spentMicroUsd: 6_000 + 28 * 3_000, heldMicroUsd: 100_000 });
    const written = await idsIn("/nowhere", databaseUrl);
    expect(ids.filter((id) => written.filter((one) => one === id).length !== 1)).toEqual([]);
    products[1]!.signal("SIGTERM");
    await products[1]!.ending;
    expect(await spending()).toMatchObject({ heldMicroUsd: 50_000 });
  });
});

describe("a replica that is cut off from PostgreSQL alone", { timeout: 180_000 }, () => {
  it("refuses a key within five seconds of its revocation elsewhere, also after a restart", async () => {
    const redis = await startRedis();
    const url = new URL(databaseUrl);
    const link = await openTcpLink(Number(url.port));
    onTestFinished(() => link.close());
    url.port = String(link.port);
    const env = { PARLEY_REDIS_URL: redis.url };
    const [cut, other] = [new Replica({ env: { ...env, PARLEY_DATABASE_URL: url.href } }), new Replica({ env })];
    const [kept, revoked, gone] = [await make(), await make(), await make()];
    await Promise.all([cut.start(), other.start()]);
    for (const { secret } of [kept, revoked, gone]) expect(await statusOf(cut.product!, secret)).toBe(200);
    await cut.keptKeys();
    link.cut();
    await delay(1_000);
    expect(await statusOf(cut.product!, revoked.secret)).toBe(200);
    await revokeKey({ store: store.keys, clock: systemClock }, revoked.record.id);
    await expect.poll(() => statusOf(cut.product!, revoked.secret), { timeout: REVOKED_MS }).toBe(503);
    expect(await statusOf(cut.product!, kept.secret)).toBe(200);
    await cut.kill();
    // While it is down, so that it knows the key when it starts again.
    await revokeKey({ store: store.keys, clock: systemClock }, gone.record.id);
    await delay(2_000);
    await cut.start();
    expect(await statusOf(cut.product!, revoked.secret)).toBe(503);
    expect(await statusOf(cut.product!, gone.secret)).toBe(503);
    expect(await statusOf(cut.product!, kept.secret)).toBe(200);
    link.mend();
    await expect.poll(() => statusOf(cut.product!, revoked.secret), { timeout: 15_000 }).toBe(401);
  });
});
