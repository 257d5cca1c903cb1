// node bench/store.ts [postgres://…]: cost of the database, on SQLite in a temporary folder or on an empty PostgreSQL
// database. Prints the time, and the CPU time of this process with its thread, for each entry, hold and look-up.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey } from "../src/access/keys.ts";
import { hashApiKey } from "../src/access/api-key.ts";
import { systemClock } from "../src/core/clock.ts";
import type { LedgerEntry } from "../src/core/ledger.ts";
import { openStore } from "../src/store/store.ts";

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const store = await openStore({ dataDir, databaseUrl: process.argv[2] });
const keys = await Promise.all(
  Array.from({ length: 10 }, (_, index) => createKey({ store: store.keys, clock: systemClock }, { name: `${index}` })),
);
let made = 0;

for (const size of [1, 8, 32, 128]) {
  await measure(`ledger, ${size} entries at a time`, { operations: Math.max(size * 20, 1000), size }, () =>
    store.ledger.insert(Array.from({ length: size }, makeEntry)),
  );
}
for (const size of [1, 32, 128]) {
  await measure(`budgets, ${size} holds at once`, { operations: Math.max(size * 20, 1000), size }, async () => {
    await Promise.all(Array.from({ length: size }, hold));
  });
}
const rates = store.createRates({ burstMs: 60_000 });
for (const size of [1, 32, 128]) {
  await measure(`rates, ${size} requests at once`, { operations: Math.max(size * 20, 1000), size }, async () => {
    await Promise.all(Array.from({ length: size }, takeAndRelease));
  });
}
await measure("key, one look-up after the other", { operations: 3000, size: 1 }, async () => {
  await store.keys.findByHash(hashApiKey(keys[0]!.secret));
});
await store.close();
rmSync(dataDir, { recursive: true });

interface Amount {
  readonly operations: number;
  /** Operations per call of `work`. */
  readonly size: number;
}

async function measure(name: string, { operations, size }: Amount, work: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < operations / 4; done += size) await work();
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  for (let done = 0; done < operations; done += size) await work();
  const count = Math.ceil(operations / size) * size;
  const { user, system } = process.cpuUsage(cpu);
  const elapsedUs = ((performance.now() - startedAt) * 1000) / count;
  console.log(
    `${name.padEnd(36)} ${elapsedUs.toFixed(0).padStart(6)} µs   CPU ${((user + system) / count).toFixed(0)} µs`,
  );
}

function makeEntry(): LedgerEntry {
  const index = ++made;
  return {
    completionId: `chatcmpl-${process.pid}-${index}`,
    requestId: `req_${process.pid}-${index}`,
    accountId: "acct_default",
    keyId: keys[index % keys.length]!.record.id,
    entrance: "http",
    startedAtMs: Date.now(),
    endedAtMs: Date.now(),
    requestedModel: "m",
    servedModel: "m",
    streamed: false,
    outcome: "served",
    attempts: [],
    tokens: { prompt: 10, cached: 0, completion: 20, reasoning: 0, image: 0 },
    costMicroUsd: 1,
    durationMs: 12.5,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits: { requests: { limit: 600, remaining: 599, resetMs: 100 }, tokens: undefined },
  };
}

function subjectsOf(index: number): readonly string[] {
  return [`key:${keys[index % keys.length]!.record.id}`, "account:acct_default"];
}

async function hold(): Promise<void> {
  const index = ++made;
  const holds = subjectsOf(index).map((subject) => ({ subject, limitMicroUsd: 1e12 }));
  const id = `chatcmpl-${process.pid}-${index}`;
  await store.budgets.hold({ id, holds, amountMicroUsd: 1, lastsMs: 60_000, replica: "bench" });
}

async function takeAndRelease(): Promise<void> {
  const index = ++made;
  const limits = { requestsPerMinute: 1e6, tokensPerMinute: 1e9, concurrentRequests: 1000 };
  const subjects = subjectsOf(index).map((subject) => ({ subject, accountId: String(index), ...limits }));
  const id = `chatcmpl-${process.pid}-${index}`;
  await rates.take({ id, subjects, tokens: 10 });
  await rates.release({ id, subjects, reservedTokens: 10, usedTokens: 5 });
}
