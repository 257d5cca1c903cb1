import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { createChannel } from "../../src/alerts/channels.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import { alertJobs, type AlertParts, alertPortsOf } from "../../src/gateway/alerts.ts";
import { createHealthRecorder } from "../../src/router/upstream-health.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createDatabase } from "../support/postgres.ts";
import { startProduct } from "../support/product.ts";

const encryptionKey = randomBytes(32).toString("base64");
const config = (databaseUrl: string) => ({
  database: { url: databaseUrl },
  account_credentials: { encryption_key: encryptionKey },
  alerts: { allow_private: true },
});

async function receiver() {
  const received: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      received.push(body);
      response.end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

function partsOf(store: Store, databaseUrl: string, openProviders: readonly string[] = []): AlertParts {
  const parsed = parseConfig({ file: "parley.yaml", text: JSON.stringify(config(databaseUrl)), env: {} });
  const credentials = credentialCipherOf({ accountCredentials: { encryptionKey }, dataDir: "", providers: [] });
  const models = openProviders.map((providerName) => ({ id: providerName, providerName, upstream: { name: "m" } }));
  const router = { list: () => models, openingOf: () => ({ sinceMs: 0, remainingMs: 1, isProbed: false }) };
  return {
    store,
    router: router as unknown as AlertParts["router"],
    health: createHealthRecorder({ find: () => undefined }, systemClock),
    credentials,
    inForce: () => parsed,
  };
}

async function addChannel(parts: AlertParts, url: string): Promise<void> {
  const ports = alertPortsOf(parts, { clock: systemClock, log: { record: async () => undefined } });
  const actor = { actorId: undefined, network: undefined };
  await createChannel(ports, {
    kind: "slack",
    name: "Slack",
    url,
    recipients: [],
    rules: [],
    leastSeverity: "warning",
    actor,
  });
}

it("are opened and delivered exactly once by processes that evaluate and send at the same moment", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const { received, url } = await receiver();
  const stores = await Promise.all(Array.from({ length: 3 }, () => openStore({ dataDir: "/nowhere", databaseUrl })));
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
  const [first] = stores as [Store, ...Store[]];
  await createKey({ store: first.keys, clock: systemClock }, { name: "ci", lifetimeMs: 86_400_000 });
  await createKey({ store: first.keys, clock: systemClock }, { name: "billing", lifetimeMs: 2 * 86_400_000 });
  // Every process sees the provider down by its own circuit breaker.
  const parts = stores.map((store) => partsOf(store, databaseUrl, ["acme"]));
  await addChannel(parts[0]!, url);
  const signal = new AbortController().signal;
  const jobs = parts.map(alertJobs);
  const runAll = (index: number) => Promise.all(jobs.map((each) => each[index]!.run(signal)));
  for (let round = 0; round < 5; round++) {
    await runAll(0);
    await runAll(1);
  }
  const open = await first.alerts.open();
  expect(open.map(({ subject }) => subject.replace(/key_\w+/, "key")).toSorted()).toEqual([
    "key:key",
    "key:key",
    "provider:acme",
  ]);
  expect(received).toHaveLength(3);
  const deliveries = await first.alerts.deliveries(open.map(({ id }) => id));
  expect(deliveries.map(({ attempts, problem }) => [attempts, problem])).toEqual([
    [1, ""],
    [1, ""],
    [1, ""],
  ]);
});

it("of two gateways arrive once at a receiver", { timeout: 180_000 }, async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const { received, url } = await receiver();
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  await createKey({ store: store.keys, clock: systemClock }, { name: "ci", lifetimeMs: 86_400_000 });
  await addChannel(partsOf(store, databaseUrl), url);
  const products = await Promise.all([1, 2].map(() => startProduct({ config: config(databaseUrl) })));
  onTestFinished(async () => {
    await store.close();
    await Promise.all(products.map((product) => product.stop()));
  });
  await expect.poll(() => received.length, { timeout: 100_000, interval: 500 }).toBe(1);
  expect(JSON.parse(received[0]!)).toMatchObject({ text: expect.stringContaining("*The key “ci” expires on") });
  // Both gateways have looked again.
  await delay(65_000);
  expect(received).toHaveLength(1);
  expect(await store.alerts.open()).toHaveLength(1);
});
