import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { RoutePlanSchema } from "../../gen/parley/v1/route_pb.js";
import { permit } from "../../src/access/principal.ts";
import type { CallerShare } from "../../src/core/call.ts";
import { createCompletions, explainFor } from "../../src/core/completions.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { createRoute } from "../../src/core/route.ts";
import { Breaker } from "../../src/router/breaker.ts";
import { type ExplainedRoute, Routes } from "../../src/router/routes.ts";
import { createRouter } from "../../src/router/router.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { callOf, memoryLedger, notingLimiter, seal } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, type Script, ScriptedProvider } from "../support/scripted-provider.ts";
import { compareWorlds } from "./explained-agreement.ts";
import { Dice, ExplainedWorld } from "./explained-world.ts";
import { asking } from "./route-simulation.ts";
import { createWorld, fails, hangs, newCall, NO_RULES, stream } from "./routed.ts";

/** Counts its translations. */
class CountingProvider extends ScriptedProvider {
  translations = 0;

  override translate(...asked: Parameters<ScriptedProvider["translate"]>): ReturnType<ScriptedProvider["translate"]> {
    this.translations += 1;
    return super.translate(...asked);
  }
}

/** Explanations of requests for a name with 16 targets of eight kinds, and a fallback with as many. */
function manyKinds(refusal?: Failure) {
  const clock = new FakeClock();
  const provider = new CountingProvider(clock, { "m0-upstream": [hangs()] });
  const models = Array.from({ length: 32 }, (_, index) =>
    modelOf(`m${index}`, provider, { upstream: { contextWindow: 100_000 + (index % 8) } }),
  );
  const facts = { description: "", created: 0, policy: "ordered", affinity: false } as const;
  const routes = [models.slice(0, 16), models.slice(16)].map((targets, index) =>
    createRoute({
      id: `pool${index}`,
      ...facts,
      targets: targets.map((model) => ({ model, weight: 2, when: undefined })),
    }),
  );
  const breaker = { failures: 2, openMs: 3_000, maxOpenMs: 10_000 };
  const backoff = { baseMs: 10, capMs: 20 };
  const ports = {
    router: createRouter({ models, routes, clock, random: () => 0, backoff, breaker }),
    permit,
    limiter: notingLimiter(refusal).limiter,
    seal,
  };
  const { ledger } = memoryLedger();
  const completions = createCompletions({ ...ports, ledger, recorder: { record: () => undefined }, clock });
  const perTurn: number[] = [];
  const inTurn = <T>(run: () => T): T => {
    const before = provider.translations;
    try {
      return run();
    } finally {
      perTurn.push(provider.translations - before);
    }
  };
  const share: CallerShare = {
    holdAnswer: () => undefined,
    answered: () => undefined,
    openAnswer: () => undefined,
    keepAnswers: () => undefined,
    work: inTurn,
    workInTurn: async (run) => inTurn(run),
  };
  const call = callOf({ signal: new AbortController().signal, arrivedMs: 0, share });
  const request = { ...asking("hi"), model: "pool0", fallbackModels: ["pool1"] };
  return { ports, completions, provider, perTurn, call, request };
}

describe("the work of an explanation", () => {
  it("is at most four translations, each in a turn of the event loop of its own", async () => {
    const { completions, perTurn, call, request } = manyKinds();
    const { steps } = await completions.explain(request, call, "stream");
    expect(steps).toHaveLength(16);
    // The first one is the plan's, and is not made again.
    expect(perTurn).toEqual([1, 0, 1, 1, 1]);
    expect(steps.every(({ refusal }) => refusal === "")).toBe(true);
  });

  it("is not done for a key whose request rate is exhausted", async () => {
    const { completions, provider, call, request } = manyKinds(new Failure("rate_limited", "Too many."));
    await expect(completions.explain(request, call, "stream")).rejects.toThrow("Too many.");
    expect(provider.translations).toBe(0);
  });
});

