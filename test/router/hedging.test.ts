import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { toDuration } from "../../src/core/attempt.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Hedge } from "../../src/core/model.ts";
import { createRoute } from "../../src/core/route.ts";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { omission } from "../../src/core/provider-options.ts";
import type { Asked } from "../../src/core/router.ts";
import { ContentTimes, Hedging } from "../../src/router/hedging.ts";
import type { Script } from "../support/scripted-provider.ts";
import {
  collect,
  createWorld,
  fails,
  hangs,
  newCall,
  NO_RULES,
  outcomes,
  said,
  serves,
  type TestCall,
  type World,
  type WorldOptions,
} from "./routed.ts";

const unavailable = new Failure("upstream_unavailable", "It is down.", { upstreamStatus: 503 });
/** Answers with `word` after a time in milliseconds. */
const after = (ms: number, word = "hi"): Script => ({ ...serves(word), pauseMs: ms });

/** As of a configuration, but for any share of the requests. */
const AFTER_1_S: Hedge = { after: { ms: 1_000 }, budget: 1 };

interface Asking {
  readonly hedge?: Hedge;
  readonly request?: MessageInitShape<typeof CompletionRequestSchema>;
  readonly asked?: Partial<Asked>;
}

/** A world whose models are the targets of one name, or, with only one, that model. */
function hedgedWorld(scripts: WorldOptions["scripts"], options: Partial<WorldOptions> = {}): World {
  return createWorld({ scripts, ...options });
}

function plan({ router, models }: World, { hedge = AFTER_1_S, request = {}, asked }: Asking) {
  const [first] = models;
  const targets = models.map((model) => ({ model, weight: 1, when: undefined }));
  const facts = { description: "", created: 0, policy: "ordered", affinity: false } as const;
  const name = models.length === 1 ? { ...first!, hedge } : createRoute({ id: "name", ...facts, hedge, targets });
  return router.plan(create(CompletionRequestSchema, request), [name], { mode: "stream", rules: NO_RULES, ...asked });
}

async function ask(world: World, call: TestCall = newCall(), asking: Asking = {}) {
  const streamed = await world.clock.drive(collect((emit) => plan(world, asking).stream(call, emit)));
  return { ...streamed, said: said(streamed.batches), outcomes: outcomes(call.attempts) };
}

async function askWhole(world: World, call: TestCall = newCall(), asking: Asking = {}) {
  const asked = { ...asking.asked, mode: "whole" as const };
  return world.clock.drive(plan(world, { ...asking, asked }).create(call));
}

