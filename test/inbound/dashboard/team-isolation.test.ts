import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { openStore } from "../../../src/store/store.ts";
import { describeIsolation } from "./team-isolation.ts";

describe("permissions on SQLite", () => {
  describeIsolation(async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-isolation-"));
    const store = await openStore({ dataDir, databaseUrl: undefined });
    onTestFinished(async () => {
      await store.close();
      rmSync(dataDir, { recursive: true });
    });
    return store;
  }, 8);
});
