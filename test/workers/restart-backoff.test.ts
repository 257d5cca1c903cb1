import { expect, it } from "vitest";
import { GrowingPause } from "../../src/workers/fleet.ts";

it("lets a successor wait longer each time one dies young, and not at all after a long life", () => {
  const pause = new GrowingPause();
  const young = Array.from({ length: 10 }, () => pause.next(1_000));
  expect(young).toEqual([0, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
  expect(pause.next(60_000)).toBe(0);
  expect(pause.next(1_000)).toBe(200);
});
