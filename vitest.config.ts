import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globals: false,
    // Processes, not threads: tests listen on sockets, send signals and start workers of their own.
    pool: "forks",
    // One worker per core: the tests start whole servers, and more of them only take time from each other.
    maxWorkers: "100%",
    testTimeout: 10_000,
    hookTimeout: 20_000,
    // A test that waits for the outside world would be slow long before it times out.
    slowTestThreshold: 1_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
