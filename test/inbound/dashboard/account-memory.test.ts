import { describe, expect, it } from "vitest";
import { AccountMemory } from "../../../src/inbound/dashboard/request-feed.ts";

describe("what is remembered of accounts", () => {
  it("is the latest 200 values of each", () => {
    const memory = new AccountMemory<number>();
    for (let index = 0; index < 201; index += 1) memory.add("one", `one ${index}`, index);
    memory.add("another", "another 0", 1_000);
    expect(memory.get("one 0")).toBeUndefined();
    expect(memory.get("one 1")).toBe(1);
    expect([...memory.values()].slice(-2)).toEqual([200, 1_000]);
  });

  it("is bounded for all together by what the account with most of them has", () => {
    const memory = new AccountMemory<number>();
    memory.add("first", "first", 1);
    for (let account = 0; account < 100; account += 1)
      for (let index = 0; index < 60; index += 1) memory.add(`${account}`, `${account} ${index}`, index);
    expect([...memory.values()]).toHaveLength(5_000);
    expect(memory.get("first")).toBe(1);
    // The last account has found room beside the others, which are left with as much.
    expect([memory.get("98 20"), memory.get("99 20")]).toEqual([20, 20]);
  });
});
