import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import {
  type CompletionChunk,
  type CompletionRequestSchema,
  FinishReason,
  PartialImageSchema,
  PartStartSchema,
} from "../../gen/parley/v1/completion_pb.js";
import { AudioSchema, ImageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { AttemptOutcome, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { ChoiceWriter, finishChunk, startChunk, toChunk, toPart, usageChunk } from "../../src/core/chunks.ts";
import type { Call } from "../../src/core/call.ts";
import { createCompletions } from "../../src/core/completions.ts";
import { omission } from "../../src/core/provider-options.ts";
import { Failure } from "../../src/core/failure.ts";
import type { CompletionRecord, LedgerEntry } from "../../src/core/ledger.ts";
import type { LimitFacts } from "../../src/core/limiter.ts";
import { NO_LIMITS, type Principal } from "../../src/core/principal.ts";
import type { CostedUsage, Emit } from "../../src/core/provider.ts";
import { collect, createWorld, fails, outcomes, said, say, serves, type WorldOptions } from "../router/routed.ts";
import { batchesOf } from "../support/batches.ts";
import { callOf, FACTS, memoryLedger, notingLimiter, somebody, seal } from "../support/core-ports.ts";
import type { Model } from "../../src/core/model.ts";
import { NO_FEES, toPrice } from "../support/prices.ts";
import { PLAINLY_SENT, type Script } from "../support/scripted-provider.ts";
import { message, requestTo } from "./requests.ts";

type Asked = MessageInitShape<typeof CompletionRequestSchema>;

const usage = create(UsageSchema, { inputTokens: 100, outputTokens: 10, totalTokens: 110, cachedInputTokens: 40 });
const counted: Script = {
  batches: [
    [say("hi")],
    [say(" there"), finishChunk(0, { reason: FinishReason.STOP, native: "end_turn" }), usageChunk(usage)],
  ],
  ending: "end",
  pauseMs: 100,
};
const price = toPrice({ input: 5_000_000, output: 25_000_000, cachedInput: 500_000, imageOutput: 0 });
/** 60 × 5 + 40 × 0.5 + 10 × 25. */
const COST_MICRO_USD = 570;

const NEVER = new Promise<void>(() => undefined);

interface CoreOptions extends WorldOptions {
  /** The failure of the recorder, if any. */
  readonly recorderFault?: Error;
  /** The limiter's answer to every call. */
  readonly refusal?: Failure;
  readonly ledger?: Parameters<typeof memoryLedger>[0];
  /** Default: a key without limits. */
  readonly principal?: Principal;
}

/** Core over scripted models, for a key that may use all but the models and capabilities listed as forbidden. */
function createCore(options: CoreOptions, forbidden: readonly string[] = []) {
  const { limiter, demands, releases, extensions, refuseExtensions } = notingLimiter(options.refusal);
  const { ledger, entries, begun } = memoryLedger({ ...options.ledger });
  const told: LimitFacts[] = [];
  const world = createWorld({ ...options, facts: { price, ...options.facts } });
  const records: CompletionRecord[] = [];
  const completions = createCompletions({
    router: world.router,
    clock: world.clock,
    limiter,
    ledger,
    seal,
    recorder: {
      record(entry) {
        if (options.recorderFault !== undefined) throw options.recorderFault;
        records.push(entry);
      },
    },
    permit(_, { models, capability }) {
      const refused = [capability, ...models].find((need) => forbidden.includes(need));
      if (refused !== undefined) throw new Failure("permission_denied", `Not ${refused}.`);
    },
  });
  const caller = new AbortController();
  const call = callOf({
    ...(options.principal && { principal: options.principal }),
    signal: caller.signal,
    arrivedMs: world.clock.monotonic() - 7,
    admitted: (facts) => void told.push(facts),
  });
  return {
    world,
    records,
    settling: completions.settling,
    demands,
    releases,
    extensions,
    refuseExtensions,
    entries,
    begun,
    told,
    caller,
    create: (asked: Asked = {}, more: Partial<Call> = {}) =>
      world.clock.drive(completions.create(requestTo(asked), { ...call, ...more })),
    stream: (asked: Asked = {}) =>
      batchesOf(
        (emit) => completions.stream(requestTo(asked), call, emit),
        () => caller.abort(new Failure("cancelled", "Left.")),
      ),
    emit: (emit: Emit) => world.clock.drive(completions.stream(requestTo({}), call, emit)),
    read: (asked: Asked = {}, more: Partial<Call> = {}) =>
      world.clock.drive(collect((emit) => completions.stream(requestTo(asked), { ...call, ...more }, emit))),
  };
}

const eventOf = (batches: readonly (readonly CompletionChunk[])[], name: CompletionChunk["event"]["case"]): unknown =>
  batches.flat().find(({ event }) => event.case === name)?.event.value;

describe("a whole completion", () => {
  it("has the call's ID, its time, the model that answered, what it said and what it cost", async () => {
    const completion = await createCore({ scripts: { a: [counted] } }).create();
    expect(completion).toMatchObject({
      id: "chatcmpl-1",
      createTime: { seconds: 1_767_225_600n },
      model: "a",
      choices: [{ index: 0, finishReason: FinishReason.STOP, nativeFinishReason: "end_turn" }],
      usage: { inputTokens: 100 },
      report: { costMicroUsd: BigInt(COST_MICRO_USD), attempts: [{ model: "a", outcome: AttemptOutcome.SERVED }] },
    });
  });

  it("has its caller's key family, by which its reads are scheduled", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await core.create();
    expect(core.world.provider.calls).toMatchObject([{ keyFamilyId: somebody.keyFamilyId }]);
  });

  it("has no cost without a price, and none without a count", async () => {
    const free = await createCore({ scripts: { a: [counted] }, facts: { price: undefined } }).create();
    expect(free.report!.costMicroUsd).toBeUndefined();
    const uncounted = await createCore({ scripts: { a: [serves("hi")] } }).create();
    expect(uncounted.usage).toBeUndefined();
    expect(uncounted.report!.costMicroUsd).toBeUndefined();
  });

  it("is priced by the model that answered, not by the one that was asked for", async () => {
    const core = createCore({ scripts: { a: [fails(new Failure("upstream_rejected", "No."))], b: [counted] } });
    core.world.router.replace([core.world.models[0]!, { ...core.world.models[1]!, price: { ...price, output: 0 } }]);
    const { report, model } = await core.create({ fallbackModels: ["b"] });
    expect(model).toBe("b");
    expect(report!.costMicroUsd).toBe(BigInt(COST_MICRO_USD - 250));
  });
});

describe("the conversation of a request", () => {
  /** How many messages the request had when it was translated, for each model, and how many it has at the end. */
  async function messagesOf(asked: Asked): Promise<{ readonly translated: readonly number[]; readonly left: number }> {
    const refused = fails(new Failure("upstream_unavailable", "No."));
    const core = createCore({ scripts: { a: [refused, refused, refused], b: [counted] } });
    const { provider } = core.world;
    const translate = provider.translate.bind(provider);
    const translated: number[] = [];
    const spy = vi.spyOn(provider, "translate").mockImplementation((request, model) => {
      translated.push((request as { messages: readonly unknown[] }).messages.length);
      return translate(request, model);
    });
    await core.create(asked).catch(() => undefined);
    const [request] = spy.mock.lastCall!;
    return { translated, left: (request as { messages: readonly unknown[] }).messages.length };
  }

  it("is released once it is translated for the only model, whose retries send the same bytes", async () => {
    expect(await messagesOf({})).toEqual({ translated: [1], left: 0 });
  });

  it("is kept where another model may have to be asked", async () => {
    expect(await messagesOf({ fallbackModels: ["b"] })).toEqual({ translated: [1, 1], left: 1 });
  });

  it("is released when a stream has content, after which no other model is asked", async () => {
    const core = createCore({ scripts: { a: [serves("hi", "there")], b: [counted] } });
    const translate = vi.spyOn(core.world.provider, "translate");
    const left: number[] = [];
    for await (const _ of core.stream({ fallbackModels: ["b"] })) {
      const [request] = translate.mock.lastCall!;
      left.push((request as { messages: readonly unknown[] }).messages.length);
    }
    expect(left).toEqual([0, 0, 0, 0]);
  });
});

describe("a streamed completion", () => {
  it("starts with the ID and the model and ends with the report and the cost", async () => {
    const { batches } = await createCore({ scripts: { a: [counted] } }).read();
    expect(said(batches)).toBe("start hi  there choiceFinish usage report");
    expect(eventOf(batches, "start")).toMatchObject({
      id: "chatcmpl-1",
      createTime: { seconds: 1_767_225_600n },
      model: "a",
    });
    expect(eventOf(batches, "report")).toMatchObject({ costMicroUsd: BigInt(COST_MICRO_USD) });
  });
});

describe("fields that the entrance did not know", () => {
  it("are reported before those that the model cannot honour", async () => {
    const core = createCore({
      scripts: { a: [counted] },
      translations: { a: { omitted: [omission("seed", OmissionReason.UNSUPPORTED)] } },
    });
    const call = { unrecognized: ["frobnicate", "messages[0].weight"] };
    const omitted = [
      { field: "frobnicate", reason: OmissionReason.UNKNOWN },
      { field: "messages[0].weight", reason: OmissionReason.UNKNOWN },
      { field: "seed", reason: OmissionReason.UNSUPPORTED },
    ];
    expect((await core.create({}, call)).report!.omitted).toMatchObject(omitted);
    expect(eventOf((await core.read({}, call)).batches, "report")).toMatchObject({ omitted });
  });

  it("lists unknown names of provider options, and refuses them when it is strict", async () => {
    const asked = { providerOptionsJson: { "openai.later": "1", "acme.search": "{}" } };
    const listed = ["provider_options_json.openai.later", "provider_options_json.acme.search"].map((field) => ({
      field,
      reason: OmissionReason.UNKNOWN,
    }));
    expect((await createCore({ scripts: { a: [counted] } }).create(asked)).report?.omitted).toMatchObject(listed);
    await expect(createCore({ scripts: { a: [counted] } }).create({ ...asked, strict: true })).rejects.toMatchObject({
      code: "invalid_request",
      param: "provider_options_json.openai.later",
    });
  });

  it("are a violation of a strict request, each", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await expect(core.create({ strict: true }, { unrecognized: ["x", "y"] })).rejects.toMatchObject({
      code: "invalid_request",
      violations: [{ field: "x" }, { field: "y" }],
    });
    await expect(core.create({ strict: true })).resolves.toMatchObject({ model: "a" });
  });
});

