import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Tests of the packages, with the tools of those who use them: npm run test:packages. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  // One file after the other: two of them build the release.
  defineConfig({ test: { include: ["test/packages/**/*.test.ts"], fileParallelism: false } }),
);
