import { describe, expect, it } from "vitest";
import { type ChainLink, formatLink } from "../../src/access/audit-entry.ts";
import { verifyChain } from "../../src/access/audit-verification.ts";
import { connect, connectUnlimited, type DatabaseLocation } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrate.ts";
import { planMigration } from "../../src/store/migration-plan.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { audit as auditMigration } from "../../src/store/migrations/audit.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { auditEntry, LATER_MS } from "./contracts/audit-store.ts";

/** An empty database, and statements beside the program. */
export interface EmptyDatabase {
  readonly location: DatabaseLocation;
  edit(sql: string): Promise<void>;
}

const ENTRIES = 8;
const DAY_MS = 24 * 60 * 60 * 1000;

async function withEntries({ location }: EmptyDatabase, use: (store: Store, heads: ChainLink[]) => Promise<void>) {
  const store = await openStore(location);
  const heads: ChainLink[] = [];
  try {
    for (let index = 1; index <= ENTRIES; index += 1) {
      await store.audit.append(auditEntry({ atMs: 1_700_000_000_000 + index, after: `{"name":"name ${index}"}` }));
      heads.push((await store.audit.ends()).head);
    }
    await use(store, heads);
  } finally {
    await store.close();
  }
}

/** The head of the chain as somebody would set it who has cut off its end. */
const SET_HEAD =
  "update audit_chain set head_sequence = 5, head_hash = (select hash from audit_entries where sequence = 5)";

const SWAP = [3, 4].map((sequence) => `update audit_entries set sequence = -${sequence} where sequence = ${sequence}`);

const INSERTED =
  "insert into audit_entries (sequence, at_ms, action, actor_kind, result, hash) select sequence + 1, at_ms, action, actor_kind, result, hash from audit_entries where sequence = 8";