describe("what is wrong with a request is found in order", () => {
  const invalid: Asked = { temperature: 9 };

  it.each<[string, Asked, readonly string[], Record<string, unknown>]>([
    ["no model at all", { model: "", ...invalid }, ["chat"], { code: "invalid_request", param: "model" }],
    ["an unknown model", { model: "z", ...invalid }, ["chat"], { code: "model_not_found", param: "model" }],
    [
      "an unknown fallback model",
      { fallbackModels: ["b", "z"], ...invalid },
      ["chat"],
      { code: "model_not_found", param: "fallback_models[1]" },
    ],
    ["a forbidden model", invalid, ["a"], { code: "permission_denied", message: "Not a." }],
    [
      "a forbidden fallback model",
      { fallbackModels: ["b"], ...invalid },
      ["b"],
      { code: "permission_denied", message: "Not b." },
    ],
    [
      "a forbidden capability",
      { modalities: [Modality.TEXT, Modality.IMAGE] },
      ["images"],
      { code: "permission_denied", message: "Not images." },
    ],
    ["a wrong value", { ...invalid, strict: true }, ["images"], { code: "invalid_request", param: "temperature" }],
    ["an unknown field of a strict request", { strict: true }, [], { code: "invalid_request", param: "x" }],
    ["what the model cannot do", {}, [], { code: "invalid_request", message: "a cannot." }],
  ])("%s", async (_, asked, forbidden, shown) => {
    const translations = { a: new Failure("invalid_request", "a cannot.") };
    const core = createCore({ scripts: { a: [counted], b: [counted] }, translations }, forbidden);
    const call = { unrecognized: asked.strict === true ? ["x"] : [] };
    await expect(core.create(asked, call)).rejects.toMatchObject(shown);
    expect((await core.read(asked, call)).failure).toMatchObject(shown);
    expect(core.world.provider.calls).toEqual([]);
    expect(core.records).toMatchObject([
      { outcome: shown["code"], attempts: [], streamed: false },
      { outcome: shown["code"], attempts: [], streamed: true },
    ]);
  });

  it("models named twice are asked once, and those that make pictures are named", async () => {
    const no = fails(new Failure("upstream_rejected", "No."));
    const core = createCore({ scripts: { a: [no], b: [no] } });
    const asked = { fallbackModels: ["a", "b", "b", "a"] };
    expect(outcomes((await core.read(asked)).failure!.attempts)).toEqual([
      "a:upstream_rejected",
      "b:upstream_rejected",
    ]);
  });
});

