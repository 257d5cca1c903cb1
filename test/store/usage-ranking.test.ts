import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { STEP_MS } from "../../src/ledger/usage-store.ts";
import type { Store } from "../../src/store/store.ts";
import { entry, NOON } from "./contracts/entries.ts";
import { openTestStore } from "../support/test-store.ts";

const DAYS = [0, 1, 2].map((day) => Math.floor(NOON / STEP_MS.day) * STEP_MS.day + day * STEP_MS.day);
const SPAN = { sinceMs: DAYS[0]!, untilMs: DAYS[2]! + STEP_MS.day };

async function openWithDays(): Promise<{ readonly store: Store; readonly direct: DatabaseSync }> {
  const { store, dataDir } = await openTestStore();
  const direct = new DatabaseSync(join(dataDir, "parley.db"));
  onTestFinished(() => direct.close());
  await store.ledger.insert(DAYS.map((startedAtMs) => entry({ startedAtMs })));
  return { store, direct };
}

function rankedDays(direct: DatabaseSync): unknown[] {
  return direct
    .prepare("select day_ms from usage_leaders where kind = 'all' order by 1")
    .all()
    .map((row) => row["day_ms"]);
}

it("ranks the other days when one cannot be ranked, and rejects with its error", async () => {
  const { store, direct } = await openWithDays();
  direct.exec(`create trigger fault before insert on usage_leaders when new.day_ms = ${DAYS[0]}
    begin select raise(abort, 'no room for this day'); end`);
  const rank = () => store.usage.rank(SPAN, new AbortController().signal);
  await expect(rank()).rejects.toThrow("no room for this day");
  expect(rankedDays(direct)).toEqual(DAYS.slice(1));
  direct.exec("drop trigger fault");
  expect(await rank()).toBe(1);
  expect(rankedDays(direct)).toEqual(DAYS);
});

it("ranks no day once the signal has aborted", async () => {
  const { store, direct } = await openWithDays();
  expect(await store.usage.rank(SPAN, AbortSignal.abort())).toBe(0);
  expect(rankedDays(direct)).toEqual([]);
});
