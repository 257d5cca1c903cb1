import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { canReadCpuTime, cpuTime, parseParent, parseSchedstat, processTree } from "../../bench/measure/cpu-time.ts";

describe("the CPU time of a process", () => {
  it("reads how long a thread ran, and how long it waited to", () => {
    expect(parseSchedstat("1234567000 4500 77\n")).toEqual({ usedUs: 1_234_567, waitedUs: 4.5 });
  });

  it.each(["", "0", "a b c\n", "1 2\n"])("refuses %j instead of counting nothing", (text) => {
    expect(() => parseSchedstat(text)).toThrow("not a schedstat");
  });

  it("finds the parent behind a name with spaces and parentheses", () => {
    expect(parseParent("42 (my (odd) name) S 17 42 42 0 -1")).toBe(17);
  });

  it.runIf(canReadCpuTime)("counts what a process computes, and grows with it", () => {
    const before = cpuTime([process.pid]).usedUs;
    // Long enough for the scheduler to have looked.
    for (const endMs = performance.now() + 20; performance.now() < endMs;);
    expect(cpuTime([process.pid]).usedUs).toBeGreaterThan(before);
  });

  it.runIf(canReadCpuTime)("includes the children of a process, and is empty for one that has ended", async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
    expect(processTree(process.pid)).toContain(child.pid);
    child.stdin.end();
    await once(child, "exit");
    expect(cpuTime([child.pid!])).toEqual({ usedUs: 0, waitedUs: 0 });
  });
});
