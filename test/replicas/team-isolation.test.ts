import { describe, inject, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { describeIsolation } from "../inbound/dashboard/team-isolation.ts";
import { createDatabase } from "../support/postgres.ts";

describe("permissions on PostgreSQL", () => {
  describeIsolation(async () => {
    const store = await openStore({ dataDir: "", databaseUrl: await createDatabase(inject("postgresUrl")) });
    onTestFinished(() => store.close());
    return store;
  }, 4);
});