describe("the record", () => {
  const served = {
    requestId: "req_1",
    completionId: "chatcmpl-1",
    principal: somebody,
    entrance: "http",
    requestedModel: "a",
    servedModel: "a",
    outcome: "served",
    usage,
    costMicroUsd: COST_MICRO_USD,
    reservedMicroUsd: expect.any(Number),
    limits: FACTS,
    startedAtMs: Date.UTC(2026, 0, 1),
    endedAtMs: Date.UTC(2026, 0, 1) + 300,
    attempts: [expect.anything()],
    failure: undefined,
  };

  it("of a whole completion says everything", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await core.create();
    const [entry] = core.entries;
    expect(core.records).toEqual([{ ...served, entry, streamed: false, durationMs: 307, firstContentMs: undefined }]);
    expect(entry).toMatchObject({ limits: FACTS, endedAtMs: served.endedAtMs });
  });

  it("of one that was refused has no entry, but the limits that refused it", async () => {
    const refusal = new Failure("rate_limited", "Too many.", { limits: FACTS });
    const core = createCore({ scripts: { a: [counted] }, refusal });
    await expect(core.create()).rejects.toBe(refusal);
    expect(core.records).toMatchObject([{ outcome: "rate_limited", failure: refusal, limits: FACTS }]);
    expect(core.records[0]!.entry).toBeUndefined();
  });

  it("of a stream says when the first content came, too", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await core.read();
    expect(core.records).toEqual([
      { ...served, entry: core.entries[0], streamed: true, durationMs: 307, firstContentMs: 107 },
    ]);
  });

  it("is made before the caller gets the end", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    const ended = core.stream()[Symbol.asyncIterator]();
    const rest = async (): Promise<number> => {
      while ((await ended.next()).done !== true) expect(core.records).toEqual([]);
      return core.records.length;
    };
    expect(await core.world.clock.drive(rest())).toBe(1);
  });

  it("of a failure before content names no model, and has the attempts", async () => {
    const core = createCore({ scripts: { a: [fails(new Failure("upstream_rejected", "No."))] } });
    const failure = await core.create().catch((reason: unknown) => reason);
    expect(core.records).toMatchObject([
      { outcome: "upstream_rejected", servedModel: undefined, usage: undefined, failure },
    ]);
    expect(outcomes(core.records[0]!.attempts)).toEqual(["a:upstream_rejected"]);
  });

  it("of a stream that broke names the model that was answering", async () => {
    const core = createCore({ scripts: { a: [fails(new Failure("upstream_protocol", "Cut."), "half")] } });
    await core.read();
    expect(core.records).toMatchObject([{ outcome: "upstream_protocol", servedModel: "a", costMicroUsd: undefined }]);
  });

  it("of a caller who took only the beginning says cancelled, and which model was answering", async () => {
    const core = createCore({ scripts: { a: [serves("one", "two")] } });
    for await (const _ of core.stream()) break;
    expect(core.records).toMatchObject([{ outcome: "cancelled", servedModel: "a", failure: { code: "cancelled" } }]);
    expect(outcomes(core.records[0]!.attempts)).toEqual(["a:cancelled"]);
  });

  it("of a caller who left after the report says served: everything was given", async () => {
    const core = createCore({ scripts: { a: [serves("one")] } });
    for await (const batch of core.stream()) if (batch[0]!.event.case === "report") break;
    expect(core.records).toMatchObject([{ outcome: "served" }]);
  });

  it("of a caller who had the whole answer says served, whatever becomes of its last words", async () => {
    const core = createCore({ scripts: { a: [serves("one")] } });
    const late = new Failure("deadline_exceeded", "Too late.");
    const streamed = core.emit((batch) => (batch[0]!.event.case === "report" ? Promise.reject(late) : undefined));
    await expect(streamed).rejects.toBe(late);
    expect(core.records).toMatchObject([{ outcome: "served", failure: undefined }]);
  });

  it("of a caller who left with the last content says cancelled, and is recorded", async () => {
    const core = createCore({ scripts: { a: [serves("one")] } });
    for await (const batch of core.stream()) if (batch[0]!.event.case === "choiceFinish") break;
    expect(core.records).toMatchObject([{ outcome: "cancelled", servedModel: "a" }]);
    expect(core.entries).toHaveLength(1);
  });

  it.each([
    ["later", (fault: Error) => () => Promise.reject(fault)],
    [
      "at once",
      (fault: Error) => () => {
        throw fault;
      },
    ],
  ])(
    "of a fault at the entrance says internal, and no provider takes it for one of its own: %s",
    async (_, failing) => {
      const core = createCore({ scripts: { a: [serves("one", "two")] } });
      const reading = vi.spyOn(core.world.provider, "stream");
      const fault = new TypeError("a fault");
      const streamed = core.emit(failing(fault));
      await expect(streamed).rejects.toMatchObject({ code: "internal", cause: fault });
      await expect(reading.mock.results[0]!.value).rejects.toBeInstanceOf(Failure);
      expect(core.records).toMatchObject([{ outcome: "internal", failure: { cause: fault } }]);
      expect(outcomes(core.records[0]!.attempts)).toEqual(["a:internal"]);
    },
  );

  it("of a caller who had left before says so", async () => {
    const core = createCore({ scripts: { a: [{ ending: "hang" }] } });
    core.world.clock.after(500, () => core.caller.abort(new Failure("cancelled", "Gone.")));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    expect(core.records).toMatchObject([{ outcome: "cancelled", durationMs: 507 }]);
  });

  it("of a fault of our own says internal and keeps the reason for the log", async () => {
    const fault = new TypeError("a fault");
    const core = createCore({ scripts: { a: [fails(fault as unknown as Failure)] } });
    await expect(core.create()).rejects.toMatchObject({ code: "internal" });
    expect(core.records).toMatchObject([{ outcome: "internal", failure: { cause: fault } }]);
  });
});

describe("what a completion may come to", () => {
  const asked = { maxOutputTokens: 100 };

  it("is reserved before it is sent, and released but for what was used", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await core.create(asked);
    const [demand] = core.demands;
    // "Hello" and the message around it: 2 + 4 tokens estimated, 5 + 16 at most.
    expect(demand).toMatchObject({ completionId: "chatcmpl-1", principal: somebody });
    expect(demand!.tokens).toBeGreaterThan(100);
    expect(demand!.costMicroUsd).toBeGreaterThanOrEqual(100 * 25);
    expect(demand!.lastsMs).toBeGreaterThan(60_000);
    expect(core.releases).toEqual([110]);
    expect(core.told).toEqual([FACTS]);
  });

  it("is held until the last of the models that may answer has settled", async () => {
    const core = createCore({ scripts: { a: [counted], b: [counted] } });
    const [a, b] = core.world.models;
    await core.create(asked);
    core.world.router.replace([a!, { ...b!, timeouts: { ...b!.timeouts, totalMs: 1, settleMs: 50_000 } }]);
    await core.create({ ...asked, fallbackModels: ["b"] });
    const [alone, together] = core.demands.map(({ lastsMs }) => lastsMs);
    expect(together! - alone!).toBe(50_000);
  });

  it("is that of the dearest model that may answer, and unknown when one has no price", async () => {
    const core = createCore({ scripts: { a: [counted], b: [counted] } });
    const [a, b] = core.world.models;
    await core.create(asked);
    core.world.router.replace([a!, { ...b!, price: { ...price, output: 2 * price.output } }]);
    await core.create({ ...asked, fallbackModels: ["b"] });
    core.world.router.replace([a!, { ...b!, price: undefined }]);
    await core.create({ ...asked, fallbackModels: ["b"] });
    const costs = core.demands.map((demand) => demand.costMicroUsd);
    // And some for the longer request.
    expect(costs[1]! - costs[0]! - 100 * 25).toBeLessThan(200);
    expect(costs[1]! - costs[0]!).toBeGreaterThanOrEqual(100 * 25);
    expect(costs[2]).toBeUndefined();
  });

  it("is released and recorded also when logs and metrics fail", async () => {
    const core = createCore({ scripts: { a: [counted] }, recorderFault: new Error("no metrics") });
    await expect(core.create(asked)).rejects.toThrow("no metrics");
    expect(core.releases).toEqual([110]);
    expect(core.entries).toMatchObject([{ outcome: "served", costMicroUsd: COST_MICRO_USD }]);
  });

  it("is refused before any upstream is called, and nothing is held then", async () => {
    const refusal = new Failure("rate_limited", "Too many.");
    const core = createCore({ scripts: { a: [counted] }, refusal });
    await expect(core.create()).rejects.toBe(refusal);
    expect((await core.read()).failure).toBe(refusal);
    expect(core.world.provider.calls).toEqual([]);
    expect([core.entries, core.releases]).toEqual([[], []]);
    expect(core.records).toMatchObject([{ outcome: "rate_limited" }, { outcome: "rate_limited" }]);
  });

  it("is refused while the ledger cannot accept more", async () => {
    const refusal = new Failure("overloaded", "Full.");
    const core = createCore({ scripts: { a: [counted] }, ledger: { refusal } });
    await expect(core.create()).rejects.toBe(refusal);
    expect(core.demands).toEqual([]);
  });

  it("is not asked about for a request that is wrong", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await expect(core.create({ temperature: 9 })).rejects.toMatchObject({ code: "invalid_request" });
    expect([core.demands, core.entries]).toEqual([[], []]);
  });
});

