import { Hash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { ToolCallIds } from "../../../src/providers/wire/tool-call-ids.ts";

const CALLS = 1_000;

describe("IDs of tool calls", () => {
  it("are unique when the calls all have the same one, at the cost of one hash for each", () => {
    const ids = new ToolCallIds();
    const digest = vi.spyOn(Hash.prototype, "digest");
    const opened = Array.from({ length: CALLS }, () => ids.open("call_0"));
    expect(new Set(opened).size).toBe(CALLS);
    expect(digest).toHaveBeenCalledTimes(CALLS - 1);
  });

  it("that are long are hashed twice at most, whatever calls the conversation has already", () => {
    const long = ".".repeat(10_000);
    const taken = new ToolCallIds();
    const ids = new ToolCallIds();
    for (let call = 0; call < CALLS; call++) ids.open(taken.open(long));
    const update = vi.spyOn(Hash.prototype, "update");
    try {
      ids.open(long);
      const hashed = update.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
      expect(update.mock.calls.length).toBeGreaterThan(CALLS);
      expect(hashed).toBeLessThan(2 * long.length + 100 * CALLS);
    } finally {
      update.mockRestore();
    }
  });

  it("pass over those that the conversation has already", () => {
    const second = new ToolCallIds();
    second.open("a");
    const taken = second.open("a");
    const ids = new ToolCallIds();
    ids.open(taken);
    const opened = [ids.open("a"), ids.open("a"), ids.open("a")];
    expect(opened[0]).toBe("a");
    expect(new Set([taken, ...opened]).size).toBe(4);
  });
});
