import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CompiledQuery } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { auditPage } from "../../src/store/access/audit-store.ts";
import { openDatabase } from "../../src/store/open-database.ts";
import { describeAuditDatabase } from "./audit-database.ts";

describe("in SQLite", () => {
  describeAuditDatabase(async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-audit-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    return {
      location: { dataDir, databaseUrl: undefined },
      async edit(sql) {
        const database = new DatabaseSync(join(dataDir, "parley.db"), { timeout: 5_000 });
        try {
          database.exec(sql);
        } finally {
          database.close();
        }
      },
    };
  });

  it("a page of an account reads entries of this account only, whatever its other conditions", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-audit-"));
    const { database } = await openDatabase({ dataDir, databaseUrl: undefined });
    onTestFinished(async () => {
      await database.close();
      rmSync(dataDir, { recursive: true });
    });
    const filter = { accountId: "acct_a", actorKind: "account", action: "key_created", result: "done" } as const;
    const { sql, parameters } = auditPage(database, { ...filter, limit: 50 }).compile();
    const plan = await database.query.executeQuery<{ readonly detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    );
    expect(plan.rows.map(({ detail }) => detail)).toContain(
      "SEARCH audit_entries USING INDEX audit_entries_account_id (account_id=?)",
    );
  });
});
