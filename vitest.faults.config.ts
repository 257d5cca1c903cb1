import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** What breaks around Parley, and what may not: npm run faults. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ["test/faults/**/*.test.ts"],
      // PostgreSQL, for those that need it.
      globalSetup: ["test/replicas/setup.ts"],
      // Each has servers of its own, and counts what they do in a given time, beside and after nothing else.
      fileParallelism: false,
      isolate: true,
    },
  }),
);
