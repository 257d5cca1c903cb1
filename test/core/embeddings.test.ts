import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingInputSchema, EmbeddingRequestSchema, EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { AttemptOutcome, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import type { Call } from "../../src/core/call.ts";
import { createCompletions } from "../../src/core/completions.ts";
import { createEmbedder } from "../../src/core/embeddings.ts";
import { Failure } from "../../src/core/failure.ts";
import type { CompletionRecord } from "../../src/core/ledger.ts";
import type { Principal } from "../../src/core/principal.ts";
import { omission } from "../../src/core/provider-options.ts";
import { permit } from "../../src/access/principal.ts";
import { createWorld, outcomes, type WorldOptions } from "../router/routed.ts";
import { callOf, memoryLedger, notingLimiter, somebody, seal } from "../support/core-ports.ts";
import { toPrice } from "../support/prices.ts";
import type { Script } from "../support/scripted-provider.ts";
import { requestTo } from "./requests.ts";
import { WireType } from "@bufbuild/protobuf/wire";
import { toInputs } from "../support/embedding-inputs.ts";

type Asked = MessageInitShape<typeof EmbeddingRequestSchema>;

const usage = create(UsageSchema, { inputTokens: 100, totalTokens: 100 });
const counted: Script = { ending: "end", usage, pauseMs: 100 };
const uncounted: Script = { ending: "end" };
const price = toPrice({ input: 20_000, output: 0, cachedInput: 20_000, imageOutput: 0 });
const INPUTS = ["the cat sat", "on the mat"];
/** Estimated tokens of INPUTS: a quarter of the characters, rounded up for each. */
const ESTIMATE = 3 + 3;
/** Bytes of INPUTS, and four for each. */
const BOUND = 11 + 10 + 2 * 4;

interface CoreOptions extends WorldOptions {
  readonly refusal?: Failure;
  readonly ledger?: Parameters<typeof memoryLedger>[0];
  readonly principal?: Principal;
}

/** Core over scripted models of embeddings. */
function createCore(options: CoreOptions) {
  const { limiter, demands, releases, extensions, refused } = notingLimiter(options.refusal);
  const { ledger, entries } = memoryLedger({ ...options.ledger });
  const { upstream } = options.facts ?? {};
  const facts = {
    price,
    ...options.facts,
    upstream: { maxOutputTokens: 0, defaultMaxTokens: 0, outputModalities: new Set([Modality.EMBEDDING]), ...upstream },
  };
  const world = createWorld({ ...options, facts });
  const records: CompletionRecord[] = [];
  const ports = {
    router: world.router,
    clock: world.clock,
    limiter,
    ledger,
    recorder: { record: (entry: CompletionRecord) => void records.push(entry) },
    permit,
  };
  const completions = createCompletions({ ...ports, seal });
  const { settling } = completions;
  const embedder = createEmbedder({ ...ports, settling });
  const caller = new AbortController();
  const call = callOf({
    principal: options.principal ?? somebody,
    completionId: "embd-1",
    signal: caller.signal,
    arrivedMs: world.clock.monotonic() - 7,
  });
  return {
    world,
    completions,
    settling,
    demands,
    releases,
    extensions,
    refused,
    entries,
    records,
    caller,
    call,
    create: (asked: Asked = {}, more: Partial<Call> = {}) =>
      world.clock.drive(
        embedder.create(create(EmbeddingRequestSchema, { model: "a", inputs: toInputs(INPUTS), ...asked }), {
          ...call,
          ...more,
        }),
      ),
  };
}

describe("embeddings", () => {
  it("have the call's ID, the model, a vector for each input, the provider's count and the cost", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    expect(await core.create({ task: EmbeddingTask.QUERY })).toMatchObject({
      $typeName: "parley.v1.Embeddings",
      id: "embd-1",
      model: "a",
      embeddings: [{ values: [1, 2] }, { values: [1, 2] }],
      usage: { inputTokens: 100 },
      report: {
        attempts: [{ model: "a", outcome: AttemptOutcome.SERVED }],
        omitted: [{ field: "task", reason: OmissionReason.UNSUPPORTED }],
        costMicroUsd: 2n,
      },
    });
  });

  it("list the fields that this version does not know", async () => {
    const { report } = await createCore({ scripts: { a: [counted] } }).create({}, { unrecognized: ["100"] });
    expect(report!.omitted).toMatchObject([{ field: "100", reason: OmissionReason.UNKNOWN }]);
  });

  it("are recorded once, with the provider's count, before the caller gets them", async () => {
    let isDurable = false;
    const durable = async (): Promise<void> => void (isDurable = true);
    const core = createCore({ scripts: { a: [counted] }, ledger: { durable } });
    await core.create();
    expect(isDurable).toBe(true);
    expect(core.entries).toMatchObject([
      {
        completionId: "embd-1",
        requestedModel: "a",
        servedModel: "a",
        streamed: false,
        outcome: "served",
        tokens: { prompt: 100, completion: 0 },
        costMicroUsd: 2,
        partial: false,
        estimated: false,
      },
    ]);
    expect(core.records).toHaveLength(1);
    expect(core.releases).toEqual([100]);
  });

  it("without a count have no usage and no cost, and are booked by an estimate", async () => {
    const core = createCore({ scripts: { a: [uncounted] }, facts: { price: { ...price, input: 1_000_000 } } });
    const { usage: said, report } = await core.create();
    expect(said).toBeUndefined();
    expect(report!.costMicroUsd).toBeUndefined();
    expect(core.entries).toMatchObject([
      { tokens: { prompt: ESTIMATE, completion: 0 }, costMicroUsd: ESTIMATE, estimated: true, outcome: "served" },
    ]);
  });

  it("reserve the estimate for rates, and for budgets the bytes of the inputs, without any output", async () => {
    const core = createCore({ scripts: { a: [counted] }, facts: { price: { ...price, input: 1_000_000 } } });
    await core.create();
    expect(core.demands).toMatchObject([{ completionId: "embd-1", tokens: ESTIMATE, costMicroUsd: BOUND }]);
  });

  it("may fill the context window once for each input", async () => {
    const facts = { price: { ...price, input: 1_000_000 }, upstream: { contextWindow: 10 } };
    const core = createCore({ scripts: { a: [counted] }, facts });
    await core.create({ inputs: toInputs(["x".repeat(50), "y".repeat(50), "z"]) });
    expect(core.demands).toMatchObject([{ costMicroUsd: 30 }]);
  });

  it("have an empty vector for an input of a later version, which is listed", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    const inputs = [...toInputs(["a"]), laterInput(), ...toInputs(["b"])];
    const { embeddings, report } = await core.create({ inputs }, { unrecognized: ["inputs[1].100"] });
    expect(embeddings.map(({ values }) => values)).toEqual([[1, 2], [], [1, 2]]);
    expect(report?.omitted).toMatchObject([{ field: "inputs[1].100", reason: OmissionReason.UNKNOWN }]);
  });

  it("empty the list of inputs, which a waiting call needs no longer", async () => {
    const core = createCore({ scripts: { a: [counted] } });
    const request = create(EmbeddingRequestSchema, { model: "a", inputs: toInputs(INPUTS) });
    const ports = { ...core.call };
    await core.world.clock.drive(
      createEmbedder({
        router: core.world.router,
        clock: core.world.clock,
        limiter: notingLimiter().limiter,
        ledger: memoryLedger().ledger,
        recorder: { record: () => undefined },
        permit,
        settling: core.settling,
      }).create(request, ports),
    );
    expect(request.inputs).toEqual([]);
  });
});

