import { describe, expect, it } from "vitest";
import { BoundedMap } from "../../src/core/bounded-map.ts";

describe("a bounded map", () => {
  it("removes the entry that was set longest ago when there is one too many", () => {
    const map = new BoundedMap<string, number>(2);
    map.set("a", 1);
    map.set("b", 2);
    map.set("a", 3);
    map.set("c", 4);
    expect([map.get("a"), map.get("b"), map.get("c")]).toEqual([3, undefined, 4]);
    expect(map.has("b")).toBe(false);
  });

  it("removes nothing when an entry is set anew, or was deleted before", () => {
    const map = new BoundedMap<string, number>(2);
    map.set("a", 1);
    map.set("b", 2);
    map.set("b", 3);
    expect([...map.values()]).toEqual([1, 3]);
    map.delete("a");
    map.set("c", 4);
    expect([...map.values()]).toEqual([3, 4]);
  });
});
