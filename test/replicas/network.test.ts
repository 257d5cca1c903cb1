import { once } from "node:events";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { MAIN, makeHome, type Product, startProduct } from "../support/product.ts";
import { startRedis } from "../support/redis.ts";
import { says, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { postChat } from "../support/post-json.ts";

const MODEL = "words";
/** Longer than the intervals of health, lists and exports that start at once. */
const WATCHED_MS = 4_000;

/** The product, of whose threads and children every address is recorded to which they connect or send. */
async function startWatched(config: object, env: Record<string, string> = {}) {
  const home = makeHome();
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const log = join(home, "network.log");
  const program = join(home, "watched");
  // -D: the product is the process that is started, and ends with it.
  const watch = `strace -D -f -qq --seccomp-bpf -s 0 -e trace=connect,sendto,sendmsg,sendmmsg -o ${log}`;
  writeFileSync(program, `#!/bin/sh\nexec ${watch} ${process.execPath} ${MAIN} "$@"\n`);
  chmodSync(program, 0o755);
  const product = await startProduct({ home, config, env, program });
  onTestFinished(() => product.stop());
  return { product, addresses: () => addressesIn(readFileSync(log, "utf8")) };
}

/** Addresses as `127.0.0.1:5432`; of sockets of the file system, their paths. */
function addressesIn(log: string): Set<string> {
  const addresses = new Set<string>();
  for (const line of log.split("\n")) {
    const [, port, ip] = /sin6?_port=htons\((\d+)\).*?"([0-9a-f.:]+)"/.exec(line) ?? [];
    const [, path] = /sun_path="([^"]+)"/.exec(line) ?? [];
    if (ip !== undefined) addresses.add(`${ip}:${port}`);
    else if (path !== undefined) addresses.add(path);
  }
  return addresses;
}

async function use({ url, operationsUrl }: Product, key: string, model: string): Promise<void> {
  const response = await postChat(url, key, { model });
  expect(response.status, await response.text()).toBe(200);
  for (const address of [`${url}/`, `${url}/v1/models`, `${url}/openapi.json`, `${operationsUrl}/metrics`])
    await (await fetch(address)).text();
  await delay(WATCHED_MS);
}

it("a process with the defaults connects to nothing but its own simulator", async () => {
  const { product, addresses } = await startWatched({ simulator: { first_token_ms: 0 } });
  await use(product, product.firstKey, "alpha-haiku-4.5");
  const others = [...addresses()].filter((address) => !address.startsWith("127.0.0.1:"));
  expect(others).toEqual([]);
  expect(addresses().size).toBe(1);
});

it("a process connects to its database, Redis, provider and collector, and to nothing else", async () => {
  const collector = createServer((request, response) => {
    request.resume().on("end", () => response.end());
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void collector.close());
  await once(collector, "listening");
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const redis = await startRedis();
  const upstream = await startScriptedUpstream();
  onTestFinished(() => upstream.close());
  upstream.script(MODEL, [says("one two")]);
  const { product, addresses } = await startWatched(
    {
      providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
      models: { [MODEL]: { provider: "local", upstream_model: MODEL } },
    },
    {
      PARLEY_DATABASE_URL: databaseUrl,
      PARLEY_REDIS_URL: redis.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
    },
  );
  await use(product, product.firstKey, MODEL);
  const ports = [databaseUrl, redis.url, upstream.url].map((url) => Number(new URL(url).port));
  ports.push((collector.address() as AddressInfo).port);
  expect(addresses()).toEqual(new Set(ports.map((port) => `127.0.0.1:${port}`)));
});
