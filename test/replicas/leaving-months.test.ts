import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";
import { demand } from "../store/contracts/demands.ts";
import { entry } from "../store/contracts/entries.ts";
import { createDatabase } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const SEPTEMBER = Date.UTC(2026, 8, 15);
const NOVEMBER = Date.UTC(2026, 10, 15);

async function openFresh(): Promise<{ url: string; store: Store }> {
  const url = await createDatabase(inject("postgresUrl"));
  const store = await openStore({ dataDir: "/nowhere", databaseUrl: url });
  onTestFinished(() => store.close());
  return { url, store };
}

function at(startedAtMs: number, completionId: string) {
  return entry({ startedAtMs, endedAtMs: startedAtMs + 1500, completionId });
}

async function idsOf({ ledger }: Store): Promise<string[]> {
  return (await ledger.list({ limit: 99 })).entries.map(({ completionId }) => completionId);
}

describe("retention", () => {
  it("removes no month that has not ended by the database's clock", async () => {
    const { store } = await openFresh();
    const nowMs = Date.now();
    await store.ledger.insert([at(nowMs - 70 * DAY_MS, "old"), at(nowMs, "now"), at(nowMs + 70 * DAY_MS, "later")]);
    await store.ledger.flush();
    while ((await store.ledger.prune(nowMs + 900 * DAY_MS)) > 0);
    while ((await store.usage.prune(nowMs + 900 * DAY_MS)) > 0);
    expect(await idsOf(store)).toEqual(["later", "now"]);
    expect(await store.ledger.prepareMonths([nowMs, nowMs + 70 * DAY_MS])).toBe(0);
  });

  it.each(["completions", "usage_hours"])(
    "drops an entry whose month leaves %s while a dump runs, settles its hold once and writes all others",
    async (table) => {
      const { url, store } = await openFresh();
      await store.ledger.prepareMonths([SEPTEMBER]);
      const [dump, detach] = [new pg.Client(url), new pg.Client(url)];
      await Promise.all([dump.connect(), detach.connect()]);
      await dump.query("begin isolation level repeatable read");
      await dump.query("select count(*) from completions, usage_hours");
      await detach.query("set statement_timeout = 200");
      await expect(detach.query(`alter table ${table} detach partition ${table}_2026_09 concurrently`)).rejects.toThrow(
        /statement timeout/,
      );
      const held = demand({ amountMicroUsd: 100 });
      await store.budgets.hold(held);
      const late = { ...at(SEPTEMBER, held.id), keyId: "k", costMicroUsd: 40 };
      for (const entries of [[late], [late, late, at(NOVEMBER, "c")]]) {
        await store.ledger.insert(entries);
        await store.ledger.flush();
      }
      const month = new Date().toISOString().slice(0, 7);
      expect(await store.ledger.spending(["key:k"], month)).toEqual([{ spentMicroUsd: 40, heldMicroUsd: 0 }]);
      expect(await idsOf(store)).toEqual(["c"]);
      expect([store.ledger.takeDropped(), store.ledger.takeDropped()]).toEqual([2, 0]);
      await Promise.all([dump.end(), detach.end()]);
      expect(await store.ledger.prune(NOVEMBER)).toBe(1);
    },
  );
});
