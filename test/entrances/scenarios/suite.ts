import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Mode } from "../../../src/core/router.ts";
import { BREAKING } from "./breaking.ts";
import { CHAT } from "./callers/chat.ts";
import { EMBEDDING, isOfEmbeddings } from "./embedding.ts";
import { FAILING } from "./failing.ts";
import { FALLING_BACK } from "./falling-back.ts";
import { LEAVING } from "./leaving.ts";
import { PICTURES } from "./pictures.ts";
import { playScenario } from "./play.ts";
import { REFUSING } from "./refusing.ts";
import { OPEN_BREAKER } from "./open-breaker.ts";
import { nameOf, PATIENCE, serviceOf, type Way } from "./run.ts";
import { LIMITING } from "./limiting.ts";
import type { Expected, Scenario } from "./scenario.ts";
import { SERVING } from "./serving.ts";
import { isSkipped, SLOW } from "./skipped.ts";
import { VALIDATING } from "./validating.ts";
import { startWorld, type World } from "./world.ts";

/** Requests for completions. */
export const TABLE: readonly Scenario[] = [
  ...SERVING,
  ...PICTURES,
  ...REFUSING,
  ...VALIDATING,
  ...FAILING,
  ...BREAKING,
  ...FALLING_BACK,
  ...OPEN_BREAKER,
  ...LEAVING,
  ...LIMITING,
];

/** Rows of the table that are about what callers of a way ask for, at its entrance. */
export function tableOf(way: Way): readonly Scenario[] {
  const rows = serviceOf(way) === "embeddings" ? [...TABLE.filter(isOfEmbeddings), ...EMBEDDING] : TABLE;
  return rows.filter(({ at = way.entrance }) => at === way.entrance);
}

/** Scenarios of a way: those of the table, but for what its format cannot say, and those of the format alone. */
export function scenariosOf(way: Way): readonly Scenario[] {
  const common = tableOf(way);
  if (way.entrance === "grpc")
    return way.service === "completions" ? common : common.filter(({ name }) => !SLOW.scenarios.includes(name));
  const { caller, through } = way;
  const isSlow = ({ name }: Scenario): boolean => through === "front" && SLOW.scenarios.includes(name);
  const isPlayed = (each: Scenario): boolean => !isSkipped(each, caller.format) && !isSlow(each);
  const { plays = isPlayed } = caller;
  return [...common.filter(plays), ...caller.own];
}

/**
 * Defines the tests of all scenarios for this way, whole and streamed (`modesOf`), on a shared gateway, then those of `more`, and then
 * checks of connections, logs and metrics after all of them.
 */
export function playAll(way: Way, more: (world: () => World) => void = () => undefined): void {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(serviceOf(way));
  });
  afterAll(async () => {
    await world.close();
  });

  const runs = scenariosOf(way).flatMap((scenario, at) =>
    modesOf(scenario, way, at).map((mode) => ({ scenario, mode })),
  );
  const countRuns = (of: (expected: Expected) => boolean): number =>
    runs.filter(({ scenario: { expected } }) => of(expected)).length;

  describe(`every scenario (${nameOf(way)})`, () => {
    for (const [at, { scenario, mode }] of runs.entries())
      it(`${scenario.name} (${mode})`, async () => {
        expect.hasAssertions();
        await playScenario({ world, scenario, mode, requestId: `scenario-${at + 1}`, way });
      });
  });

  more(() => world);

  describe("after all of them", () => {
    // gRPC has one connection for all calls.
    it.runIf(way.entrance === "http")("has closed the connections of broken streams and of large bodies", async () => {
      const open = (): string[] =>
        world.closing.flatMap(({ requestId, call }) => (call.closedByGateway() ? [] : requestId));
      expect(world.closing).toHaveLength(countRuns(({ closesConnection }) => closesConnection === true));
      await expect.poll(open, PATIENCE).toEqual([]);
    });

    it("has counted each completion and each refusal once", async () => {
      const { log } = world.gateway;
      const metrics = await world.gateway.metrics();
      const logged = (msg: string): number => log.filter((line) => line.msg === msg).length;
      const isCompletion = (expected: Expected): boolean =>
        "answer" in expected || (expected.refused !== true && expected.byLibrary !== true);
      expect(logged("completion")).toBeGreaterThanOrEqual(countRuns(isCompletion));
      expect(sumOf(metrics, "parley_completions_total")).toBe(logged("completion"));
      expect(sumOf(metrics, "parley_refusals_total")).toBe(logged("refused"));
    });

    it("has logged nothing else, and no secret", () => {
      const { log, key } = world.gateway;
      const logged = new Set(log.map(({ msg }) => msg));
      // Of a job that runs each minute, where the scenarios take longer.
      logged.delete("job done");
      expect(logged).toEqual(new Set(["completion", "refused"]));
      const text = JSON.stringify(log);
      for (const secret of [key, "secret-of-the-gateway", "Hello?", "Hello."]) expect(text).not.toContain(secret);
    });

    it("closes the last upstream connection when it closes", async () => {
      await world.gateway.close();
      await expect.poll(() => world.upstream.openSockets, PATIENCE).toBe(0);
    });
  });
}

/** Sum of a counter over all labels. */
function sumOf(metrics: string, counter: string): number {
  const samples = metrics.split("\n").filter((line) => line.startsWith(`${counter}{`));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

/** Modes in which a scenario is played, the one with this position among those of the way. */
function modesOf({ mode }: Scenario, way: Way, at: number): readonly Mode[] {
  if (mode !== undefined) return [mode];
  if (serviceOf(way) === "embeddings") return ["whole"];
  // Chat completions are played in both through a front, and the other formats in both without one.
  const isOther = way.entrance === "http" && way.through === "front" && way.caller !== CHAT;
  return isOther ? [at % 2 === 0 ? "whole" : "stream"] : ["whole", "stream"];
}
