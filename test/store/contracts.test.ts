import { rmSync } from "node:fs";
import { describe, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { makeDataDir } from "../support/data-dir.ts";
import { describeStore } from "./contracts/contracts.ts";

describe("SQLite", () => {
  describeStore(async (options) => {
    const dataDir = await makeDataDir("parley-contract-");
    const store = await openStore({ dataDir, databaseUrl: undefined }, options);
    onTestFinished(async () => {
      await store.close();
      rmSync(dataDir, { recursive: true });
    });
    return store;
  });
});
