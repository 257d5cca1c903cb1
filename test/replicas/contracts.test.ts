import { describe, inject, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { describeStore } from "../store/contracts/contracts.ts";
import { createDatabase } from "../support/postgres.ts";

describe("PostgreSQL", () => {
  describeStore(async (options) => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const store = await openStore({ dataDir: "/nowhere", databaseUrl }, options);
    onTestFinished(() => store.close());
    return store;
  });
});
