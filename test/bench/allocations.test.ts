import { describe, expect, it } from "vitest";
import { type AllocationNode, summariseAllocations } from "../../bench/profile/allocations.ts";

function node(place: string, selfSize: number, children: readonly AllocationNode[] = []): AllocationNode {
  const [functionName = "", url = ""] = place.split(" ");
  return { callFrame: { functionName, url, lineNumber: 9 }, selfSize, children };
}

describe("the summary of an allocation profile", () => {
  it("charges what libraries allocate to the function of ours that called them", () => {
    const parse = node("parse file:///project/node_modules/zod/v4/core.js", 300);
    const handle = node("handle file:///project/src/inbound/http/chat.ts", 100, [parse]);
    const head = node("(root)", 0, [handle, node("run node:internal/timers", 600)]);
    const { bytes, layers, functions, ours } = summariseAllocations({ head }, "/project");
    expect(bytes).toBe(1000);
    expect(ours).toEqual([{ name: "handle src/inbound/http/chat.ts:10", self: 0.1, charged: 0.4 }]);
    expect(layers).toEqual([
      { name: "node:internal", self: 0.6, charged: 0.6 },
      { name: "zod", self: 0.3, charged: 0 },
      { name: "src/inbound/http", self: 0.1, charged: 0.4 },
    ]);
    expect(functions.map(({ name }) => name)[0]).toBe("run node:internal/timers:10");
  });
});