describe("a failing model of embeddings", () => {
  const unavailable = new Failure("upstream_unavailable", "Down.");

  it("is tried again once, with the same input", async () => {
    const core = createCore({ scripts: { a: [{ ending: unavailable }, counted] } });
    expect((await core.create()).embeddings).toHaveLength(2);
    expect(outcomes(core.records[0]!.attempts)).toEqual(["a:upstream_unavailable", "a:served"]);
    expect(core.entries).toHaveLength(1);
  });

  it("ends the call with its failure and all attempts; no other model is tried", async () => {
    const core = createCore({ scripts: { a: [{ ending: unavailable }], b: [counted] } });
    await expect(core.create()).rejects.toMatchObject({
      code: "upstream_unavailable",
      attempts: [{ model: "a" }, { model: "a" }],
    });
    expect(core.entries).toMatchObject([{ outcome: "upstream_unavailable", servedModel: undefined }]);
  });

  it("opens the circuit breaker, which refuses the next call at once", async () => {
    const core = createCore({ scripts: { a: [{ ending: unavailable }] }, breaker: { failures: 2 } });
    await expect(core.create()).rejects.toMatchObject({ code: "upstream_unavailable" });
    const calls = core.world.provider.calls.length;
    await expect(core.create()).rejects.toMatchObject({ attempts: [{ outcome: "skipped" }] });
    expect(core.world.provider.calls).toHaveLength(calls);
  });

  it("costs nothing when it refused the request", async () => {
    const core = createCore({ scripts: { a: [{ ending: new Failure("upstream_rejected", "No.") }] } });
    await expect(core.create()).rejects.toMatchObject({ code: "upstream_rejected" });
    expect(core.entries).toMatchObject([{ costMicroUsd: 0, tokens: { prompt: 0 } }]);
  });

  it("is paid for each attempt that the provider may bill", async () => {
    const broken = new Failure("upstream_protocol", "Wrong vectors.");
    const facts = { price: { ...price, input: 1_000_000 } };
    const core = createCore({ scripts: { a: [{ ending: broken }, counted] }, facts });
    await core.create();
    expect(core.entries).toMatchObject([{ costMicroUsd: ESTIMATE + 100, estimated: true }]);
  });
});

