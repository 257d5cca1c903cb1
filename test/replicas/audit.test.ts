import { describe, expect, inject, it, onTestFinished } from "vitest";
import { verifyChain } from "../../src/access/audit-verification.ts";
import { openStore } from "../../src/store/store.ts";
import { describeAuditDatabase } from "../store/audit-database.ts";
import { auditEntry, LATER_MS } from "../store/contracts/audit-store.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";

describe("in PostgreSQL", () => {
  describeAuditDatabase(async () => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    return {
      location: { dataDir: "/nowhere", databaseUrl },
      async edit(sql) {
        await queryPostgres(databaseUrl, sql);
      },
    };
  });

  it("20 processes that append at the same time, while one prunes, make one unbroken chain", async () => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const open = () => openStore({ dataDir: "/nowhere", databaseUrl, databaseConnections: 3 });
    const first = await open();
    const stores = [first, ...(await Promise.all(Array.from({ length: 19 }, open)))];
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()));
    });
    const EACH = 25;
    await Promise.all(
      stores.map(async ({ audit }, writer) => {
        for (let index = 0; index < EACH; index += 1) {
          await audit.append(auditEntry({ object: { kind: "key", id: `key_${writer}_${index}` } }));
          if (writer === 0 && index === 10) await audit.prune({ beforeMs: 0, most: 20 });
        }
      }),
    );
    const { entries, anchor, head, problem } = await verifyChain(first.audit, undefined, LATER_MS);
    expect(problem).toBeUndefined();
    expect(head.sequence).toBe(20 * EACH);
    expect(entries).toBe(20 * EACH - anchor.sequence);
    expect(anchor.sequence).toBeGreaterThan(0);
    // Each writer's entries are in its order.
    const all = await first.audit.follow({ sequence: 0, limit: 1_000 });
    for (let writer = 0; writer < 20; writer += 1) {
      const own = all.flatMap(({ object }) => {
        const [, by, index] = /^key_(\d+)_(\d+)$/.exec(object?.id ?? "") ?? [];
        return by === String(writer) ? [Number(index)] : [];
      });
      expect(own).toEqual(own.toSorted((one, other) => one - other));
    }
  });

  it("a flood of failed sign-ins takes one connection of a process", async () => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const [store, other] = await Promise.all([
      openStore({ dataDir: "/nowhere", databaseUrl, databaseConnections: 4 }),
      openStore({ dataDir: "/nowhere", databaseUrl }),
    ]);
    onTestFinished(async () => {
      await Promise.all([store.close(), other.close()]);
    });
    const lock = "select pg_sleep(1) from (select * from audit_chain for update) as chain";
    const locked = queryPostgres(databaseUrl, lock);
    const waits =
      "select count(*) as waiting from pg_stat_activity where query like '%audit_chain%' and state = 'active'";
    await expect.poll(() => queryPostgres(databaseUrl, waits)).toEqual([{ waiting: "2" }]);
    const appended = Array.from({ length: 200 }, () => store.audit.append(auditEntry()));
    await expect.poll(() => queryPostgres(databaseUrl, waits)).toEqual([{ waiting: "3" }]);
    // Others of the pool still answer.
    expect((await store.accounts.list()).length).toBe(1);
    await Promise.all([locked, ...appended]);
    expect(await verifyChain(other.audit, undefined, LATER_MS)).toMatchObject({ entries: 200, problem: undefined });
  });
});
