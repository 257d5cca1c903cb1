import { describe } from "vitest";
import { openTestStore } from "../support/test-store.ts";
import { describeStore } from "./contracts/contracts.ts";

describe("SQLite", () => {
  describeStore(async (options) => (await openTestStore(options)).store);
});
