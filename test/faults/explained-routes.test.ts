import { expect, it } from "vitest";
import { compareWorlds, REASONS } from "../router/explained-agreement.ts";

it("explanations of routes agree with what then happens, in 10,000 random requests", async () => {
  const worlds = Array.from({ length: 100 }, (_, index) => 100 + index);
  const { wrong, planned, refused, fellBack, reasons } = await compareWorlds(worlds);
  expect(wrong).toEqual([]);
  // The requests are of all kinds.
  expect(Math.min(planned, refused, fellBack)).toBeGreaterThan(500);
  expect(REASONS.filter((reason) => (reasons.get(reason) ?? 0) < 50)).toEqual([]);
});
