import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { RoutePlanSchema } from "../../gen/parley/v1/route_pb.js";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { createRoute } from "../../src/core/route.ts";
import { Breaker } from "../../src/router/breaker.ts";
import { type ExplainedRoute, Routes } from "../../src/router/routes.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { compareWorlds } from "./explained-agreement.ts";
import { Dice, ExplainedWorld } from "./explained-world.ts";
import { asking } from "./route-simulation.ts";

describe("an explanation", () => {
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
      const call = loads.get(model)!.begin("stream");
      clock.advance(ms);
      call.end("answered");
    }
    const breaker = new Breaker({ failures: 5, openMs: 1_000, maxOpenMs: 1_000 }, clock);
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