describe("models that make the same vectors", () => {
  const unavailable = new Failure("upstream_unavailable", "Down.");
  const scripts = { a: [{ ending: unavailable }], b: [{ ending: unavailable }], c: [counted] };
  const facts = { interchangeable: ["b", "c"] };

  it("serve in their order when the model fails, with the same inputs, and one entry", async () => {
    const core = createCore({ scripts, facts });
    const { model, embeddings } = await core.create();
    expect(model).toBe("c");
    expect(embeddings).toHaveLength(2);
    expect(outcomes(core.records[0]!.attempts)).toEqual([
      "a:upstream_unavailable",
      "a:upstream_unavailable",
      "b:upstream_unavailable",
      "c:served",
    ]);
    expect(core.entries).toMatchObject([{ requestedModel: "a", servedModel: "c" }]);
  });

  it("need no permission of the key, but the labels that key and request require", async () => {
    const models = new Set(["a"]);
    const core = createCore({ scripts, facts, principal: { ...somebody, models } });
    await expect(core.create()).resolves.toMatchObject({ model: "c" });
    const [a, b, c] = core.world.models;
    core.world.router.replace([{ ...a!, labels: { region: "eu" } }, b!, { ...c!, labels: { region: "us" } }]);
    await expect(core.create({ requiredLabels: { regions: ["eu"] } })).rejects.toMatchObject({
      attempts: [{ model: "a" }, { model: "a" }],
    });
  });

  it.each([{ task: EmbeddingTask.QUERY }, { dimensions: 2 }])(
    "serve no request whose vectors would be others: %o",
    async (asked) => {
      const [field] = Object.keys(asked);
      const lossless = { omitted: [] };
      const lossy = { omitted: [omission(field!, OmissionReason.UNSUPPORTED)] };
      const translations = { a: lossless, b: lossy, c: lossless };
      const core = createCore({ scripts: { ...scripts, b: [counted] }, facts, translations });
      await expect(core.create(asked)).resolves.toMatchObject({ model: "c" });
      const all = { a: lossy, b: lossy, c: lossy };
      const same = createCore({ scripts: { ...scripts, b: [counted] }, facts, translations: all });
      await expect(same.create(asked)).resolves.toMatchObject({ model: "b" });
      const first = { a: lossy, b: lossless, c: lossy };
      const less = createCore({ scripts: { ...scripts, b: [counted] }, facts, translations: first });
      await expect(less.create(asked)).resolves.toMatchObject({ model: "c" });
    },
  );
});

