import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const PROGRAM = fileURLToPath(new URL("start-without-descriptors.ts", import.meta.url));

it("a worker for which no file descriptor is left has ended, in place of its parent", () => {
  const argv = ["-c", 'ulimit -n 128; exec "$0" "$1"', process.execPath, PROGRAM];
  const { stdout, stderr, status } = spawnSync("sh", argv, { encoding: "utf8" });
  expect({ stdout, status }, stderr).toEqual({ stdout: JSON.stringify({ code: null, signal: null }), status: 0 });
});
