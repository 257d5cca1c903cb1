import { describe } from "vitest";
import { describeIsolation } from "./team-isolation.ts";
import { openMemoryStores } from "../../support/memory-database.ts";

describe("permissions on SQLite", () => {
  describeIsolation(async () => openMemoryStores(), 8);
});
