import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { EntryFiles } from "../../src/ledger/entry-files.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { createLimiter } from "../../src/limits/limiter.ts";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { openStore } from "../../src/store/store.ts";
import { QUIET } from "../../test/support/metrics.ts";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import { median, quiet } from "../measure/statistics.ts";

/** Cost of one accounting step, in CPU-microseconds of the whole process per request. */
export interface AccountingCost {
  readonly name: string;
  readonly medianUs: number;
  readonly quietUs: number;
}

interface Step {
  readonly name: string;
  readonly run: () => Promise<unknown>;
}

/** Typical number of requests in flight, which determines how many entries share a commit. */
const CALLERS = 64;
const REQUESTS = 6_400;
const WARM_UP_ROUNDS = 2;

const LIMITS: Limits = {
  requestsPerMinute: 1_000_000_000,
  tokensPerMinute: 1_000_000_000,
  concurrentRequests: 100_000,
  monthlyBudgetMicroUsd: undefined,
};

/** Measures access, limits, ledger and metrics separately, on SQLite and in memory, as in a process with default settings. */
export async function measureAccounting(rounds: number): Promise<readonly AccountingCost[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const store = await openStore({ dataDir, databaseUrl: undefined });
  const clock = systemClock;
  const ledger = createLedger({
    files: new EntryFiles(dataDir),
    store: store.ledger,
    clock,
    process: "bench",
    onTrouble: () => undefined,
  });
  const rates = createMemoryRates({ clock, burstMs: 60_000 });
  const limiter = createLimiter({
    rates,
    budgets: store.budgets,
    spending: (subjects, month) => store.ledger.spending(subjects, month),
    defaults: () => LIMITS,
    clock,
    burstMs: 60_000,
    replicaId: "bench",
  });
  try {
    const { secret } = await createKey({ store: store.keys, clock }, { name: "bench" });
    const authenticator = createAuthenticator({ store: store.keys, clock });
    const plain = await authenticator.authenticate(secret);
    const budgeted = { ...plain, limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000_000_000_000 } };
    let count = 0;
    const reserve = async (principal: typeof plain) => {
      const demand = { completionId: `chatcmpl-bench-${count++}`, tokens: 1_000, costMicroUsd: 1_000, lastsMs: 60_000 };
      const reservation = await limiter.reserve({ principal, ...demand });
      reservation.release(500);
      return demand.completionId;
    };
    const metrics = createMetrics(QUIET);
    const steps: readonly Step[] = [
      { name: "metrics: one completion with one attempt", run: async () => metrics.completion(SAMPLE) },
      { name: "access: a key that is known", run: () => authenticator.authenticate(secret) },
      { name: "limits: rates and concurrency of the account", run: () => reserve(plain) },
      { name: "ledger: one entry, durable", run: () => ledger.append(entryOf(`chatcmpl-bench-${count++}`, plain)) },
      {
        name: "limits and ledger with a budget",
        run: async () => ledger.append(entryOf(await reserve(budgeted), budgeted)),
      },
    ];
    for (let round = 0; round < WARM_UP_ROUNDS; round++) for (const step of steps) await measureSlice(step);
    const slices: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      const costs: number[] = [];
      for (const step of steps) costs.push(await measureSlice(step));
      slices.push(costs);
    }
    return steps.map(({ name }, index) => {
      const own = slices.map((round) => round[index]!);
      return { name, medianUs: median(own), quietUs: quiet(own) };
    });
  } finally {
    await ledger.close();
    limiter.close();
    await rates.close();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

const SAMPLE: Parameters<Metrics["completion"]>[0] = {
  entrance: "http",
  model: "alpha-haiku-4.5",
  outcome: "served",
  streamed: false,
  durationMs: 100,
  firstContentMs: undefined,
  promptTokens: 300,
  cachedTokens: 0,
  completionTokens: 200,
  costMicroUsd: 500,
  isEstimated: false,
  isOverReserved: false,
  attempts: [
    { target: "alpha-haiku-4.5", provider: "alpha", outcome: "served", durationMs: 90, firstContentMs: undefined },
  ],
  caller: { key: "key_bench", tags: undefined },
};

/** CPU time of all threads of the process, including SQLite's. */
async function measureSlice({ run }: Step): Promise<number> {
  const start = process.cpuUsage();
  const callers = Array.from({ length: CALLERS }, async () => {
    for (let request = 0; request < REQUESTS / CALLERS; request++) await run();
  });
  await Promise.all(callers);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / REQUESTS;
}

function entryOf(completionId: string, { accountId, keyId }: { accountId: string; keyId: string }): LedgerEntry {
  return {
    completionId,
    requestId: completionId,
    accountId,
    keyId,
    entrance: "http",
    startedAtMs: Date.now() - 100,
    endedAtMs: Date.now(),
    requestedModel: "alpha-haiku-4.5",
    servedModel: "alpha-haiku-4.5",
    streamed: false,
    outcome: "served",
    attempts: [],
    tokens: { prompt: 300, cached: 0, completion: 200, reasoning: 0, image: 0 },
    costMicroUsd: 500,
    durationMs: 100,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits: undefined,
  };
}

/** The figures as a table for the terminal. */
export function formatAccounting(costs: readonly AccountingCost[]): string {
  const rows = costs.map(
    ({ name, medianUs, quietUs }) =>
      name.padEnd(48) + [medianUs, quietUs].map((cost) => cost.toFixed(1).padStart(9)).join(""),
  );
  const title = `accounting, ${CALLERS} requests at a time, SQLite`;
  return [title, `${"".padEnd(48)}${["CPU-µs", "quiet"].map((cell) => cell.padStart(9)).join("")}`, ...rows].join("\n");
}
