import { afterEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import { createRateStore } from "../../src/store/limits/rate-store.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** A database whose transactions take this long, and then fail. */
function slowDatabase(ms: number): Database {
  const transaction = () => new Promise((_resolve, reject) => setTimeout(() => reject(new Error("broken")), ms));
  return { kind: "postgres", transaction } as unknown as Database;
}

const SUBJECT = {
  subject: "key:slow",
  accountId: "acct_1",
  requestsPerMinute: 60,
  tokensPerMinute: undefined,
  concurrentRequests: undefined,
};

it("waits longer for the database while the process starts, as replicas that start together delay each other", async () => {
  vi.useFakeTimers();
  const rates = createRateStore(slowDatabase(1_500), { burstMs: 60_000, startingMs: 20_000 });
  const take = (id: string) => {
    const asked = rates.take({ id, subjects: [SUBJECT], tokens: 1 }).catch((error: Error) => error.message);
    return { asked, passed: vi.advanceTimersByTimeAsync(5_000) };
  };
  const starting = take("starting");
  await starting.passed;
  expect(await starting.asked).toBe("The database is unavailable.");
  await vi.advanceTimersByTimeAsync(20_000);
  const started = take("started");
  await started.passed;
  expect(await started.asked).toBe("The database does not answer in time.");
});
