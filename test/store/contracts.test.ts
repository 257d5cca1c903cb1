import { rmSync } from "node:fs";
import { describe, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { memoryKeyStore } from "../access/fakes.ts";
import { makeDataDir } from "../support/data-dir.ts";
import { describeStore } from "./contracts/contracts.ts";
import { describeKeyStore } from "./contracts/key-store.ts";

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

describe("the in-memory stores of other tests", () => {
  describeKeyStore(() => Promise.resolve({ keys: memoryKeyStore() }));
});
