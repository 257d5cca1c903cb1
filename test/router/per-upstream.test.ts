import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { type Model, upstreamKey } from "../../src/core/model.ts";
import { createRoute } from "../../src/core/route.ts";
import { Breaker } from "../../src/router/breaker.ts";
import { PerUpstream } from "../../src/router/per-upstream.ts";
import { Routes } from "../../src/router/routes.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { asking } from "./route-simulation.ts";

/** As many as a process remembers. */
const MOST = 10_000;

const clock = new FakeClock();
const provider = new ScriptedProvider(clock, {});
const ownModel = (credential: string): Model => ({ ...modelOf("a", provider), ownCredential: credential });

describe("what is known of upstream models with accounts' own credentials", () => {
  it("is forgotten where it was not used for the longest time", () => {
    const known = new PerUpstream<{ readonly of: string }>();
    const get = (credential: string) => known.getOrAdd(ownModel(credential), credential, () => ({ of: credential }));
    const [first, second] = [get("first"), get("second")];
    for (let count = 2; count < MOST; count++) get(`${count}`);
    expect(get("first")).toBe(first);
    get("one more");
    expect(get("first")).toBe(first);
    expect(get("second")).not.toBe(second);
  });

  it("is what attempts know, also for a route that was ranked before it was forgotten", () => {
    const breakers = new PerUpstream<Breaker>();
    const options = { failures: 1, openMs: 10_000, maxOpenMs: 10_000 };
    const breakerOf = (model: Model): Breaker =>
      breakers.getOrAdd(model, upstreamKey(model), () => new Breaker(() => options, clock));
    const loads = new PerUpstream<UpstreamLoad>();
    const loadOf = (model: Model): UpstreamLoad =>
      loads.getOrAdd(model, upstreamKey(model), () => new UpstreamLoad(clock));
    const routes = new Routes({ clock, random: () => 0, breakerOf, loadOf });
    const [own, other] = [ownModel("first"), modelOf("b", provider)];
    const targets = [own, other].map((model) => ({ model, weight: 1, when: undefined }));
    const parts = { id: "both", description: "", created: 0, policy: "ordered", affinity: false } as const;
    const route = createRoute({ ...parts, targets });
    const first = (): Model => routes.rank(asking("hi"), [route], { mode: "whole" }).models[0]!;
    expect(first()).toBe(own);
    for (let count = 0; count < MOST; count++) breakerOf(ownModel(`${count}`));
    const permit = breakerOf(own).admit("");
    if (permit instanceof Failure) throw permit;
    permit.failed(new Failure("upstream_unavailable", "It fails."));
    expect(first()).toBe(other);
  });
});
