import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Tests of the dashboard in a real browser: npm run test:browser, which builds it first. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ["test/browser/**/*.test.ts"],
      // Each has a browser, which its files share, and the product, which mostly wait for each other.
      maxWorkers: 2,
    },
  }),
);
