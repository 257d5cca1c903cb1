import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Tests that need PostgreSQL, which they start themselves: npm run test:replicas. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ["test/replicas/**/*.test.ts"],
      globalSetup: ["test/replicas/setup.ts"],
      // Each starts processes of its own and measures them, beside nothing else and after nothing else.
      fileParallelism: false,
      isolate: true,
    },
  }),
);