describe("a second attempt", () => {
  it("starts at the next target when the first has no content in time, and the first content wins", async () => {
    const world = hedgedWorld({ a: [after(5_000, "slow")], b: [after(300, "quick")] });
    const call = { ...newCall(), arrivedMs: world.clock.monotonic() };
    const { said: text, batches } = await ask(world, call);
    expect(text).toBe("start quick choiceFinish report");
    expect(batches[0]![0]!.event.value).toMatchObject({ model: "b", upstreamDuration: toDuration(1_300) });
    expect(call.attempts).toMatchObject([
      { model: "a", outcome: "cancelled", reason: "Another attempt was faster.", startMs: 0, durationMs: 1_300 },
      { model: "b", outcome: "served", startMs: 1_000, durationMs: 900 },
    ]);
    expect(world.provider.calls).toMatchObject([{ state: "aborted" }, { state: "ended" }]);
    expect(batches.at(-1)![0]!.event.value).toMatchObject({ upstreamDuration: toDuration(1_900) });
    expect(world.router.hedges().get("name")).toEqual({ started: 1, won: 1, refused: 0 });
    expect(world.clock.pending).toBe(0);
  });

  it("loses when the first has content before it, and may be billed at once", async () => {
    const world = hedgedWorld({ a: [after(1_200)], b: [after(5_000)] });
    const call = newCall();
    expect((await ask(world, call)).outcomes).toEqual(["b:cancelled", "a:served"]);
    expect(call.billable).toMatchObject([
      { model: { id: "b" }, committed: false, elapsedMs: 200, remainder: undefined },
    ]);
    expect(world.router.hedges().get("name")).toEqual({ started: 1, won: 0, refused: 0 });
  });

  it("is of the same model for a model, whose retry it replaces", async () => {
    const world = hedgedWorld({ a: [after(5_000), fails(unavailable)] });
    expect((await ask(world)).outcomes).toEqual(["a:upstream_unavailable", "a:served"]);
    const failing = hedgedWorld({ a: [{ ending: unavailable, pauseMs: 1_500 }] });
    expect((await ask(failing)).outcomes).toEqual(["a:upstream_unavailable", "a:upstream_unavailable"]);
  });

  it.each([false, true])("is of whole answers, too (fetched as streams: %s)", async (streamed) => {
    const translations = { a: { streamed }, b: { streamed } };
    const world = hedgedWorld({ a: [after(5_000)], b: [after(300)] }, { translations });
    const call = newCall();
    expect(await askWhole(world, call)).toMatchObject({ model: { id: "b" } });
    expect(outcomes(call.attempts)).toEqual(["a:cancelled", "b:served"]);
    // The first content decides, of an answer that comes at once its end.
    expect(call.attempts[0]!.durationMs).toBe(streamed ? 1_300 : 1_900);
  });

  it("answers alone when the first fails after its start, without another retry", async () => {
    const world = hedgedWorld({ a: [{ ending: unavailable, pauseMs: 1_200 }], b: [after(600)], c: [serves("no")] });
    expect((await ask(world)).outcomes).toEqual(["a:upstream_unavailable", "b:served"]);
  });

  it("is followed by the remaining targets when both fail, of which the first's failure is returned", async () => {
    const failing = { ending: new Failure("upstream_rejected", "Not b."), pauseMs: 100 };
    const world = hedgedWorld({
      a: [{ ending: unavailable, pauseMs: 2_000 }],
      b: [failing],
      c: [fails(failing.ending)],
    });
    const { outcomes: ended, failure } = await ask(world);
    expect(ended).toEqual(["b:upstream_rejected", "a:upstream_unavailable", "c:upstream_rejected"]);
    expect(failure).toMatchObject({ message: "It is down." });
  });

  it("ends with the first when a failure is final", async () => {
    const world = hedgedWorld({ a: [{ ending: new Failure("internal", "Broken."), pauseMs: 1_500 }], b: [hangs()] });
    const { outcomes: ended, failure } = await ask(world);
    expect(ended).toEqual(["b:cancelled", "a:internal"]);
    expect(failure).toMatchObject({ message: "Broken." });
  });

  it("ends with the caller, and both are read on for their counts", async () => {
    const timeouts = { firstContentMs: 60_000, idleMs: 120_000, totalMs: 900_000, settleMs: 2_000 };
    const world = hedgedWorld({ a: [hangs()], b: [hangs()] }, { facts: { timeouts } });
    const call = newCall();
    world.clock.after(1_500, () => call.caller.abort(new Failure("cancelled", "Left.")));
    expect((await ask(world, call)).outcomes).toEqual(["a:cancelled", "b:cancelled"]);
    expect(call.billable.map(({ model, remainder }) => [model.id, remainder !== undefined])).toEqual([
      ["a", true],
      ["b", true],
    ]);
    await world.clock.pass(2_000);
    expect(world.provider.calls).toMatchObject([{ state: "aborted" }, { state: "aborted" }]);
  });

  it("counts for the time of a slow target as what it has waited at least, and for no breaker", async () => {
    const world = hedgedWorld({ a: [after(50_000)], b: [after(10)] }, { breaker: { failures: 1 } });
    for (let count = 0; count < 3; count++) expect((await ask(world)).outcomes[0]).toBe("a:cancelled");
    expect(world.router.openingOf(world.models[0]!)).toBeUndefined();
  });
});

