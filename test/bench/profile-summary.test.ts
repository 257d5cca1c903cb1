import { describe, expect, it } from "vitest";
import { type CpuProfile, summariseProfile } from "../../bench/profile/summary.ts";

const ROOT = "/project";

function node(id: number, place: string, children: readonly number[] = []): CpuProfile["nodes"][number] {
  const [functionName = "", url = ""] = place.split(" ");
  return { id, callFrame: { functionName, url, lineNumber: 9 }, children };
}

/** `handle` calls `parse` of a package, which calls native code; a timer of Node's runs by itself. */
const PROFILE: CpuProfile = {
  nodes: [
    node(1, "(root)", [2, 6, 7]),
    node(2, "handle file:///project/src/inbound/http/chat.ts", [3]),
    node(3, "parse file:///project/node_modules/zod/v4/core.js", [4]),
    node(4, "exec"),
    node(6, "(idle)"),
    node(7, "run node:internal/timers"),
  ],
  startTime: 1000,
  // Each sample stands for the 100 µs that follow it.
  samples: [2, 3, 4, 6, 7, 2, 2],
  timeDeltas: [0, 100, 100, 100, 100, 100, 100],
};

describe("the summary of a CPU profile", () => {
  const whole = summariseProfile(PROFILE, ROOT, { fromUs: 0, toUs: 10_000 });

  it("charges what libraries and native code do to the function of ours that called them", () => {
    expect(whole.ours).toEqual([{ name: "handle src/inbound/http/chat.ts:10", self: 2 / 5, charged: 4 / 5 }]);
  });

  it("gives each layer its own time and what is charged to it", () => {
    expect(Object.fromEntries(whole.layers.map(({ name, ...cost }) => [name, cost]))).toEqual({
      "src/inbound/http": { self: 2 / 5, charged: 4 / 5 },
      zod: { self: 1 / 5, charged: 0 },
      "(native)": { self: 1 / 5, charged: 0 },
      "node:internal": { self: 1 / 5, charged: 1 / 5 },
    });
  });

  it("leaves out idle time", () => {
    expect(whole.busyMs).toBeCloseTo(0.5);
  });

  it("looks only at the time between the two moments", () => {
    const { busyMs, functions } = summariseProfile(PROFILE, ROOT, { fromUs: 1100, toUs: 1300 });
    expect(busyMs).toBeCloseTo(0.2);
    expect(functions.map(({ name }) => name)).toEqual(["parse zod/v4/core.js:10", "exec"]);
  });
});
