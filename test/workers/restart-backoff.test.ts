import { expect, it } from "vitest";
import { RestartBackoff } from "../../src/workers/fleet.ts";

it("doubles the pause after each early end of a worker, and resets it after a worker that lived for a minute", () => {
  const pause = new RestartBackoff();
  const young = Array.from({ length: 10 }, () => pause.next(1_000));
  expect(young).toEqual([0, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
  expect(pause.next(60_000)).toBe(0);
  expect(pause.next(1_000)).toBe(200);
});