describe("no second attempt starts", () => {
  const slow = { a: [after(3_000)], b: [after(10)] };
  const alone = { outcomes: ["a:served"], timers: 0 };
  const outcomeOf = async (world: World, asking: Asking = {}, call?: TestCall): Promise<typeof alone> => {
    const { outcomes: ended } = await ask(world, call, asking);
    return { outcomes: ended, timers: world.clock.pending };
  };

  it("after the first content", async () => {
    expect(
      await outcomeOf(hedgedWorld({ a: [{ ...serves("one", "two", "three"), pauseMs: 900 }], b: [serves("no")] })),
    ).toEqual(alone);
  });

  it("at a target with an open circuit breaker, or that cannot take the request", async () => {
    const open = hedgedWorld({ a: [after(3_000)], b: [fails(unavailable)] }, { breaker: { failures: 1 } });
    await open.clock.drive(
      collect((emit) =>
        open.router
          .plan(create(CompletionRequestSchema), [open.models[1]!], { mode: "stream", rules: NO_RULES })
          .stream(newCall(), emit),
      ),
    );
    expect(await outcomeOf(open)).toEqual(alone);
    expect(
      await outcomeOf(hedgedWorld(slow, { translations: { b: new Failure("invalid_request", "Not b.") } })),
    ).toEqual(alone);
  });

  it("without money for both, which is held before", async () => {
    const beside: unknown[] = [];
    const call = newCall();
    const reserveAnother: TestCall["reserveAnother"] = async (model, _, other) => {
      beside.push([model.id, other?.model.id]);
      return new Failure("budget_spent", "No money.");
    };
    expect(await outcomeOf(hedgedWorld(slow), {}, { ...call, reserveAnother })).toEqual(alone);
    expect(beside).toEqual([["b", "a"]]);
  });

  it("when the content comes while the money is held", async () => {
    const world = hedgedWorld({ a: [after(1_100)], b: [serves("no")] });
    const reserveAnother = (): Promise<undefined> =>
      new Promise((resolve) => void world.clock.after(500, () => resolve(undefined)));
    expect(await outcomeOf(world, {}, { ...newCall(), reserveAnother })).toEqual(alone);
  });

  it.each<[string, Asking]>([
    ["stores", { request: { store: true } }],
    [
      "has native tools of",
      { request: { tools: [{ kind: { case: "native", value: { dialect: "x", json: "{}" } } }] } },
    ],
    [
      "has an item with native tools of",
      {
        request: {
          messages: [
            {
              role: Role.ASSISTANT,
              parts: [{ kind: { case: "native", value: { dialect: "x", json: '{"tools":[{"type":"mcp"}]}' } } }],
            },
          ],
        },
      },
    ],
    ["searches with", { request: { providerOptionsJson: { "openai.web_search_options": "{}" } } }],
    ["has other fields for", { request: { providerOptionsJson: { "anthropic.mcp_servers": "[]" } } }],
    ["has unknown fields for", { asked: { unknown: [omission("background", OmissionReason.UNKNOWN)] } }],
  ])("for a request that %s its provider", async (_, asking) => {
    expect(await outcomeOf(hedgedWorld(slow), asking)).toEqual(alone);
  });

  it("beyond the budget of the name", async () => {
    const world = hedgedWorld({ a: [after(1_100)], b: [after(500)] });
    const hedge = { after: { ms: 1_000 }, budget: 0.1 };
    for (let count = 0; count < 100; count++) await ask(world, newCall(), { hedge });
    expect(world.router.hedges().get("name")).toEqual({ started: 10, won: 0, refused: 90 });
    // The provider's budget of retries grants only those that start.
    const [retries] = world.router.retries().values();
    expect(retries).toEqual({ granted: 10, refused: 0, inFlight: 0 });
  });

  it("beyond the account's share of it, so that those of another one still start", async () => {
    const quick = Array.from({ length: 90 }, () => after(10));
    const world = hedgedWorld({ a: [...quick, after(5_000)], b: [after(10)] });
    const hedge = { after: { ms: 1_000 }, budget: 0.1 };
    const askAs = (accountId: string): ReturnType<typeof ask> => ask(world, { ...newCall(), accountId }, { hedge });
    for (let count = 0; count < 90; count++) await askAs("honest");
    for (let count = 0; count < 10; count++) await askAs("hostile");
    expect(world.router.hedges().get("name")).toMatchObject({ started: 1, refused: 9 });
    expect((await askAs("honest")).outcomes).toEqual(["a:cancelled", "b:served"]);
  });

  it("beside too many other ones and retries in flight", async () => {
    const world = hedgedWorld({ a: [after(5_000)], b: [after(3_000)] });
    const asked = Array.from({ length: 10 }, () => collect((emit) => plan(world, {}).stream(newCall(), emit)));
    await world.clock.drive(Promise.all(asked));
    expect(world.router.hedges().get("name")).toMatchObject({ started: 3, refused: 7 });
  });

  it("beyond the budget while others wait for their money", async () => {
    const world = hedgedWorld({ a: [after(5_000)], b: [after(3_000)] });
    const reserveAnother = (): Promise<undefined> =>
      new Promise((resolve) => void world.clock.after(100, () => resolve(undefined)));
    const hedge = { after: { ms: 1_000 }, budget: 0.2 };
    const asked = Array.from({ length: 10 }, () =>
      collect((emit) => plan(world, { hedge }).stream({ ...newCall(), reserveAnother }, emit)),
    );
    await world.clock.drive(Promise.all(asked));
    expect(world.router.hedges().get("name")).toMatchObject({ started: 2, refused: 8 });
  });

  it("by a percentile, before enough is known", async () => {
    const hedge: Hedge = { after: { percentile: 95 }, budget: 1 };
    const answers = [...Array.from({ length: 50 }, (_, index) => after(100 + index)), after(9_000)];
    const world = hedgedWorld({ a: answers, b: [after(10)] });
    for (let count = 0; count < 50; count++) await ask(world, newCall(), { hedge });
    expect(world.router.hedges().get("name")).toMatchObject({ started: 0 });
    const call = newCall();
    expect((await ask(world, call, { hedge })).outcomes).toEqual(["a:cancelled", "b:served"]);
    expect(call.attempts[0]!.durationMs).toBe(147 + 10);
  });
});