describe("the ledger", () => {
  const nothing = { prompt: 0, cached: 0, completion: 0, reasoning: 0, image: 0 };

  it.each(["create", "read"] as const)("has one entry of a served completion (%s)", async (mode) => {
    const core = createCore({ scripts: { a: [counted] } });
    await core[mode]();
    expect(core.entries).toMatchObject([
      {
        completionId: "chatcmpl-1",
        requestId: "req_1",
        accountId: "acct_1",
        keyId: "key_1",
        outcome: "served",
        tokens: { prompt: 100, cached: 40, completion: 10 },
        costMicroUsd: COST_MICRO_USD,
        partial: false,
        estimated: false,
      },
    ]);
    const [{ startedAtMs, endedAtMs }] = core.entries as [LedgerEntry];
    expect(endedAtMs - startedAtMs).toBe(300);
  });

  it("is written before the caller gets the end", async () => {
    const written = Promise.withResolvers<void>();
    const core = createCore({ scripts: { a: [counted] }, ledger: { durable: () => written.promise } });
    let ended = false;
    const streamed = Array.fromAsync(core.stream()).then(() => (ended = true));
    await core.world.clock.pass(10_000);
    expect([ended, core.releases.length]).toEqual([false, 1]);
    written.resolve();
    await streamed;
    expect(core.entries).toHaveLength(1);
  });

  it.each<[string, Script, Partial<LedgerEntry>]>([
    [
      "nothing for what no provider took",
      fails(new Failure("upstream_unavailable", "Down.", { transient: false, refused: true })),
      { outcome: "upstream_unavailable", tokens: nothing, costMicroUsd: 0, partial: false, estimated: false },
    ],
    [
      "an estimate of an answer that broke off",
      fails(new Failure("upstream_protocol", "Cut."), "12345678"),
      { outcome: "upstream_protocol", servedModel: "a", partial: true, estimated: true },
    ],
    [
      "an estimate of an answer whose provider did not count",
      serves("12345678"),
      { outcome: "served", partial: false, estimated: true },
    ],
  ])("has %s", async (_, script, expected) => {
    const core = createCore({ scripts: { a: [script] } });
    await core.read();
    expect(core.entries).toMatchObject([expected]);
    const [{ tokens, estimated, costMicroUsd }] = core.entries as [LedgerEntry];
    if (!estimated) return;
    expect(tokens.completion).toBe(2);
    expect(tokens.prompt).toBeGreaterThan(0);
    expect(costMicroUsd).toBe(tokens.prompt * 5 + 2 * 25);
    expect(core.releases).toEqual([tokens.prompt + 2]);
  });

  it.each(["create", "read"] as const)("never has an estimate of more than was held for it (%s)", async (mode) => {
    const core = createCore({ scripts: { a: [serves("words that are longer than ", "four characters are many")] } });
    await core[mode]({ maxOutputTokens: 3 });
    const [{ tokens, estimated, costMicroUsd }] = core.entries as [LedgerEntry];
    expect([tokens.completion, estimated]).toEqual([3, true]);
    expect(costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it("notes a completion before its provider is asked, at what its budgets hold", async () => {
    const principal = { ...somebody, limits: { ...somebody.limits, monthlyBudgetMicroUsd: 1_000_000 } };
    const core = createCore({ scripts: { a: [counted] }, principal });
    await core.create();
    const { completionId, requestId } = core.entries[0]!;
    expect(core.begun).toMatchObject([
      { completionId, requestId, outcome: "process_lost", servedModel: undefined, estimated: true },
    ]);
    expect(core.begun[0]!.costMicroUsd).toBe(core.demands[0]!.costMicroUsd);
  });

  it("notes a completion without a budget at what its first attempt can cost until its deadline", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    await core.create({ maxOutputTokens: 3 });
    const [{ tokens, costMicroUsd }] = core.begun as [LedgerEntry];
    expect(tokens.completion).toBe(3);
    expect(costMicroUsd).toBe(tokens.prompt * 5 + 3 * 25);
    expect(costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it("notes as the account's own what a model with its own credential can cost", async () => {
    const note = async (facts: NonNullable<WorldOptions["facts"]>): Promise<LedgerEntry> => {
      const core = createCore({ scripts: { a: [counted] }, facts });
      await core.create();
      return core.begun[0]!;
    };
    const own = await note({ price, ownCredential: "acct_1" });
    expect(own.costMicroUsd).toBeGreaterThan(0);
    expect(own.ownCostMicroUsd).toBe(own.costMicroUsd);
    expect((await note({ price })).ownCostMicroUsd).toBeUndefined();
  });

  it.each([
    ["half a second", undefined, 500],
    ["three seconds, under a budget,", 5_000_000, 3_000],
  ])("does not wait longer than %s for the note", async (_, monthlyBudgetMicroUsd, waitedMs) => {
    const core = createCore({
      scripts: { a: [{ ...counted, pauseMs: 0 }] },
      ledger: { noted: () => NEVER },
      principal: { ...somebody, limits: { ...somebody.limits, monthlyBudgetMicroUsd } },
    });
    const beganMs = core.world.clock.monotonic();
    await core.create();
    expect(core.world.clock.monotonic() - beganMs).toBe(waitedMs);
    expect(core.entries).toMatchObject([{ outcome: "served" }]);
    expect(core.world.clock.pending).toBe(0);
  });

  it("does not wait for the note of a caller who has left, and asks no provider for it", async () => {
    const core = createCore({ scripts: { a: [counted] }, ledger: { noted: () => NEVER } });
    const beganMs = core.world.clock.monotonic();
    core.world.clock.after(100, () => core.caller.abort(new Failure("cancelled", "Left.")));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    expect(core.world.clock.monotonic() - beganMs).toBe(100);
    expect(core.world.provider.calls).toEqual([]);
    expect(core.entries).toMatchObject([{ outcome: "cancelled", costMicroUsd: 0 }]);
  });

  it("has the provider's own count of an answer that broke off after it", async () => {
    const cut: Script = { batches: [[say("hi"), usageChunk(usage)]], ending: new Failure("upstream_protocol", "Cut.") };
    const core = createCore({ scripts: { a: [cut] } });
    await core.read();
    expect(core.entries).toMatchObject([{ partial: true, estimated: false, costMicroUsd: COST_MICRO_USD }]);
  });

  it.each([
    ["only zeros", { inputTokens: 0, outputTokens: 0 }],
    ["no prompt", { inputTokens: 0, outputTokens: 10 }],
    ["no answer, of which there was some", { inputTokens: 100, outputTokens: 0 }],
  ])("has an estimate where the provider's count has %s", async (_, counts) => {
    const zeros = usageChunk({ ...usage, ...counts });
    const script: Script = {
      batches: [[say("hi there, you")], [finishChunk(0, { reason: FinishReason.STOP, native: "end_turn" }), zeros]],
      ending: "end",
    };
    for (const how of ["create", "read"] as const) {
      const core = createCore({ scripts: { a: [script] } });
      await core[how]();
      const [{ tokens, costMicroUsd, estimated }] = core.entries as [LedgerEntry];
      expect([tokens.prompt > 0, tokens.completion, estimated]).toEqual([true, 4, true]);
      expect(costMicroUsd).toBe(tokens.prompt * 5 + 4 * 25);
      expect(core.records).toMatchObject([{ usage: undefined, costMicroUsd: undefined }]);
    }
  });

  it("has the count of a prompt that was blocked, which is explained in the gateway's words", async () => {
    const blocked: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.text({ case: "refusal", value: "The provider blocked the prompt." }, blocked);
    writer.finish({ reason: FinishReason.CONTENT_FILTER, native: "SAFETY" }, blocked);
    blocked.push(usageChunk({ ...usage, cachedInputTokens: 0, outputTokens: 0 }));
    for (const how of ["create", "read"] as const) {
      const core = createCore({
        scripts: { a: [{ batches: [blocked], ending: "end" }] },
        translations: { a: { streamed: true } },
      });
      await core[how]();
      expect(core.entries).toMatchObject([{ estimated: false, costMicroUsd: 500 }]);
    }
  });

  it("has the count of a prompt whose answer was empty", async () => {
    const empty = usageChunk({ ...usage, cachedInputTokens: 0, outputTokens: 0 });
    const core = createCore({
      scripts: {
        a: [
          {
            batches: [[finishChunk(0, { reason: FinishReason.CONTENT_FILTER, native: "SAFETY" }), empty]],
            ending: "end",
          },
        ],
      },
    });
    await core.create();
    expect(core.entries).toMatchObject([{ estimated: false, costMicroUsd: 500 }]);
  });

  it.each(["cancelled", "unauthenticated", "permission_denied", "stopped"] as const)(
    "has the prompt, and all that can have been generated, when the call ended as %s while a provider was at work",
    async (outcome) => {
      const core = createCore({ scripts: { a: [{ ending: "hang" }] } });
      core.world.clock.after(500, () => core.caller.abort(new Failure(outcome, "Gone.")));
      await expect(core.create()).rejects.toMatchObject({ code: outcome });
      expect(core.entries).toMatchObject([{ outcome, partial: false, estimated: true, servedModel: undefined }]);
      expect(core.entries[0]!.tokens).toMatchObject({ completion: 500 });
      expect(core.entries[0]!.costMicroUsd).toBeGreaterThan(0);
    },
  );

  it("has one entry of a caller who took only the beginning of a stream", async () => {
    const core = createCore({ scripts: { a: [serves("one", "two")] } });
    for await (const _ of core.stream()) break;
    expect(core.entries).toMatchObject([{ outcome: "cancelled", servedModel: "a", partial: true, estimated: true }]);
  });
});

describe("a picture that the provider counts only in the sum of the answer", () => {
  it.each([
    ["as an estimate", undefined, 1_500],
    ["as the largest of its model", 1_900, 1_900],
    ["as the whole answer at most", 20_000, 2_000],
  ])("is booked %s", async (_, pictureTokens, image) => {
    const picture = create(ImageSchema, { source: { case: "data", value: new Uint8Array(8) }, mediaType: "image/png" });
    const drawn: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.whole(toPart({ case: "image", value: picture }), drawn);
    writer.finish({ reason: FinishReason.STOP, native: "stop" }, drawn);
    for (const how of ["create", "read"] as const) {
      const count = usageChunk(create(UsageSchema, { inputTokens: 100, outputTokens: 2_000, totalTokens: 2_100 }));
      const core = createCore({
        scripts: { a: [{ batches: [[...drawn, count]], ending: "end" }] },
        translations: {
          a: { streamed: true, sent: { ...PLAINLY_SENT, textBytes: 100, maxTokens: 2_000, pictureTokens } },
        },
        facts: {
          price: { ...price, imageOutput: 40_000_000 },
          upstream: { outputModalities: new Set([Modality.TEXT, Modality.IMAGE]) },
        },
      });
      await core[how]({ modalities: [Modality.TEXT, Modality.IMAGE] });
      const costMicroUsd = 100 * 5 + image * 40 + (2_000 - image) * 25;
      expect(core.entries).toMatchObject([{ estimated: true, costMicroUsd, tokens: { completion: 2_000, image } }]);
    }
  });
});

describe("speech that the provider does not count apart", () => {
  const spoken = (outputTokens: number, ...more: readonly CompletionChunk[]): CompletionChunk[] => {
    const chunks: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.audio(create(AudioSchema, { source: { case: "data", value: new Uint8Array(8) } }), chunks);
    writer.finish({ reason: FinishReason.STOP, native: "stop" }, chunks);
    return [
      ...chunks,
      ...(outputTokens < 0 ? [] : [usageChunk(create(UsageSchema, { inputTokens: 100, outputTokens }))]),
      ...more,
    ];
  };
  const facts = {
    price: { ...price, audioOutput: 80_000_000 },
    upstream: { outputModalities: new Set([Modality.TEXT, Modality.AUDIO]) },
  };
  const principal = { ...somebody, limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 10_000_000 } };

  it.each([
    ["as speech where it is counted in the sum of the answer", 2_000, 2_000],
    ["by its time under a budget where it is counted as nothing", 0, 1_000],
    ["by its time under a budget where nothing is counted", -1, 1_000],
  ])("is booked %s", async (_, outputTokens, tokens) => {
    for (const how of ["create", "read"] as const) {
      const core = createCore({
        scripts: { a: [{ batches: [spoken(outputTokens)], ending: "end", pauseMs: 500 }] },
        translations: { a: { streamed: true, sent: { ...PLAINLY_SENT, textBytes: 100, maxTokens: 2_000 } } },
        facts,
        principal,
      });
      await core[how]({ modalities: [Modality.TEXT, Modality.AUDIO], audioOptions: { format: "wav", voice: "a" } });
      const [{ tokens: booked, costMicroUsd, estimated }] = core.entries as [LedgerEntry];
      expect(estimated).toBe(true);
      expect(booked.completion).toBeGreaterThanOrEqual(tokens);
      expect(booked.completion).toBeLessThan(tokens + 50);
      expect(costMicroUsd).toBeGreaterThanOrEqual(100 * 5 + tokens * 80);
    }
  });

  it("is booked by its count where there is one", async () => {
    const counts = usageChunk(create(UsageSchema, { inputTokens: 100, outputTokens: 2_000, audioOutputTokens: 500 }));
    const core = createCore({
      scripts: { a: [{ batches: [spoken(-1, counts)], ending: "end" }] },
      facts,
    });
    await core.read({ modalities: [Modality.TEXT, Modality.AUDIO], audioOptions: { format: "wav", voice: "a" } });
    expect(core.entries).toMatchObject([{ estimated: false, costMicroUsd: 100 * 5 + 500 * 80 + 1_500 * 25 }]);
  });
});

describe("an answer whose provider says what it costs", () => {
  it.each([
    ["at no less than that", 2_000, true, 2_000],
    ["at no less than its count", 1, true, COST_MICRO_USD],
    ["by its count where the provider is not known to do so", 2_000, false, COST_MICRO_USD],
  ])("is booked %s", async (_, statedMicroUsd, statesCost, costMicroUsd) => {
    for (const how of ["create", "read"] as const) {
      const finish = finishChunk(0, { reason: FinishReason.STOP, native: "end_turn" });
      const batches = [[say("hi")], [finish, usageChunk({ ...usage, statedMicroUsd } as CostedUsage)]];
      const core = createCore({ scripts: { a: [{ batches, ending: "end" }] }, facts: { statesCost } });
      await core[how]();
      expect(core.entries).toMatchObject([{ estimated: false, costMicroUsd, tokens: { prompt: 100, completion: 10 } }]);
      expect(core.records).toMatchObject([{ costMicroUsd }]);
    }
  });
});

describe("a picture without the provider's count", () => {
  const timeouts = { firstContentMs: 60_000, idleMs: 120_000, totalMs: 900_000, settleMs: 2_000 };
  const data = Buffer.from("iVBORw==", "base64");
  const partial = (index: number): CompletionChunk =>
    toChunk({
      case: "partialImage",
      value: create(PartialImageSchema, { index, mediaType: "image/png", data }),
    });
  const picture = (partIndex: number): CompletionChunk =>
    startChunk(
      create(PartStartSchema, {
        partIndex,
        part: toPart({ case: "image", value: create(ImageSchema, { source: { case: "data", value: data } }) }),
      }),
    );
  const stop = finishChunk(0, { reason: FinishReason.STOP, native: "stop" });
  /** Tokens of one picture, by estimate. */
  const PICTURE = 1_500;

  it.each([
    ["that came in the making too", [partial(0), partial(1), picture(0)], 1],
    ["that came only in the making", [partial(0), partial(1)], 1],
    ["of two, of which one came", [partial(0), picture(0), partial(0)], 2],
    ["of two, without any in the making", [picture(0), picture(1)], 2],
  ])("counts once: %s", async (_, chunks, count) => {
    const core = createCore({
      scripts: { a: [{ batches: [...chunks.map((each) => [each]), [stop]], ending: "end" }] },
    });
    await core.read();
    expect(core.entries).toMatchObject([{ outcome: "served", estimated: true, tokens: { image: count * PICTURE } }]);
  });

  it("counts once that came after its caller had left", async () => {
    const script: Script = { batches: [[partial(0)], [picture(0)], [stop]], ending: "end", pauseMs: 100 };
    const core = createCore({ scripts: { a: [script] }, facts: { timeouts } });
    core.world.clock.after(150, () => core.caller.abort(new Failure("cancelled", "Gone.")));
    await core.read();
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    expect(core.entries).toMatchObject([{ outcome: "cancelled", estimated: true, tokens: { completion: PICTURE } }]);
  });
});

describe("an attempt that ended without the provider's count", () => {
  const timeouts = { firstContentMs: 60_000, idleMs: 120_000, totalMs: 900_000, settleMs: 2_000 };
  const gone = new Failure("cancelled", "Gone.");
  /** The provider answers after this time, and counts 100 and 10 tokens. */
  const answersAfter = (ms: number): Script => ({ ...counted, pauseMs: ms / 3 });

  function createLeaving(script: Script, afterMs = 500, fallback?: Script) {
    const scripts = { a: [script], ...(fallback && { b: [fallback] }) };
    const core = createCore({ scripts, facts: { timeouts } });
    core.world.clock.after(afterMs, () => core.caller.abort(gone));
    return core;
  }

  it("has the count that comes in the time to settle, for which its caller does not wait", async () => {
    const core = createLeaving(answersAfter(2_400));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    expect([core.entries, core.releases, core.records]).toEqual([[], [], []]);
    expect(core.settling.size).toBe(1);
    await core.world.clock.pass(1_950);
    await core.settling.idle();
    expect(core.entries).toMatchObject([
      {
        outcome: "cancelled",
        servedModel: undefined,
        estimated: false,
        tokens: { prompt: 100, completion: 10 },
        costMicroUsd: COST_MICRO_USD,
        durationMs: 507,
      },
    ]);
    expect([core.releases, core.records.length]).toEqual([[110], 1]);
    expect(core.world.provider.calls).toMatchObject([{ state: "ended" }]);
  });

  it("counts what a stream says after its caller has left", async () => {
    const core = createLeaving(answersAfter(1_200));
    const { batches, failure } = await core.read();
    expect([said(batches), failure?.code]).toEqual(["start hi", "cancelled"]);
    await core.world.clock.pass(1_000);
    await core.settling.idle();
    expect(core.entries).toMatchObject([
      { outcome: "cancelled", servedModel: "a", partial: true, estimated: false, costMicroUsd: COST_MICRO_USD },
    ]);
  });

  it.each(["create", "read"] as const)(
    "has all that the model can have generated until its connection was closed, when no count comes (%s)",
    async (mode) => {
      const core = createLeaving(answersAfter(60_000));
      await core[mode]().catch(() => undefined);
      await core.world.clock.pass(1_999);
      expect([core.entries.length, core.world.provider.calls[0]!.state]).toEqual([0, "open"]);
      await core.world.clock.pass(1);
      await core.settling.idle();
      expect(core.world.provider.calls).toMatchObject([{ state: "aborted" }]);
      expect(core.entries).toMatchObject([{ outcome: "cancelled", estimated: true, tokens: { completion: 2_500 } }]);
    },
  );

  it.each([
    ["all that it may have generated, a whole answer", "create", {}, false, 8_000],
    [
      "all that it may have generated, a stream of a provider that generates on",
      "read",
      { billsClosedStreams: true },
      false,
      8_000,
    ],
    ["what its time allows, a stream", "read", {}, false, 2_500],
    ["what its time allows, a whole answer that its provider broke off", "create", {}, true, 700],
  ] as const)("is booked under a budget with %s", async (_, mode, facts, breaksOff, completion) => {
    const script: Script = breaksOff
      ? { ...fails(new Failure("upstream_protocol", "Broken.", { transient: false })), pauseMs: 700 }
      : { batches: mode === "read" ? [[say("hi")]] : [], ending: "hang" };
    const principal = { ...somebody, limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000_000 } };
    const core = createCore({ scripts: { a: [script] }, facts: { timeouts, ...facts }, principal });
    if (!breaksOff) core.world.clock.after(500, () => core.caller.abort(gone));
    await core[mode]({ maxOutputTokens: 8_000 }).catch(() => undefined);
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    expect(core.entries[0]!.tokens.completion).toBe(completion);
  });

  it("is booked under a budget with what its time allows when a filter cuts off the count with the answer", async () => {
    const principal = { ...somebody, limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000_000 } };
    const end = (reason: FinishReason): Script => ({
      batches: [[say("hi")], [finishChunk(0, { reason, native: "x" })]],
      ending: "end",
      pauseMs: 500,
    });
    for (const [reason, completion] of [
      [FinishReason.CONTENT_FILTER, 1_507],
      [FinishReason.STOP, 1],
    ] as const) {
      const core = createCore({ scripts: { a: [end(reason)] }, facts: { timeouts }, principal });
      await core.read({ maxOutputTokens: 8_000 });
      expect(core.entries).toMatchObject([{ outcome: "served", estimated: true, tokens: { completion } }]);
    }
  });

  it("is booked by no more than was reserved for it, and each of its choices counts", async () => {
    for (const [asked, completion] of [
      [{ maxOutputTokens: 70 }, 70],
      [{ maxOutputTokens: 2_000, choiceCount: 3 }, 3 * 2_000],
      [{ maxOutputTokens: 4_000, choiceCount: 3 }, 3 * 2_500],
    ] as const) {
      const core = createLeaving({ ending: "hang" });
      await expect(core.create(asked)).rejects.toMatchObject({ code: "cancelled" });
      await core.world.clock.pass(2_000);
      await core.settling.idle();
      const [entry] = core.entries as [LedgerEntry];
      expect(entry.tokens.completion).toBe(completion);
      expect(entry.costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
    }
  });

  it("is booked with all tokens of a predicted answer, which the provider rejects in no time", async () => {
    const core = createLeaving({ ending: "hang" });
    const asked = { maxOutputTokens: 4_000, prediction: "x".repeat(9_000) };
    await expect(core.create(asked)).rejects.toMatchObject({ code: "cancelled" });
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    const [entry] = core.entries as [LedgerEntry];
    expect(entry.tokens.completion).toBe(2_500 + 9_000);
    expect(entry.costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it("is booked by the whole context window when a document is in its prompt", async () => {
    const parts = [{ kind: { case: "file" as const, value: { source: { case: "id" as const, value: "file-1" } } } }];
    const core = createLeaving({ ending: "hang" });
    await expect(core.create({ messages: [message(Role.USER, "", { parts })] })).rejects.toMatchObject({
      code: "cancelled",
    });
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    const [entry] = core.entries as [LedgerEntry];
    expect(entry.tokens.prompt).toBe(128_000);
    expect(entry.costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it("is booked by no less than what was received", async () => {
    const text = "слово ".repeat(500);
    const core = createLeaving({ batches: [[say(text)]], ending: "hang" }, 1);
    await core.read();
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    expect(core.entries[0]!.tokens.completion).toBeGreaterThanOrEqual(2_500);
  });

  it.each([
    ["an estimate of its prompt without a budget", undefined, [1_000, 1_100]],
    ["the upper bound of its prompt under a budget", 5_000_000, [4_000, 5_000]],
  ] as const)("is booked by %s", async (_, monthlyBudgetMicroUsd, [least, most]) => {
    const limits = { ...somebody.limits, monthlyBudgetMicroUsd };
    const core = createCore({
      scripts: { a: [{ ending: "hang" }] },
      facts: { timeouts },
      principal: { ...somebody, limits },
    });
    core.world.clock.after(500, () => core.caller.abort(gone));
    // Tokenizers have two tokens for what is estimated as a half.
    const messages = [message(Role.USER, "}{".repeat(2_000))];
    await expect(core.create({ messages })).rejects.toMatchObject({ code: "cancelled" });
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    const [{ tokens, costMicroUsd }] = core.entries as [LedgerEntry];
    expect(tokens.prompt).toBeGreaterThanOrEqual(least);
    expect(tokens.prompt).toBeLessThanOrEqual(most);
    expect(costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it.each([
    ["under a budget by all that its provider may generate when it is not streamed", "create", 5_000_000, 8_000],
    ["under a budget by the time until its end when it is streamed", "read", 5_000_000, 2_500],
    ["without a budget by the time until its end", "create", undefined, 2_500],
  ] as const)("is booked %s", async (_, how, monthlyBudgetMicroUsd, completion) => {
    const core = createCore({
      scripts: { a: [{ ending: "hang" }] },
      facts: { timeouts },
      translations: { a: { streamed: how === "read" } },
      principal: { ...somebody, limits: { ...somebody.limits, monthlyBudgetMicroUsd } },
    });
    core.world.clock.after(500, () => core.caller.abort(gone));
    await core[how]({ maxOutputTokens: 8_000 }).catch(() => undefined);
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    expect(core.entries).toMatchObject([{ estimated: true, tokens: { completion } }]);
    expect(core.entries[0]!.costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  /** The first content of an answer with two pictures. */
  const drawing = [0, 1].map((partIndex) => {
    const image = create(ImageSchema, { mediaType: "image/png", source: { case: "data", value: new Uint8Array(8) } });
    return startChunk({
      $typeName: "parley.v1.PartStart",
      choiceIndex: 0,
      partIndex,
      part: toPart({ case: "image", value: image }),
    });
  });
  const finished = finishChunk(0, { reason: FinishReason.STOP, native: "stop" });
  it.each([
    ["an estimate of each", undefined, 2 * 1_500],
    ["the largest of each under a budget", 5_000_000, 2 * 20_000],
  ])("is booked by no less than its pictures, which no limit of text cuts: %s", async (_, budget, tokens) => {
    const principal = { ...somebody, limits: { ...somebody.limits, monthlyBudgetMicroUsd: budget } };
    const sent = { ...PLAINLY_SENT, textBytes: 100, maxTokens: 16, pictureTokens: 20_000 };
    for (const ending of ["hang", "end"] as const) {
      const batches = ending === "end" ? [[...drawing, finished]] : [drawing];
      const core = createCore({
        scripts: { a: [{ batches, ending }] },
        translations: { a: { sent } },
        facts: { timeouts, price: { ...price, imageOutput: 40_000_000 } },
        principal,
      });
      core.world.clock.after(500, () => core.caller.abort(gone));
      await core.read({ maxOutputTokens: 16 });
      await core.world.clock.pass(2_000);
      await core.settling.idle();
      const [entry] = core.entries as [LedgerEntry];
      expect([entry.estimated, entry.tokens.completion]).toEqual([true, tokens]);
      expect(entry.costMicroUsd).toBe(entry.tokens.prompt * 5 + tokens * 40);
    }
  });

  it("costs nothing when the provider turns out to have refused it", async () => {
    const refused = fails(new Failure("upstream_rate_limited", "Later."));
    const core = createLeaving({ ...refused, pauseMs: 1_000 });
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    expect(core.entries).toMatchObject([{ outcome: "cancelled", costMicroUsd: 0, estimated: false }]);
  });

  it("is settled at once when the process must end", async () => {
    const core = createLeaving({ ending: "hang" });
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    core.settling.cut();
    await core.settling.idle();
    expect(core.entries).toMatchObject([{ estimated: true, tokens: { completion: 500 } }]);
    expect(core.world.clock.pending).toBe(0);
  });

  it("is billed as the dearest kind of token that it may have generated", async () => {
    const core = createLeaving({ ending: "hang" });
    const [model] = core.world.models as [Model];
    core.world.router.replace([{ ...model, price: { ...price, imageOutput: 120_000_000 } }]);
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    core.settling.cut();
    await core.settling.idle();
    const [{ tokens, costMicroUsd }] = core.entries as [LedgerEntry];
    expect(costMicroUsd).toBe(tokens.prompt * 5 + tokens.completion * 120);
  });

  it("is booked without fees for more uses of tools than services make", async () => {
    const sent = { ...PLAINLY_SENT, textBytes: 100, maxTokens: 16, uses: { webSearches: 2 ** 31 - 1 } };
    const fees = { ...price.fees, webSearches: 10_000_000_000 };
    const core = createCore({
      scripts: { a: [{ ending: "hang" }] },
      translations: { a: { sent } },
      facts: { timeouts, price: { ...price, fees } },
    });
    core.world.clock.after(500, () => core.caller.abort(gone));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    core.settling.cut();
    await core.settling.idle();
    const [{ tokens, costMicroUsd }] = core.entries as [LedgerEntry];
    expect(costMicroUsd).toBe(tokens.prompt * 5 + tokens.completion * 25);
  });

  it.each([
    ["the assumed context window", undefined, 128_000],
    ["2,000,000 tokens under a budget", 1_000_000_000, 2_000_000],
  ])("is booked with a prompt that searches may have made of any length: %s", async (_, budget, tokens) => {
    const sent = { ...PLAINLY_SENT, textBytes: 100, maxTokens: 16, unbounded: "search" as const };
    const core = createCore({
      scripts: { a: [{ ending: "hang" }] },
      translations: { a: { sent } },
      facts: { timeouts, isWindowAssumed: true },
      principal: { ...somebody, limits: { ...somebody.limits, monthlyBudgetMicroUsd: budget } },
    });
    core.world.clock.after(500, () => core.caller.abort(gone));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    core.settling.cut();
    await core.settling.idle();
    expect(core.entries).toMatchObject([{ tokens: { prompt: tokens } }]);
  });

  it("costs 100,000 USD at most in the ledger, whatever the provider counts", async () => {
    const huge = usageChunk({ ...usage, outputTokens: 2 ** 31 - 1 });
    const finish = finishChunk(0, { reason: FinishReason.STOP, native: "end_turn" });
    const core = createCore({
      scripts: { a: [{ batches: [[say("hi")], [finish, huge]], ending: "end" }] },
      facts: { price: { ...price, output: 1_000_000_000 } },
    });
    await core.create();
    expect(core.entries).toMatchObject([{ costMicroUsd: 100_000_000_000 }]);
  });

  it("is billed beside a second one that was faster, and money is held for both before that starts", async () => {
    const hedge = { after: { ms: 1_000 }, budget: 1 };
    const core = createCore({ scripts: { a: [{ ending: "hang" }, counted] }, facts: { timeouts, hedge } });
    const { failure, batches } = await core.read({ maxOutputTokens: 5_000 });
    expect([failure, said(batches)]).toEqual([undefined, "start hi  there choiceFinish usage report"]);
    // The first was given 1.1 s, in which it can have made 1,100 tokens.
    const [{ tokens, costMicroUsd, estimated, outcome }] = core.entries as [LedgerEntry];
    expect([outcome, tokens.completion, estimated]).toEqual(["served", 1_110, true]);
    expect(costMicroUsd).toBe(COST_MICRO_USD + (tokens.prompt - 100) * 5 + 1_100 * 25);
    expect(eventOf(batches, "report")).toMatchObject({ costMicroUsd: BigInt(costMicroUsd) });
    expect(core.extensions).toEqual([core.demands[0]!.costMicroUsd]);
    expect(core.releases).toEqual([tokens.prompt + tokens.completion]);
  });

  it("is billed beside the other one, when the caller leaves both", async () => {
    const hedge = { after: { ms: 100 }, budget: 1 };
    const scripts = { a: [answersAfter(1_200), { ending: "hang" } as const] };
    const core = createCore({ scripts, facts: { timeouts, hedge } });
    core.world.clock.after(300, () => core.caller.abort(gone));
    await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
    await core.world.clock.pass(2_000);
    await core.settling.idle();
    // The second one counts nothing until its connection is closed, 2.2 s after its start.
    expect(core.entries).toMatchObject([{ outcome: "cancelled", estimated: true, tokens: { completion: 10 + 2_200 } }]);
  });

  it("is billed beside the one that answered after it, and money is reserved for both", async () => {
    const core = createCore({ scripts: { a: [{ ending: "hang" }], b: [counted] }, facts: { timeouts } });
    const { report, usage: told } = await core.create({ fallbackModels: ["b"], maxOutputTokens: 1_000 });
    // The first was given 180 s in vain, in which it can have made all the tokens that it was allowed to.
    const [{ tokens, costMicroUsd, estimated }] = core.entries as [LedgerEntry];
    expect([tokens.completion, estimated]).toEqual([1_010, true]);
    expect(costMicroUsd).toBe(COST_MICRO_USD + (tokens.prompt - 100) * 5 + 1_000 * 25);
    expect([told?.outputTokens, report?.costMicroUsd]).toEqual([10, BigInt(costMicroUsd)]);
    expect(core.extensions).toHaveLength(1);
    expect(costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd! + core.extensions[0]!);
    expect(core.releases).toEqual([tokens.prompt + tokens.completion]);
  });

  it("is billed by the count with which it failed", async () => {
    const known = create(UsageSchema, { inputTokens: 40, outputTokens: 2, totalTokens: 42 });
    const failing = fails(new Failure("upstream_unavailable", "Stopped.", { transient: false, usage: known }));
    const core = createCore({ scripts: { a: [failing], b: [counted] } });
    await core.create({ fallbackModels: ["b"] });
    expect(core.entries).toMatchObject([{ estimated: false, tokens: { prompt: 140, completion: 12 } }]);
  });

  it("is the last one when there is no money for another", async () => {
    const core = createCore({ scripts: { a: [{ ending: "hang" }], b: [counted] }, facts: { timeouts } });
    core.refuseExtensions(new Failure("budget_spent", "The budget is spent."));
    await expect(core.create({ fallbackModels: ["b"] })).rejects.toMatchObject({ code: "upstream_timeout" });
    const [{ attempts, costMicroUsd }] = core.entries as [LedgerEntry];
    expect(outcomes(attempts)).toEqual(["a:upstream_timeout", "b:skipped"]);
    expect(attempts[1]!.reason).toBe("The budget is spent.");
    expect(costMicroUsd).toBeLessThanOrEqual(core.demands[0]!.costMicroUsd!);
  });

  it("is the last one under a budget when the tools of the next may cost any amount", async () => {
    const sent = { ...PLAINLY_SENT, textBytes: 10, maxTokens: 10, uses: { webSearches: Infinity } };
    const core = createCore({
      scripts: { a: [{ ending: "hang" }], b: [counted] },
      facts: { timeouts },
      translations: { b: { sent } },
      principal: { ...somebody, limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000_000 } },
    });
    await expect(core.create({ fallbackModels: ["b"] })).rejects.toMatchObject({ code: "upstream_timeout" });
    const [{ attempts }] = core.entries as [LedgerEntry];
    expect(outcomes(attempts)).toEqual(["a:upstream_timeout", "b:skipped"]);
    expect(attempts[1]!.reason).toContain("the price of web searches of b is not known here");
  });

  it("is billed for all uses of tools that it allowed", async () => {
    const sent = { ...PLAINLY_SENT, textBytes: 10, maxTokens: 10, uses: { webSearches: 3 } };
    const fees = { ...NO_FEES, requests: 1_000_000, webSearches: 10_000_000_000 };
    const core = createCore({
      scripts: { a: [{ ending: "hang" }] },
      facts: { timeouts, price: { ...price, fees } },
      translations: { a: { sent } },
    });
    await expect(core.create()).rejects.toMatchObject({ code: "upstream_timeout" });
    const [{ tokens, costMicroUsd }] = core.entries as [LedgerEntry];
    expect(costMicroUsd).toBe(tokens.prompt * 5 + tokens.completion * 25 + 30_001);
    expect(core.demands[0]!.costMicroUsd).toBeGreaterThanOrEqual(costMicroUsd);
  });

  it("needs no more money when it was refused", async () => {
    const refused = fails(new Failure("upstream_rejected", "No."));
    const core = createCore({ scripts: { a: [refused], b: [counted] }, facts: { timeouts } });
    await core.create({ fallbackModels: ["b"] });
    expect(core.extensions).toEqual([]);
    expect(core.entries).toMatchObject([{ estimated: false, costMicroUsd: COST_MICRO_USD }]);
  });
});
