import { rmSync } from "node:fs";
import { describe, onTestFinished } from "vitest";
import { openStore } from "../../../src/store/store.ts";
import { describeIsolation } from "./team-isolation.ts";
import { makeDataDir } from "../../support/data-dir.ts";

describe("permissions on SQLite", () => {
  describeIsolation(async () => {
    const dataDir = await makeDataDir("parley-isolation-");
    const store = await openStore({ dataDir, databaseUrl: undefined });
    onTestFinished(async () => {
      await store.close();
      rmSync(dataDir, { recursive: true });
    });
    return store;
  }, 8);
});
