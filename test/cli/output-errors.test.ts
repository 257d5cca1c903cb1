import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const main = join(import.meta.dirname, "../../src/main.ts");

/** Runs `parley help` with this output; answers with its exit code and what it writes to standard error. */
async function help(stdout: number | "pipe") {
  const child = spawn(process.execPath, [main, "help"], { stdio: ["ignore", stdout, "pipe"] });
  child.stdout?.destroy();
  let stderr = "";
  child.stderr?.on("data", (piece) => (stderr += piece));
  const code = await new Promise((resolve) => child.on("close", resolve));
  return { code, stderr };
}

describe("a command whose output cannot be written", () => {
  it("ends silently when the reader has ended", async () => {
    expect(await help("pipe")).toEqual({ code: 1, stderr: "" });
  });

  it.runIf(process.platform === "linux")("says why otherwise", async () => {
    const { code, stderr } = await help(openSync("/dev/full", "w"));
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^parley: the output cannot be written: ENOSPC.*\n$/),
    });
  });
});
