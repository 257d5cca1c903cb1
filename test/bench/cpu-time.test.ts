import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { canReadCpuTime, cpuTimeUs, parseParent, parseSchedstat, processTree } from "../../bench/measure/cpu-time.ts";

describe("the CPU time of a process", () => {
  it("reads the nanoseconds of a thread", () => {
    expect(parseSchedstat("1234567890 4321 77\n")).toBe(1_234_567_890);
  });

  it.each(["", "0", "a b c\n", "1 2\n"])("refuses %j instead of counting nothing", (text) => {
    expect(() => parseSchedstat(text)).toThrow("not a schedstat");
  });

  it("finds the parent behind a name with spaces and parentheses", () => {
    expect(parseParent("42 (my (odd) name) S 17 42 42 0 -1")).toBe(17);
  });

  it.runIf(canReadCpuTime)("counts what a process computes, and grows with it", () => {
    const before = cpuTimeUs([process.pid]);
    const endMs = performance.now() + 20;
    while (performance.now() < endMs);
    expect(cpuTimeUs([process.pid])).toBeGreaterThan(before + 1000);
  });

  it.runIf(canReadCpuTime)("sees the children of a process, and nothing of one that is gone", async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
    expect(processTree(process.pid)).toContain(child.pid);
    child.stdin.end();
    await once(child, "exit");
    expect(cpuTimeUs([child.pid!])).toBe(0);
  });
});
