import { availableParallelism } from "node:os";
import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Tests of the built program, which they start as processes: npm run test:product. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  // Tests wait for the processes that they start.
  defineConfig({ test: { include: ["test/product/**/*.test.ts"], maxWorkers: availableParallelism() + 2 } }),
);
