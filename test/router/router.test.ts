import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { modelOf } from "../support/scripted-provider.ts";
import { createWorld, fails, serves, stream } from "./routed.ts";

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