describe("an embedding call that ends early", () => {
  const facts = {
    price: { ...price, input: 1_000_000 },
    timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: 900_000, settleMs: 2_000 },
  };

  it.each(["cancelled", "deadline_exceeded"] as const)(
    "%s is answered at once, and recorded with the count that comes in time",
    async (code) => {
      const core = createCore({ scripts: { a: [{ ...counted, pauseMs: 1_000 }] }, facts });
      core.world.clock.after(500, () => core.caller.abort(new Failure(code, "Gone.")));
      await expect(core.create()).rejects.toMatchObject({ code });
      expect(core.entries).toEqual([]);
      await core.world.clock.drive(core.settling.idle());
      expect(core.entries).toMatchObject([
        { outcome: code, tokens: { prompt: 100 }, costMicroUsd: 100, estimated: false },
      ]);
      expect(core.releases).toEqual([100]);
    },
  );

  it("without a count is booked by an estimate, and under a budget by the bytes of its inputs", async () => {
    const limits = { ...somebody.limits, monthlyBudgetMicroUsd: 1_000_000 };
    for (const [principal, tokens] of [
      [somebody, ESTIMATE],
      [{ ...somebody, limits }, BOUND],
    ] as const) {
      const core = createCore({ scripts: { a: [{ ending: "hang" }] }, facts, principal });
      core.world.clock.after(500, () => core.caller.abort(new Failure("cancelled", "Gone.")));
      await expect(core.create()).rejects.toMatchObject({ code: "cancelled" });
      await core.world.clock.drive(core.settling.idle());
      expect(core.entries).toMatchObject([{ tokens: { prompt: tokens, completion: 0 }, costMicroUsd: tokens }]);
    }
  });
});

