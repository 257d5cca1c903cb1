import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { modelOf } from "../support/scripted-provider.ts";
import { createWorld, fails, newCall, serves, stream } from "./routed.ts";

const refused = new Failure("upstream_refused_us", "Our key was refused.");

it("finds models by their ID and lists them in the order of the configuration", () => {
  const { router } = createWorld({ scripts: { z: [], a: [], "models/with/slash": [] } });
  expect(router.list().map((model) => model.id)).toEqual(["z", "a", "models/with/slash"]);
  expect(router.find("a")?.id).toBe("a");
  expect(router.find("A")).toBeUndefined();
  expect(router.find("__proto__")).toBeUndefined();
});

it("has one circuit breaker for all models with the same upstream model", async () => {
  const world = createWorld({ scripts: { a: [fails(refused)] }, breaker: { failures: 1 } });
  await stream(world);
  const alias = modelOf("alias", world.provider, { upstream: { name: "a-upstream" } });
  const { failure } = await stream({ ...world, models: [alias] });
  expect(failure?.attempts).toMatchObject([{ model: "alias", outcome: "skipped" }]);
});

it("resets health when the configuration changes, because the change may have fixed the cause", async () => {
  const world = createWorld({ scripts: { a: [fails(refused)], b: [fails(refused)] }, breaker: { failures: 1 } });
  await stream(world);
  expect(world.router.health()).toEqual(
    new Map([
      ["scripted/a-upstream", "open"],
      ["scripted/b-upstream", "open"],
    ]),
  );
  world.router.replace([modelOf("a", world.provider), modelOf("c", world.provider)]);
  expect(world.router.list().map((model) => model.id)).toEqual(["a", "c"]);
  expect(world.router.find("b")).toBeUndefined();
  expect(world.router.health()).toEqual(new Map());
});

it("keeps the health of upstream models that stay when only lists have changed", async () => {
  const world = createWorld({ scripts: { a: [fails(refused)], b: [fails(refused)] }, breaker: { failures: 1 } });
  await stream(world);
  world.router.replace([modelOf("a", world.provider), modelOf("c", world.provider)], { keepsHealth: () => true });
  expect(world.router.health()).toEqual(new Map([["scripted/a-upstream", "open"]]));
});

it("keeps the failures that it has counted when its settings change", async () => {
  const world = createWorld({ scripts: { a: [fails(refused), fails(refused)] } });
  await stream(world);
  expect(world.router.health()).toEqual(new Map([["scripted/a-upstream", "closed"]]));
  const breaker = { failures: 2, openMs: 1_000, maxOpenMs: 1_000 };
  world.router.replace(world.models, { breaker, keepsHealth: () => true });
  await stream(world);
  expect(world.router.health()).toEqual(new Map([["scripted/a-upstream", "open"]]));
});

it("waits before a retry as long as the settings of the start of a request say", async () => {
  const down = new Failure("upstream_unavailable", "It is down.", { transient: true });
  const world = createWorld({
    scripts: { a: [{ ending: down, pauseMs: 100 }, serves("hi"), fails(down), serves("hi")] },
  });
  const startOf = async (): Promise<number | undefined> => {
    const call = { ...newCall(), arrivedMs: world.clock.monotonic() };
    await stream(world, call);
    return call.attempts[1]?.startMs;
  };
  world.clock.after(50, () => world.router.replace(world.models, { backoff: { baseMs: 1_000, capMs: 2_000 } }));
  expect(await startOf()).toBe(100 + 50);
  expect(await startOf()).toBe(500);
});

it("serves a request in flight with the models from its start", async () => {
  const world = createWorld({ scripts: { a: [{ ending: refused, pauseMs: 1_000 }], b: [serves("hi")] } });
  world.clock.after(500, () => world.router.replace([]));
  const { batches } = await stream(world);
  expect(batches[0]![0]!.event.value).toMatchObject({ model: "b" });
});

describe("an alias", () => {
  const world = createWorld({ scripts: { "a-1": [], "b-1": [] } });
  world.router.replace(world.models, {
    aliases: [
      ["small", "a-1"],
      ["a-*", "b-1"],
      ["a-2", "a-1"],
      ["gone", "c"],
    ],
  });

  it.each([
    ["small", "a-1"],
    ["a-3", "b-1"],
    ["a-", "b-1"],
    ["a-2", "b-1"],
    ["a-1", "a-1"],
    ["smaller", undefined],
    ["A-3", undefined],
    ["gone", undefined],
  ])("%s is the model %s", (name, id) => {
    expect(world.router.find(name)?.id).toBe(id);
  });

  it("is not listed", () => {
    expect(world.router.list().map(({ id }) => id)).toEqual(["a-1", "b-1"]);
  });
});
