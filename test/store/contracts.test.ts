import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { memoryKeyStore } from "../access/fakes.ts";
import { describeStore } from "./contracts/contracts.ts";
import { describeKeyStore } from "./contracts/key-store.ts";

describe("SQLite", () => {
  describeStore(async (options) => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-contract-"));
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