describe("an embedding request is refused", () => {
  const refusedBy = async (asked: Asked, more: Partial<Call> = {}, options: Partial<CoreOptions> = {}) => {
    const core = createCore({ scripts: { a: [counted], b: [counted] }, ...options });
    const failure = await core.create(asked, more).then(
      () => undefined,
      (reason: unknown) => reason as Failure,
    );
    expect(core.entries).toEqual([]);
    expect(core.world.provider.calls).toEqual([]);
    return { failure, refused: core.refused };
  };
  const many = (count: number): string[] => Array<string>(count).fill("a");

  it.each<[string, Asked, string]>([
    ["no model", { model: "" }, "model"],
    ["no inputs", { inputs: [] }, "inputs"],
    ["an empty input", { inputs: toInputs(["a", ""]) }, "inputs[1]"],
    ["too many inputs", { inputs: toInputs(many(2_049)) }, "inputs"],
    ["no dimensions", { dimensions: 0 }, "dimensions"],
    ["a negative length", { dimensions: -1 }, "dimensions"],
    ["an unknown task", { task: 99 as EmbeddingTask }, "task"],
    ["a task that its provider does not know, when it is strict", { task: EmbeddingTask.QUERY, strict: true }, "task"],
  ])("with %s", async (_, asked, param) => {
    const { failure, refused } = await refusedBy(asked);
    expect(failure).toMatchObject({ code: "invalid_request", param });
    expect(refused).toEqual([failure]);
  });

  it("with every invalid field named", async () => {
    const { failure } = await refusedBy({ inputs: toInputs(["", ""]), dimensions: 0 });
    expect(failure?.violations.map(({ field }) => field)).toEqual(["inputs[0]", "inputs[1]", "dimensions"]);
  });

  it("with inputs of a later version alone", async () => {
    const { failure } = await refusedBy({ inputs: [laterInput()] });
    expect(failure).toMatchObject({ code: "invalid_request", param: "inputs" });
  });

  it("with unknown fields, when it is strict", async () => {
    const { failure } = await refusedBy({ strict: true }, { unrecognized: ["100"] });
    expect(failure).toMatchObject({ code: "invalid_request", param: "100" });
  });

  it("for a model that does not exist", async () => {
    expect((await refusedBy({ model: "c" })).failure).toMatchObject({ code: "model_not_found", param: "model" });
  });

  it("for a key without the capability or the model", async () => {
    const capabilities = new Set(["chat", "images"] as const);
    const { failure } = await refusedBy({}, { principal: { ...somebody, capabilities } });
    expect(failure).toMatchObject({ code: "permission_denied", message: /"embeddings"/ });
    const models = new Set(["b"]);
    expect((await refusedBy({}, { principal: { ...somebody, models } })).failure?.message).toMatch(/"a"/);
  });

  it("for a model of completions, with the names of those that make embeddings", async () => {
    const core = createCore({ scripts: { a: [counted], b: [counted], c: [counted] } });
    const [a, b, c] = core.world.models;
    const text = { ...a!, upstream: { ...a!.upstream, outputModalities: new Set([Modality.TEXT]) } };
    core.world.router.replace([text, b!, c!]);
    await expect(core.create()).rejects.toMatchObject({
      code: "invalid_request",
      param: "model",
      message: "model: must be another model: a does not make embeddings (these do: b, c).",
    });
    const principal = { ...somebody, models: new Set(["a", "c"]) };
    await expect(core.create({}, { principal })).rejects.toMatchObject({ message: /\(these do: c\)/ });
  });

  it("with the names of some models only where there are many", async () => {
    const scripts = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`m${index}`, [counted]]));
    const core = createCore({ scripts: { a: [counted], ...scripts } });
    const [a, ...others] = core.world.models;
    const text = { ...a!, upstream: { ...a!.upstream, outputModalities: new Set([Modality.TEXT]) } };
    core.world.router.replace([text, ...others]);
    await expect(core.create()).rejects.toMatchObject({
      message: "model: must be another model: a does not make embeddings (these do: m0, m1, m2, m3, m4 and 35 more).",
    });
  });

  it("by a limit, with a record and without an entry", async () => {
    const refusal = new Failure("rate_limited", "Too many.", { retryAfterMs: 1_000 });
    const core = createCore({ scripts: { a: [counted] }, refusal });
    await expect(core.create()).rejects.toBe(refusal);
    expect(core.records).toMatchObject([{ outcome: "rate_limited", entry: undefined }]);
    expect(core.world.provider.calls).toEqual([]);
  });
});

describe("a completion request for a model of embeddings", () => {
  it("is refused with the names of those that make completions, also as a fallback", async () => {
    const core = createCore({ scripts: { a: [counted], b: [counted] } });
    const [a, b] = core.world.models;
    const text = { ...b!, upstream: { ...b!.upstream, outputModalities: new Set([Modality.TEXT]) } };
    core.world.router.replace([a!, text]);
    const ask = (asked: Parameters<typeof requestTo>[0]) =>
      core.world.clock.drive(core.completions.create(requestTo(asked), core.call));
    await expect(ask({ model: "a" })).rejects.toMatchObject({
      code: "invalid_request",
      param: "model",
      message: "model: must be another model: a does not make completions (these do: b).",
    });
    await expect(ask({ model: "b", fallbackModels: ["a"] })).rejects.toMatchObject({
      code: "invalid_request",
      param: "fallback_models[0]",
    });
  });
});

/** An input of a kind that this version does not know. */
function laterInput() {
  const input = create(EmbeddingInputSchema);
  input.$unknown = [{ no: 100, wireType: WireType.Varint, data: new Uint8Array([1]) }];
  return input;
}
