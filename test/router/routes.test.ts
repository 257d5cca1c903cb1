import { create } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { createRoute, type Route, type TargetCondition } from "../../src/core/route.ts";
import { conversationKey } from "../../src/router/conversation-key.ts";
import { byRendezvous, hashOf } from "../../src/router/rendezvous.ts";
import { unmetCondition, RequestFacts } from "../../src/router/request-facts.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { toPrice } from "../support/prices.ts";
import { type ModelFacts, modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { asking, Pool, seeded } from "./route-simulation.ts";
import { collect, createWorld, newCall, NO_RULES, outcomes, serves, stream, type World } from "./routed.ts";

describe("rendezvous", () => {
  const members = ["a", "b", "c", "d", "e"].map((name) => ({ name, weight: 1, seed: hashOf(name) }));
  const firsts = (of: typeof members): string[] =>
    Array.from({ length: 5_000 }, (_, key) => byRendezvous(of, hashOf(`key ${key}`))[0]!.name);

  it("moves only the keys of a member that is removed", () => {
    const before = firsts(members);
    const after = firsts(members.filter(({ name }) => name !== "c"));
    expect(after.filter((name, key) => name !== before[key] && before[key] !== "c")).toEqual([]);
    // The keys of the removed one are spread over the others.
    const moved = after.filter((_, key) => before[key] === "c");
    expect(new Set(moved)).toEqual(new Set(["a", "b", "d", "e"]));
  });

  it("moves to a larger weight only keys that it gains", () => {
    const before = firsts(members);
    const heavier = members.map((member) => (member.name === "c" ? { ...member, weight: 3 } : member));
    const after = firsts(heavier);
    expect(after.filter((name, key) => name !== before[key] && name !== "c")).toEqual([]);
    // Three of seven.
    expect(after.filter((name) => name === "c").length / after.length).toBeCloseTo(3 / 7, 1);
  });
});

const text = (value: string) => ({ kind: { case: "text" as const, value } });
const message = (role: Role, ...parts: Parameters<typeof text>) =>
  create(MessageSchema, { role, parts: parts.map(text) });
const requestOf = (facts: Parameters<typeof create<typeof CompletionRequestSchema>>[1]): CompletionRequest =>
  create(CompletionRequestSchema, facts);

describe("the key of a conversation", () => {
  const opening = [message(Role.SYSTEM, "Be brief."), message(Role.USER, "How long is a day on Venus?")];
  const later = [...opening, message(Role.ASSISTANT, "Long."), message(Role.USER, "And on Mars?")];
  const tools = [create(ToolSchema, { kind: { case: "function", value: { name: "look" } } })];
  const keyOf = (facts: Parameters<typeof requestOf>[0], family = "key_1"): number =>
    conversationKey(requestOf(facts), family);
  const key = keyOf({ messages: opening, tools });

  it("is the same for each of its turns", () => {
    expect(keyOf({ messages: later, tools, temperature: 1 })).toBe(key);
  });

  it.each([
    ["system message", { messages: [message(Role.SYSTEM, "Be verbose."), opening[1]!], tools }],
    ["first message", { messages: [opening[0]!, message(Role.USER, "How long is a day on Mars?")], tools }],
    ["tools", { messages: opening }],
  ])("is another one for another %s", (_, facts) => {
    expect(keyOf(facts)).not.toBe(key);
  });

  it("is another one for another key family", () => {
    expect(keyOf({ messages: opening, tools }, "key_2")).not.toBe(key);
  });

  it("sees the end of long texts", () => {
    const long = "x".repeat(100_000);
    const first = keyOf({ messages: [message(Role.USER, `${long}1`)] });
    expect(keyOf({ messages: [message(Role.USER, `${long}2`)] })).not.toBe(first);
  });

  it("is that of prompt_cache_key, else session_id, whatever the conversation", () => {
    const cached = keyOf({ messages: opening, promptCacheKey: "agent", sessionId: "one" });
    expect(keyOf({ messages: tail, promptCacheKey: "agent", sessionId: "two" })).toBe(cached);
    const session = keyOf({ messages: opening, sessionId: "one" });
    expect(keyOf({ messages: tail, sessionId: "one" })).toBe(session);
    expect(keyOf({ messages: opening, sessionId: "two" })).not.toBe(session);
  });
  const tail = [message(Role.USER, "Something else.")];
});

describe("a condition", () => {
  const ANY: TargetCondition = { promptTokens: undefined, modalities: undefined, tools: undefined, keyTags: undefined };
  const picture = create(MessageSchema, {
    role: Role.USER,
    parts: [{ kind: { case: "image", value: { source: { case: "url", value: "https://example.com/a.png" } } } }],
  });
  const plain = requestOf({ messages: [message(Role.USER, "hi")] });
  const long = requestOf({ messages: [message(Role.USER, "word ".repeat(10_000))] });
  const seeing = requestOf({ messages: [message(Role.USER, "hi"), picture] });
  const painting = requestOf({ messages: plain.messages, modalities: [Modality.TEXT, Modality.IMAGE] });
  const acting = requestOf({
    messages: plain.messages,
    tools: [create(ToolSchema, { kind: { case: "custom", value: {} } })],
  });
  const image = new Set([Modality.IMAGE]);

  it.each<readonly [string, Partial<TargetCondition>, CompletionRequest, boolean]>([
    ["at most 1,000 tokens", { promptTokens: { min: 0, max: 1_000 } }, plain, true],
    ["at most 1,000 tokens", { promptTokens: { min: 0, max: 1_000 } }, long, false],
    ["at least 1,000 tokens", { promptTokens: { min: 1_000, max: 1e6 } }, long, true],
    ["at least 1,000 tokens", { promptTokens: { min: 1_000, max: 1e6 } }, plain, false],
    ["images", { modalities: image }, plain, false],
    ["images", { modalities: image }, seeing, true],
    ["images", { modalities: image }, painting, true],
    ["tools", { tools: true }, acting, true],
    ["tools", { tools: true }, plain, false],
    ["no tools", { tools: false }, acting, false],
    ["no tools", { tools: false }, plain, true],
    ["keys with the tag batch", { keyTags: new Set(["batch", "nightly"]) }, plain, true],
    ["keys with the tag premium", { keyTags: new Set(["premium"]) }, plain, false],
    ["tools and images", { tools: true, modalities: image }, acting, false],
  ])("of %s: %j", (_, condition, request, expected) => {
    const facts = new RequestFacts(request, { keyFamilyId: "key_1", tags: new Set(["batch"]) });
    expect(unmetCondition(facts, { ...ANY, ...condition }) === undefined).toBe(expected);
  });
});

/** In US dollars per million tokens. */
const priceOf = (inputUsd: number, outputUsd: number) => {
  const [input, output] = [inputUsd * 1e6, outputUsd * 1e6];
  return toPrice({ input, output, cachedInput: input, imageOutput: output });
};

describe("a route's listed facts", () => {
  const provider = new ScriptedProvider(new FakeClock(), {});
  const routeOf = (...facts: readonly ModelFacts[]): Route =>
    createRoute({
      id: "pool",
      description: "",
      created: 0,
      policy: "ordered",
      affinity: false,
      targets: facts.map((each, index) => ({
        model: modelOf(`m${index}`, provider, each),
        weight: 1,
        when: undefined,
      })),
    });

  it("hold for all its targets", () => {
    const { upstream, price } = routeOf(
      {
        price: priceOf(1, 1),
        upstream: { contextWindow: 8_000, maxOutputTokens: 2_000, inputModalities: new Set([Modality.TEXT]) },
        capabilities: { seed: false, maxTemperature: 1, reasoningEfforts: ["low", "high"] },
      },
      { upstream: { outputModalities: new Set([Modality.TEXT, Modality.IMAGE]) }, capabilities: { reasoning: "none" } },
    );
    expect(price).toBeUndefined();
    expect(upstream).toMatchObject({
      contextWindow: 8_000,
      maxOutputTokens: 2_000,
      inputModalities: new Set([Modality.TEXT]),
      outputModalities: new Set([Modality.TEXT]),
      capabilities: {
        seed: false,
        tools: true,
        maxTemperature: 1,
        reasoning: "none",
        reasoningEfforts: ["low", "high"],
      },
    });
  });

  it("name provider and dialect only when all have the same", () => {
    expect(routeOf({ providerName: "one" }, { providerName: "two" })).toMatchObject({
      providerName: "",
      dialect: "scripted",
    });
  });
});

describe("by latency", () => {
  const pool = (slowMs: (nowMs: number) => number): Pool =>
    new Pool({
      targets: { fast: { firstContentMs: () => 100 }, slow: { firstContentMs: slowMs } },
      policy: "least_latency",
      affinity: false,
      random: seeded(1),
    });
  const serve = (of: Pool, requests: number): string[] =>
    Array.from({ length: requests }, () => {
      const { id } = of.send(asking("hi"))!;
      of.clock.advance(50);
      return id;
    });

  it("tries each target at first", () => {
    expect(
      new Set(
        serve(
          pool(() => 500),
          2,
        ),
      ),
    ).toEqual(new Set(["fast", "slow"]));
  });

  it("serves by the faster one, with few trials of the other", () => {
    const of = pool(() => 500);
    serve(of, 100);
    const slow = serve(of, 1_000).filter((id) => id === "slow").length;
    expect(slow).toBeGreaterThan(0);
    expect(slow).toBeLessThan(10);
  });

  it("returns to a target that has become the faster one", () => {
    const of = pool((nowMs) => (nowMs < 1_040_000 ? 500 : 50));
    serve(of, 2_000);
    // Now the other one is tried from time to time.
    expect(serve(of, 100).filter((id) => id === "slow").length).toBeGreaterThan(97);
  });

  it("leaves a target that falls silent before its first timeout", () => {
    const of = new Pool({
      targets: {
        silent: { firstContentMs: (nowMs) => (nowMs < 1_010_000 ? 100 : 60_000) },
        steady: { firstContentMs: () => 200 },
      },
      policy: "least_latency",
      affinity: false,
      random: seeded(1),
    });
    serve(of, 220);
    expect(new Set(serve(of, 100))).toEqual(new Set(["steady"]));
  });
});

it("passes over a target that has more than its share of the calls in flight", () => {
  const of = new Pool({
    targets: { a: {}, b: {}, c: {}, d: {} },
    policy: "weighted",
    affinity: true,
    random: seeded(1),
    restMs: 60_000,
  });
  const request = asking("A very popular conversation");
  const served = Array.from({ length: 400 }, () => of.send(request)!.id);
  const counts = Object.values(Object.groupBy(served, (id) => id)).map((ids) => ids!.length);
  expect(Math.max(...counts)).toBeLessThanOrEqual(Math.ceil(1.25 * 100));
  // Before that all went to one.
  expect(new Set(served.slice(0, 16)).size).toBe(1);
});

describe("a plan for a route", () => {
  const TARGETS = ["a", "b", "c"];
  const poolOf = (
    world: World,
    facts: Partial<Pick<Route, "policy" | "affinity">> = {},
    models = world.models,
  ): Route =>
    createRoute({
      id: "pool",
      description: "",
      created: 0,
      policy: "ordered",
      affinity: false,
      ...facts,
      targets: models.map((model) => ({ model, weight: 1, when: undefined })),
    });
  const CALLER = { keyFamilyId: "", accountId: "acct_1" };
  const planOf = (world: World, candidates: readonly (Model | Route)[], request = requestOf({})) =>
    world.router.plan(request, candidates, { mode: "stream", rules: NO_RULES, caller: CALLER });
  const scripts = { a: [serves("a")], b: [serves("b")], c: [serves("c")] };
  const omitting = { omitted: [{ $typeName: "parley.v1.Omission" as const, field: "seed", reason: 1 }] };

  it("has its targets, then the fallbacks, each model once", () => {
    const world = createWorld({ scripts });
    const [a, b, c] = world.models as readonly [Model, Model, Model];
    const { candidates } = planOf(world, [poolOf(world, {}, [b, a]), a, c]);
    expect(candidates.map(({ id }) => id)).toEqual(["b", "a", "c"]);
  });

  it("translates only for the first target, when that loses nothing", () => {
    const world = createWorld({ scripts });
    const translate = vi.spyOn(world.provider, "translate");
    planOf(world, [poolOf(world)]);
    expect(translate.mock.calls.map(([, { name }]) => name)).toEqual(["a-upstream"]);
  });

  it("asks deployments of one model only once whether they lose something", () => {
    const world = createWorld({ scripts, translations: { a: omitting, b: omitting, c: omitting } });
    const translate = vi.spyOn(world.provider, "translate");
    const { candidates, omitted } = planOf(world, [poolOf(world)]);
    expect(translate).toHaveBeenCalledTimes(1);
    expect(candidates.map(({ id }) => id)).toEqual(TARGETS);
    expect(omitted).toHaveLength(1);
  });

  it("translates for four kinds of targets at most, and has sixteen models at most", () => {
    const ids = Array.from({ length: 20 }, (_, index) => `m${index}`);
    const world = createWorld({
      scripts: Object.fromEntries(ids.map((id) => [id, [serves(id)]])),
      translations: Object.fromEntries(ids.map((id) => [id, omitting])),
    });
    const models = world.models.map((model, index) => ({
      ...model,
      upstream: { ...model.upstream, contextWindow: 100_000 + index },
    }));
    const translate = vi.spyOn(world.provider, "translate");
    const fallback = poolOf(world, {}, models.slice(6));
    const { candidates } = planOf(world, [poolOf(world, {}, models.slice(0, 10)), fallback]);
    expect(translate).toHaveBeenCalledTimes(4);
    expect(candidates.map(({ id }) => id)).toEqual([...ids.slice(0, 8), ...ids.slice(10, 18)]);
  });

  it("prefers a target that is up and loses something to one that is down, unless the request is strict", async () => {
    const down = new Failure("upstream_unavailable", "Down.");
    const world = createWorld({
      scripts: { a: [{ ending: down }], b: [serves("b")] },
      translations: { b: omitting },
      breaker: { failures: 1 },
    });
    await stream({ ...world, models: world.models.slice(0, 1) });
    const models = world.models.map((model, index) => ({
      ...model,
      upstream: { ...model.upstream, contextWindow: 100_000 + index },
    }));
    const firstFor = (request: CompletionRequest): string =>
      planOf(world, [poolOf(world, {}, models)], request).candidates[0]!.id;
    expect(firstFor(requestOf({}))).toBe("b");
    expect(firstFor(requestOf({ strict: true }))).toBe("a");
  });

  it("does not count unknown fields against a target", () => {
    const unknown = omitting.omitted;
    const world = createWorld({ scripts });
    const plan = world.router.plan(requestOf({}), [poolOf(world)], { mode: "stream", rules: NO_RULES, unknown });
    expect(plan.candidates[0]!.id).toBe("a");
  });

  it("prefers a target that sends the caller's own body, with its unknown fields", () => {
    const unknown = omitting.omitted;
    const world = createWorld({ scripts, translations: { c: { isCallers: true } } });
    const models = world.models.map((model, index) => ({
      ...model,
      upstream: { ...model.upstream, contextWindow: 100_000 + index },
    }));
    const body = { dialect: "d", mayHaveMore: false, json: {} };
    const asked = { mode: "stream", rules: NO_RULES, unknown, body } as const;
    const { candidates, omitted } = world.router.plan(requestOf({}), [poolOf(world, {}, models)], asked);
    expect([candidates[0]!.id, omitted]).toEqual(["c", []]);
  });

  it("sends a request to eight targets at most", () => {
    const world = createWorld({ scripts });
    const models = Array.from({ length: 20 }, (_, index) => ({ ...world.models[0]!, id: `m${index}` }));
    const { candidates } = planOf(world, [poolOf(world, {}, models), world.models[1]!]);
    expect(candidates.map(({ id }) => id)).toEqual(["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "b"]);
  });

  it("is refused as the first target refuses it, when none can take it", () => {
    const refusal = (id: string): Failure => new Failure("invalid_request", `${id} cannot.`);
    const world = createWorld({ scripts, translations: { a: refusal("a"), b: refusal("b"), c: refusal("c") } });
    expect(() => planOf(world, [poolOf(world)])).toThrow("a cannot.");
  });

  it("reports the targets in their order, the chosen one first", async () => {
    const world = createWorld({ scripts, translations: { a: omitting }, facts: {} });
    const models = world.models.map((model, index) => ({
      ...model,
      upstream: { ...model.upstream, contextWindow: 100_000 + index },
    }));
    const plan = planOf(world, [poolOf(world, {}, models), world.models[0]!]);
    const call = newCall();
    const { batches } = await world.clock.drive(collect((emit) => plan.stream(call, emit)));
    expect(batches.at(-1)!.at(-1)!.event.value).toMatchObject({ targets: ["b", "a", "c"] });
    expect(outcomes(call.attempts)).toEqual(["b:served"]);
  });

  it("measures the time to the first content of each attempt", async () => {
    const world = createWorld({
      scripts: { a: [{ ...serves("a"), pauseMs: 900 }], b: [{ ...serves("b"), pauseMs: 100 }] },
    });
    const pool = poolOf(world, { policy: "least_latency" });
    const served: string[] = [];
    for (let number = 0; number < 10; number++) {
      const plan = planOf(world, [pool]);
      served.push(plan.candidates[0]!.id);
      await world.clock.drive(collect((emit) => plan.stream(newCall(), emit)));
    }
    // After one trial of each.
    expect(new Set(served.slice(0, 2))).toEqual(new Set(["a", "b"]));
    expect(new Set(served.slice(2))).toEqual(new Set(["b"]));
  });

  it("prefers the cheapest target for the size of the request", () => {
    const world = createWorld({ scripts });
    const [a, b, c] = world.models as readonly [Model, Model, Model];
    const priced = [c, { ...a, price: priceOf(1, 100) }, { ...b, price: priceOf(10, 10) }];
    const order = (request: CompletionRequest): string[] =>
      planOf(world, [poolOf(world, { policy: "cheapest" }, priced)], request).candidates.map(({ id }) => id);
    expect(order(requestOf({ messages: [message(Role.USER, "hi")] }))).toEqual(["b", "a", "c"]);
    const long = requestOf({ messages: [message(Role.USER, "word ".repeat(50_000))], maxOutputTokens: 10 });
    expect(order(long)).toEqual(["a", "b", "c"]);
  });
});