describe("the budget of hedges", () => {
  it("is a share of the latest 1,000 requests", () => {
    const hedging = new Hedging();
    const startAll = (): number => {
      let started = 0;
      for (; hedging.permit(0.05, "a"); started++) hedging.start("a");
      return started;
    };
    for (let count = 0; count < 19; count++) hedging.count("a");
    expect(startAll()).toBe(0);
    for (let count = 0; count < 5_000; count++) hedging.count("a");
    expect(startAll()).toBe(50);
    for (let count = 0; count < 999; count++) hedging.count("a");
    expect(startAll()).toBe(0);
    hedging.count("a");
    expect(startAll()).toBe(50);
  });

  it("is that share of each account's own requests, too, or one", () => {
    const hedging = new Hedging();
    const startAll = (account: string): number => {
      let started = 0;
      for (; hedging.permit(0.05, account); started++) hedging.start(account);
      return started;
    };
    for (let count = 0; count < 1_000; count++) hedging.count(count % 10 === 0 ? "hostile" : "a");
    expect(startAll("hostile")).toBe(5);
    expect(startAll("b")).toBe(1);
    expect(startAll("a")).toBe(44);
    for (let count = 0; count < 1_000; count++) hedging.count("b");
    expect([startAll("a"), startAll("b")]).toEqual([1, 49]);
  });

  it("counts hedges that wait for money", () => {
    const hedging = new Hedging();
    for (let count = 0; count < 20; count++) hedging.count("a");
    expect(hedging.permit(0.05, "a")).toBe(true);
    expect(hedging.permit(0.05, "a")).toBe(false);
    hedging.giveUp("a");
    expect(hedging.permit(0.05, "a")).toBe(true);
  });
});

describe("times to the first content", () => {
  it("are those of the latest 256, at least 50 ms", () => {
    const times = new ContentTimes();
    for (let count = 0; count < 49; count++) times.add(1_000, "a");
    expect(times.percentile(95, "a")).toBeUndefined();
    times.add(1_000, "a");
    expect(times.percentile(95, "a")).toBe(1_000);
    for (let count = 0; count < 256; count++) times.add(10, "a");
    expect(times.percentile(95, "a")).toBe(50);
    for (let count = 0; count < 32; count++) times.add(500, "a");
    expect(times.percentile(95, "a")).toBe(500);
  });

  it("are an account's own once it has 50, and those of the others together before", () => {
    const times = new ContentTimes();
    for (let count = 0; count < 50; count++) times.add(100 + count, "a");
    for (let count = 0; count < 1_000; count++) times.add(5_000, "hostile");
    expect(times.percentile(95, "a")).toBe(147);
    for (let account = 0; account < 210; account++) times.add(100, `b${account}`);
    // The first 50 of "hostile" are of what all accounts met.
    expect(times.percentile(50, "c")).toBe(100);
    for (let account = 0; account < 50; account++) times.add(100, `b${account}`);
    expect(times.percentile(95, "c")).toBe(100);
  });
});
