import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { setCredential } from "../../src/access/account-routing.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { answerText, localModel, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { type Product, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const REPLICAS = 3;
const CHANGES = 10;

let databaseUrl: string;
let upstream: Upstream;
let store: Store;
const encryptionKey = randomBytes(32).toString("base64");
const products: Product[] = [];

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "Yes."));
  databaseUrl = await createDatabase(inject("postgresUrl"));
  const { providers, models } = localModel(upstream.url) as { providers: { local: object }; models: object };
  const local = { ...providers.local, api_keys: ["key-of-the-operator"], account_credentials: "allowed" };
  const config = {
    providers: { local },
    models,
    database: { url: databaseUrl },
    account_credentials: { encryption_key: encryptionKey },
    limits: { requests_per_minute: "unlimited", tokens_per_minute: "unlimited" },
  };
  // One after the other: the first one makes the key.
  for (let count = 0; count < REPLICAS; count++) products.push(await startProduct({ config }));
  store = await openStore({ dataDir: products[0]!.home, databaseUrl });
});

afterAll(async () => {
  await Promise.all(products.map((product) => product.stop()));
  await store?.close();
  await upstream.close();
});

/** The credential that a replica uses for the first key. */
async function usedBy({ url }: Product): Promise<string | undefined> {
  const response = await postChat(url, products[0]!.firstKey, {
    model: "local/test",
    messages: [{ role: "user", content: url }],
  });
  expect(response.status).toBe(200);
  await response.body?.cancel();
  const last = upstream.exchanges.findLast(({ body }) => body.includes(url));
  return last?.request.headers.authorization?.replace("Bearer ", "");
}

it(`an account's own credential is used by all of ${REPLICAS} replicas within a second, ${CHANGES} times`, async () => {
  const cipher = credentialCipherOf({ accountCredentials: { encryptionKey }, dataDir: "", providers: [] });
  const context = {
    store: store.accounts,
    clock: systemClock,
    log: { record: async () => undefined },
    rules: { providers: () => ["local"], models: () => new Set<string>(), seal: cipher.seal },
  };
  const latenciesMs: number[] = [];
  for (const product of products) expect(await usedBy(product)).toBe("key-of-the-operator");
  for (let change = 0; change < CHANGES; change++) {
    const secret = `own-key-number-${change}`;
    const actor = { actorId: undefined, network: undefined };
    await setCredential(context, { accountId: DEFAULT_ACCOUNT_ID, provider: "local", secret, actor });
    const beganMs = performance.now();
    await Promise.all(
      products.map(async (product) => {
        while ((await usedBy(product)) !== secret) await delay(10);
        latenciesMs.push(performance.now() - beganMs);
        // It stays.
        expect(await usedBy(product)).toBe(secret);
      }),
    );
  }
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  const [median, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!];
  console.log(`own credentials: in use after ${median.toFixed(0)} ms, ${most.toFixed(0)} ms at most`);
  // The longest time is that of the machine's other work.
  expect(median).toBeLessThan(1_000);
  expect(most).toBeLessThan(10_000);
  const rows = await queryPostgres(databaseUrl, "select credentials from accounts");
  expect(JSON.stringify(rows)).toContain("sealed");
  expect(JSON.stringify(rows)).not.toContain("own-key-number");
});
