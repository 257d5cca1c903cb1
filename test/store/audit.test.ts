import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, onTestFinished } from "vitest";
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
});