it("shows an account the number of its own calls in flight, and operators that of all accounts", async () => {
  const { completions, ports, call, request } = manyKinds();
  for (const accountId of ["acct_1", "acct_2", "acct_2"]) {
    const plan = ports.router.plan({ ...request }, [ports.router.find("pool0")!], { mode: "stream", rules: NO_RULES });
    void plan.stream({ ...newCall(), accountId }, () => undefined);
  }
  const own = await completions.explain({ ...request }, call, "stream");
  const operators = await explainFor(ports, { ...request }, { call, mode: "stream" });
  expect(own.steps[0]!.figures).toMatchObject({ weight: 2, inFlight: 1 });
  expect(operators.steps[0]!.figures).toMatchObject({ weight: 2, inFlight: 3 });
});

describe("an explanation", () => {
  it("shows an account how long the breaker is open for it, not for another one", async () => {
    const refused = (seconds: number): Script =>
      fails(new Failure("upstream_rate_limited", "Slower.", { retryAfterMs: seconds * 1_000 }));
    const world = createWorld({ scripts: { a: [refused(50), refused(20)] } });
    const asked = { mode: "stream", rules: NO_RULES } as const;
    for (const accountId of ["acct_1", "acct_2"]) await stream(world, { ...newCall(), accountId });
    const explained = (accountId: string) =>
      world.router.explain(asking("hi"), world.models, {
        ...asked,
        caller: { accountId, keyFamilyId: "key_1", tags: new Set() },
      });
    expect(["acct_1", "acct_2", "acct_3"].map((accountId) => explained(accountId).steps[0]!.message)).toEqual([
      expect.stringMatching(/open for 50 s more$/),
      expect.stringMatching(/open for 20 s more$/),
      expect.stringMatching(/open for 1 s more$/),
    ]);
  });

  it("agrees with what then happens, in 1,500 random requests", async () => {
    const { wrong, planned, refused, fellBack } = await compareWorlds(Array.from({ length: 15 }, (_, index) => index));
    expect(wrong).toEqual([]);
    expect(Math.min(planned, refused, fellBack)).toBeGreaterThan(100);
  });

  it("changes nothing: requests go where they would have gone without it", async () => {
    const [plain, explained] = [new ExplainedWorld(7), new ExplainedWorld(7)];
    const dice = [new Dice(8), new Dice(8)] as const;
    for (let index = 0; index < 200; index++) {
      const asked = explained.draw(dice[0]);
      const plans = [await explained.explain(asked), await explained.explain(asked), await explained.explain(asked)];
      const shown = plans.map((plan) => (plan instanceof Failure ? plan.message : toJson(RoutePlanSchema, plan)));
      expect(shown[1]).toEqual(shown[0]);
      expect(shown[2]).toEqual(shown[0]);
      const records = [await explained.run(asked), await plain.run(plain.draw(dice[1]))];
      expect(records[0]!.attempts).toEqual(records[1]!.attempts);
    }
  });

  it("counts as no choice by latency: a slow target is not tried again because of it", () => {
    const clock = new FakeClock();
    const provider = new ScriptedProvider(clock, {});
    const [fast, slow] = [modelOf("fast", provider), modelOf("slow", provider)];
    const loads = new Map([fast, slow].map((model) => [model, new UpstreamLoad(clock)]));
    for (const [model, ms] of [
      [fast, 100],
      [slow, 400],
    ] as const) {
      const call = loads.get(model)!.begin("stream", "a");
      clock.advance(ms);
      call.end("answered");
    }
    const breaker = new Breaker(() => ({ failures: 5, openMs: 1_000, maxOpenMs: 1_000 }), clock);
    const routes = new Routes({
      clock,
      random: () => 0,
      breakerOf: () => breaker,
      loadOf: (model) => loads.get(model)!,
    });
    const targets = [slow, fast].map((model) => ({ model, weight: 1, when: undefined }));
    const parts = { id: "pool", description: "", created: 0, policy: "least_latency", affinity: false } as const;
    const route = createRoute({ ...parts, targets });
    const rank = (explained?: ExplainedRoute[]): Model =>
      routes.rank(asking("hi"), [route], { mode: "stream", explained }).models[0]!;
    // By its own choices the slow one is tried after some 800.
    expect(Array.from({ length: 2_000 }, () => rank([]))).not.toContain(slow);
    expect(Array.from({ length: 2_000 }, () => rank())).toContain(slow);
  });
});
