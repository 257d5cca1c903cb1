import { onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { openRedisRates, type RedisEvent, type RedisRates } from "../../../src/limits/redis.ts";
import { demandOf, subjectOf } from "../../limits/demands.ts";

/** A time limit for busy machines, above that of requests. */
const PATIENT_MS = 20_000;
/** Enough accounts for each master to have some. */
const ACCOUNTS = 30;

/** Opens rates in a cluster, closes them after the test, and waits until all masters are in use. */
export async function openClusterRates(
  url: string,
  { commandMs = PATIENT_MS, events = [] }: { readonly commandMs?: number; readonly events?: RedisEvent[] } = {},
): Promise<RedisRates> {
  const onEvent = (event: RedisEvent): void => void events.push(event);
  const place = { mode: "cluster" } as const;
  const rates = await openRedisRates({ url, place, clock: systemClock, burstMs: 60_000, commandMs, onEvent });
  onTestFinished(() => rates.close());
  const subjects = Array.from({ length: ACCOUNTS }, (_, index) =>
    subjectOf("key:open", { accountId: `acct_open_${index}`, requestsPerMinute: 1_000_000 }),
  );
  await vi.waitFor(() => Promise.all(subjects.map((subject) => rates.take(demandOf([subject])))), 20_000);
  return rates;
}
