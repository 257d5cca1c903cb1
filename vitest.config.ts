import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // These run the program as processes, npm run test:product, or need servers, npm run test:replicas, a browser, npm run
    // test:browser, tools of operators, npm run test:packages, or time, npm run faults.
    exclude: [
      "test/product/**",
      "test/replicas/**",
      "test/browser/**",
      "test/faults/**",
      "test/packages/**",
      "node_modules/**",
    ],
    globals: false,
    // Processes, not threads: tests listen on sockets, send signals and start workers of their own.
    pool: "forks",
    // A process runs one file after another: to load the sources anew for each takes half of the time of all tests. So a file leaves
    // nothing behind: it closes what it opens, and mocks no module that others may have loaded (vi.mock).
    isolate: false,
    // One worker per core, and one that waits: a quarter of the tests' time is waiting. More only take time from each other.
    maxWorkers: availableParallelism() + 1,
    // For what hangs, not for what is slow: a busy machine starts a server in seconds instead of half of one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000, interval: 20 } },
    slowTestThreshold: 1_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
