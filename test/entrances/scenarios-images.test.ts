import { afterAll, beforeAll, expect, it } from "vitest";
import { IMAGES } from "./scenarios/callers/images.ts";
import { playScenario } from "./scenarios/play.ts";
import { scenariosOf } from "./scenarios/suite.ts";
import { startWorld, type World } from "./scenarios/world.ts";

/* The rows of the table that ask for pictures, and those of the format alone. */

const WAY = { entrance: "http", caller: IMAGES } as const;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const RUNS = scenariosOf(WAY).flatMap((scenario) =>
  (scenario.mode === undefined ? (["whole", "stream"] as const) : [scenario.mode]).map((mode) => ({
    scenario,
    mode,
    title: `${scenario.name} (${mode})`,
  })),
);

it.each(RUNS)("$title", async ({ scenario, mode, title }) => {
  expect.hasAssertions();
  const requestId = `images-${RUNS.findIndex((run) => run.title === title)}`;
  await playScenario({ world, scenario, mode, requestId, way: WAY });
});

it("plays rows of the common table", () => {
  expect(RUNS.map(({ title }) => title)).toEqual(
    expect.arrayContaining([
      "returns the image after a retry (stream)",
      "names the capability that the key lacks (whole)",
    ]),
  );
});
