import { describe, expect, it } from "vitest";
import { canReadCpuTime } from "../../bench/measure/cpu-time.ts";
import { kindOf, threadTimes } from "../../bench/measure/threads.ts";

describe("the CPU time by thread", () => {
  it.each([
    ["node-MainThread", true, "main"],
    ["nginx", true, "main"],
    ["node-V8Worker", false, "V8"],
    ["DelayedTaskSche", false, "V8"],
    ["sqlite", false, "SQLite"],
    ["libuv-worker", false, "libuv"],
    ["SignalInspector", false, "other"],
  ])("classifies %s", (name, isFirst, kind) => {
    expect(kindOf(name, isFirst)).toBe(kind);
  });

  it.runIf(canReadCpuTime)("distinguishes the main thread of a process of Node from V8's", () => {
    const { main, V8 } = threadTimes([process.pid]);
    expect(main.usedUs).toBeGreaterThan(0);
    expect(V8.usedUs).toBeGreaterThan(0);
  });
});
