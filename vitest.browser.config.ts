import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Tests of the dashboard in a real browser: npm run test:browser, which builds it first. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ["test/browser/**/*.test.ts"],
      // A worker starts one browser, which its files share, and each file the product. With one worker more than cores, others
      // compute while one waits for times of the product: a simulated answer, a refresh, a notice that goes.
    },
  }),
);
