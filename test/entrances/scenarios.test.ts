import { afterAll, beforeAll, describe, it } from "vitest";
import type { Mode } from "../../src/core/router.ts";
import { BREAKING } from "./scenarios/breaking.ts";
import { FAILING } from "./scenarios/failing.ts";
import { FALLING_BACK } from "./scenarios/falling-back.ts";
import { LEAVING } from "./scenarios/leaving.ts";
import { REFUSING } from "./scenarios/refusing.ts";
import { RESTING } from "./scenarios/resting.ts";
import { playScenario } from "./scenarios/run.ts";
import type { EntranceName, Scenario } from "./scenarios/scenario.ts";
import { SERVING } from "./scenarios/serving.ts";
import { VALIDATING } from "./scenarios/validating.ts";
import { startWorld, type World } from "./scenarios/world.ts";

const TABLE: readonly Scenario[] = [
  ...SERVING,
  ...REFUSING,
  ...VALIDATING,
  ...FAILING,
  ...BREAKING,
  ...FALLING_BACK,
  ...RESTING,
  ...LEAVING,
];

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(async () => {
  await world.close();
});

describe("both entrances, whole and streamed", () => {
  let runs = 0;
  for (const scenario of TABLE) {
    for (const entrance of entrancesOf(scenario)) {
      for (const mode of modesOf(scenario)) {
        runs += 1;
        const requestId = `scenario-${runs}`;
        it(`${scenario.name} (${entrance}, ${mode})`, () =>
          playScenario({ world, scenario, entrance, mode, requestId }));
      }
    }
  }
});

function entrancesOf({ at }: Scenario): readonly EntranceName[] {
  return at === undefined ? ["http", "grpc"] : [at];
}

function modesOf({ mode }: Scenario): readonly Mode[] {
  return mode === undefined ? ["whole", "stream"] : [mode];
}
