import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Mode } from "../../src/core/router.ts";
import { type Act, refuses, type ScriptedCall, staysSilent } from "../support/scripted-upstream.ts";
import { toOpenAiJson, toRequest } from "./scenarios/ask.ts";
import { BREAKING } from "./scenarios/breaking.ts";
import { FAILING } from "./scenarios/failing.ts";
import { LOOKS } from "./scenarios/failures.ts";
import { FALLING_BACK } from "./scenarios/falling-back.ts";
import { callHttp } from "./scenarios/http-client.ts";
import { LEAVING } from "./scenarios/leaving.ts";
import { playScenario } from "./scenarios/play.ts";
import { REFUSING } from "./scenarios/refusing.ts";
import type { Reply } from "./scenarios/reply.ts";
import { RESTING } from "./scenarios/resting.ts";
import { PATIENCE } from "./scenarios/run.ts";
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

/** The sum of a counter over all of its labels. */
function sumOf(metrics: string, counter: string): number {
  const samples = metrics.split("\n").filter((line) => line.startsWith(`${counter}{`));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

describe("both entrances and a front of its own, whole and streamed", () => {
  let runs = 0;
  for (const scenario of TABLE) {
    for (const entrance of entrancesOf(scenario)) {
      for (const mode of modesOf(scenario)) {
        for (const way of waysTo(entrance)) {
          runs += 1;
          const requestId = `scenario-${runs}`;
          it(`${scenario.name} (${way.through ?? entrance}, ${mode})`, async () => {
            expect.hasAssertions();
            await playScenario({ world, scenario, entrance, mode, requestId, ...way });
          });
        }
      }
    }
  }
});

describe("the table", () => {
  it("has a row for every failure that callers can bring about", () => {
    // Nothing is limited here; `internal` takes a mistake in the gateway.
    const unreachable = new Set(["rate_limited", "budget_spent", "internal"]);
    const promised = ["cancelled", ...Object.keys(LOOKS)].filter((code) => !unreachable.has(code));
    const played = TABLE.flatMap(({ expected }) => ("failure" in expected ? expected.failure : []));
    expect(new Set(played)).toEqual(new Set(promised));
  });
});

describe("many callers at once", () => {
  it("share three retries while a provider refuses all of them", async () => {
    const held: ScriptedCall[] = [];
    const refusesTogether: Act = (call) => {
      held.push(call);
      if (held.length === 6) for (const each of held) refuses(429)(each);
    };
    const upstream = { alpha: [...Array.from({ length: 6 }, () => refusesTogether), staysSilent] };
    const names = await world.prepare({ name: "six callers", upstream, expected: { answer: {} } });
    const replies: Reply[] = [];
    const calls = Array.from({ length: 6 }, () => {
      const call = callHttp({
        port: world.gateway.httpPort,
        mode: "whole",
        body: JSON.stringify(toOpenAiJson(toRequest(), "whole")),
        headers: { authorization: world.authorization.any! },
      });
      call.reply.then(
        (reply) => replies.push(reply),
        () => {},
      );
      return call;
    });
    await expect.poll(() => replies.length, PATIENCE).toBe(3);
    await expect.poll(() => world.upstream.calls(names.alpha).length, PATIENCE).toBe(9);
    for (const { failure } of replies) expect(failure?.attempts).toEqual(["alpha upstream_rate_limited 429"]);
    for (const call of calls) call.leave();
    await expect.poll(async () => (await world.gateway.readiness()).active_calls, PATIENCE).toBe(0);
  });
});

describe("after all of them", () => {
  it("has counted each completion and each refusal once", async () => {
    const { log } = world.gateway;
    const metrics = await world.gateway.metrics();
    const logged = (msg: string): number => log.filter((line) => line.msg === msg).length;
    expect(logged("completion")).toBeGreaterThan(TABLE.length);
    expect(sumOf(metrics, "parley_completions_total")).toBe(logged("completion"));
    expect(sumOf(metrics, "parley_refusals_total")).toBe(logged("refused"));
  });

  it("has logged nothing else, and no secret", () => {
    const { log, key } = world.gateway;
    expect(new Set(log.map((line) => line.msg))).toEqual(new Set(["completion", "refused"]));
    const text = JSON.stringify(log);
    for (const secret of [key, "secret-of-the-gateway", "Hello?", "Hello."]) expect(text).not.toContain(secret);
  });

  it("closes the last connection to its upstreams with itself", async () => {
    await world.gateway.close();
    await expect.poll(() => world.upstream.openSockets, PATIENCE).toBe(0);
  });
});

function entrancesOf({ at }: Scenario): readonly EntranceName[] {
  return at === undefined ? ["http", "grpc"] : [at];
}

/** HTTP is called twice: at the core's own process, and at a front before it. */
function waysTo(entrance: EntranceName): readonly { readonly through?: "front" }[] {
  return entrance === "http" ? [{}, { through: "front" }] : [{}];
}

function modesOf({ mode }: Scenario): readonly Mode[] {
  return mode === undefined ? ["whole", "stream"] : [mode];
}