/** Registers the suite of what somebody can do to the tables of the audit log, and of its migration. */
export function describeAuditDatabase(open: () => Promise<EmptyDatabase>): void {
  describe("the verification of the audit log", () => {
    it.each<[what: string, edits: readonly string[], found: string]>([
      [
        "an entry beyond the end",
        [INSERTED.replace("sequence + 1", "sequence + 1000")],
        "entry 1008 is after the stored head 8:",
      ],
      [
        "an entry before the beginning",
        [INSERTED.replace("sequence + 1", "-sequence")],
        "entry -8 is before the anchor 0:",
      ],
      ["a changed time", ["update audit_entries set at_ms = at_ms + 1 where sequence = 4"], "entry 4 was changed"],
      ["a changed actor", ["update audit_entries set actor_id = 'acct_eve' where sequence = 1"], "entry 1 was changed"],
      ["a removed actor", ["update audit_entries set actor_id = null where sequence = 8"], "entry 8 was changed"],
      ["a changed value", ["update audit_entries set after_json = '{}' where sequence = 5"], "entry 5 was changed"],
      [
        "a value that has moved to another column",
        ["update audit_entries set object_id = account_id, account_id = object_id where sequence = 2"],
        "entry 2 was changed",
      ],
      [
        "a changed hash",
        ["update audit_entries set hash = 'f' || substr(hash, 2) where sequence = 6"],
        "entry 6 was changed",
      ],
      ["a removed entry", ["delete from audit_entries where sequence = 3"], "entry 3 is missing"],
      ["a removed range", ["delete from audit_entries where sequence between 3 and 5"], "entries 3 to 5 are missing"],
      ["a removed beginning", ["delete from audit_entries where sequence < 3"], "entries 1 to 2 are missing"],
      [
        "two entries in the other order",
        [
          ...SWAP,
          "update audit_entries set sequence = 4 where sequence = -3",
          "update audit_entries set sequence = 3 where sequence = -4",
        ],
        "entry 3 was changed",
      ],
      ["a cut end", ["delete from audit_entries where sequence > 5"], "entries 6 to 8 are missing"],
      ["all entries removed", ["delete from audit_entries"], "entries 1 to 8 are missing"],
      ["an inserted entry", [INSERTED, "update audit_chain set head_sequence = 9"], "entry 9 was changed"],
      [
        "another head",
        ["update audit_chain set head_hash = (select hash from audit_entries where sequence = 7)"],
        "the last entry is not the stored head",
      ],
    ])("finds %s", async (_, edits, found) => {
      const database = await open();
      await withEntries(database, async (store) => {
        expect((await verifyChain(store.audit, undefined, LATER_MS)).problem).toBeUndefined();
        for (const sql of edits) await database.edit(sql);
        expect((await verifyChain(store.audit, undefined, LATER_MS)).problem).toContain(found);
      });
    });

    it("finds a cut end whose stored head was set back by a head that was kept elsewhere", async () => {
      const database = await open();
      await withEntries(database, async (store, heads) => {
        for (const head of heads) expect((await verifyChain(store.audit, head, LATER_MS)).problem).toBeUndefined();
        await database.edit("delete from audit_entries where sequence > 5");
        await database.edit(SET_HEAD);
        expect((await verifyChain(store.audit, undefined, LATER_MS)).problem).toBeUndefined();
        expect((await verifyChain(store.audit, heads[6], LATER_MS)).problem).toBe(
          "the log ends with entry 5, the kept head is entry 7: entries were cut off the end",
        );
        // What is appended now takes the places of what was cut off.
        for (let index = 0; index < 3; index += 1) await store.audit.append(auditEntry());
        expect((await verifyChain(store.audit, undefined, LATER_MS)).problem).toBeUndefined();
        expect((await verifyChain(store.audit, heads[6], LATER_MS)).problem).toMatch(/^entry 7 has the hash \w{64}, /);
        expect((await verifyChain(store.audit, heads[4], LATER_MS)).problem).toBeUndefined();
      });
    });

    it("finds a beginning that was cut off, whatever the anchor is then", async () => {
      const database = await open();
      await withEntries(database, async (store, heads) => {
        const nowMs = LATER_MS - 200 * DAY_MS;
        const verify = async () => (await verifyChain(store.audit, heads[6], nowMs)).problem;
        expect(await verify()).toBeUndefined();
        await database.edit("delete from audit_entries where sequence <= 5");
        await database.edit(`update audit_chain set anchor_sequence = 5, anchor_hash = '${heads[4]!.hash}'`);
        expect(await verify()).toBe(
          "entries up to 5 were cut off the beginning, not pruned: entry 6 after them is of 2023-11-14 only",
        );
        await database.edit("update audit_entries set at_ms = 1 where sequence = 6");
        expect(await verify()).toContain("entry 6 was changed");
        await database.edit("delete from audit_entries");
        await database.edit(`update audit_chain set anchor_sequence = 8, anchor_hash = '${heads[7]!.hash}'`);
        expect((await verifyChain(store.audit, undefined, nowMs)).problem).toBe("entries 1 to 8 are missing");
      });
    });

    it("finds an anchor that was moved over entries which a kept head names", async () => {
      const database = await open();
      await withEntries(database, async (store, heads) => {
        await database.edit("delete from audit_entries where sequence <= 5");
        await database.edit(`update audit_chain set anchor_sequence = 5, anchor_hash = '${"a".repeat(64)}'`);
        expect((await verifyChain(store.audit, undefined, LATER_MS)).problem).toContain("entry 6 was changed");
        await database.edit(`update audit_chain set anchor_hash = '${heads[4]!.hash}'`);
        expect((await verifyChain(store.audit, heads[4], LATER_MS)).problem).toBeUndefined();
        expect((await verifyChain(store.audit, heads[3], LATER_MS)).problem).toContain("give a later head");
        expect((await verifyChain(store.audit, { ...heads[4]!, hash: "b".repeat(64) }, LATER_MS)).problem).toContain(
          "not that of the kept head",
        );
      });
    });
  });

  describe("the migration to the audit log", () => {
    const event = (id: string, atMs: number, rest: string): string =>
      `insert into security_events (id, at_ms, type, actor_id, account_id, network, details) values ('${id}', ${atMs}, ${rest})`;

    it("has all security events in the order of their time, and takes those that come later", async () => {
      const database = await open();
      const { location } = database;
      const old = await connect(location);
      await migrate(old, () => connectUnlimited(location), {
        migrations: MIGRATIONS.slice(0, MIGRATIONS.indexOf(auditMigration)),
      });
      await old.close();
      await database.edit(event("b", 2, `'key_revoked', 'acct_ada', 'acct_bob', '192.0.2.0/24', '{"key_id":"key_1"}'`));
      await database.edit(event("a", 1, `'sign_in_failed', null, null, '192.0.2.0/24', '{"email_hash":"abc"}'`));
      await database.edit(
        event("c", 3, `'role_changed', null, 'acct_bob', null, '{"from":"member","to":"administrator"}'`),
      );
      for (let index = 0; index < 600; index += 1)
        await database.edit(event(`many ${index}`, 10, "'signed_in', 'acct_ada', 'acct_ada', '192.0.2.0/24', '{}'"));
      const { pending } = await planMigration(location);
      const planned = pending.find(({ name }) => name === auditMigration.name)!.statements.map(({ sql }) => sql);
      expect(planned.filter((sql) => /^(?:insert|delete)/.test(sql))).toEqual([
        expect.stringMatching(/^insert into "audit_entries" .* values \([?$\d, ]+\), …$/),
        expect.stringMatching(/^delete from "security_events" where "id" in \([?$\d]+, …\)$/),
        expect.stringMatching(/^insert into "audit_chain"/),
      ]);
      const store = await openStore(location);
      try {
        expect(await verifyChain(store.audit, undefined, LATER_MS)).toMatchObject({ entries: 603, problem: undefined });
        expect(await store.audit.follow({ sequence: 0, limit: 3 })).toMatchObject([
          { action: "sign_in_failed", actor: { kind: "nobody" }, result: "failed", details: '{"email_hash":"abc"}' },
          {
            action: "key_revoked",
            actor: { kind: "account", id: "acct_ada" },
            object: { kind: "key", id: "key_1" },
            accountId: "acct_bob",
            details: undefined,
          },
          {
            action: "role_changed",
            actor: { kind: "command_line" },
            object: { kind: "account", id: "acct_bob" },
            before: '{"role":"member"}',
            after: '{"role":"administrator"}',
          },
        ]);
        // A program of before the audit log, in a rolling update.
        await database.edit(event("late", 11, "'signed_out', 'acct_ada', 'acct_ada', '192.0.2.0/24', '{}'"));
        expect([await store.audit.takeEvents(), await store.audit.takeEvents()]).toEqual([1, 0]);
        expect(await store.audit.list({ limit: 1 })).toMatchObject([{ sequence: 604, action: "signed_out" }]);
        const { head, problem } = await verifyChain(store.audit, undefined, LATER_MS);
        expect(problem).toBeUndefined();
        expect(formatLink(head)).toMatch(/^604:[0-9a-f]{64}$/);
      } finally {
        await store.close();
      }
    });
  });
}
