import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { EmbeddingRequestSchema, EmbeddingService, EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { KeyCapability, KeyService } from "../../gen/parley/v1/key_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import { AttemptListSchema, AttemptOutcome } from "../../gen/parley/v1/report_pb.js";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { serviceDefinition } from "../../src/inbound/grpc/definition.ts";
import { startTestFront, type TestFront } from "../support/front.ts";
import { type LogLine, startTestGateway, type TestGateway } from "../support/gateway.ts";
import {
  type Act,
  refuses,
  type ScriptedUpstream,
  sends,
  startScriptedUpstream,
  staysSilent,
} from "../support/scripted-upstream.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { toInputs } from "../support/embedding-inputs.ts";
import { rejectionsOf } from "../support/errors.ts";

type Asked = MessageInitShape<typeof EmbeddingRequestSchema>;

/** Budget of a key: two hundred calls of the worst case. */
const BUDGET_MICRO_USD = 2_000;
const PRICE_USD = 1;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let front: TestFront;
const keys: Record<string, string> = {};
/** Name of a key for one test at an entrance: the slot of a call that left ends a little after its log line. */
const keyAt = (door: string): string => `bounded ${door}`;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const provider = { allow_private: true, api_keys: ["secret-of-the-gateway"] };
  const vectors = { modalities: { input: ["text"], output: ["embedding"] }, price: { input: PRICE_USD } };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 1, cap_ms: 10 },
      timeouts: { settle_ms: 0 },
      breaker: { failures: 100 },
      limits: UNLIMITED,
      providers: {
        open: { ...provider, dialect: "openai", base_url: `${upstream.url}/v1` },
        batch: { ...provider, dialect: "gemini", base_url: upstream.url },
      },
      models: {
        vectors: { ...vectors, provider: "open", upstream_model: "vectors-up" },
        fixed: {
          ...vectors,
          provider: "open",
          upstream_model: "fixed-up",
          capabilities: { embedding_dimensions: false },
        },
        batched: { ...vectors, provider: "batch", upstream_model: "batched-up" },
        broken: { ...vectors, provider: "open", upstream_model: "broken-up" },
        words: { provider: "open", upstream_model: "words-up" },
      },
    },
    async prepareKeys(context) {
      const make = async (name: string, choices: Partial<Parameters<typeof createKey>[1]>) => {
        keys[name] = (await createKey(context, { name, ...choices })).secret;
      };
      await make("completions", { capabilities: ["chat", "images"] });
      await make("thrifty", { limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: BUDGET_MICRO_USD } });
      for (const door of DOORS) await make(keyAt(door), {});
      await make("once", { limits: { ...NO_LIMITS, requestsPerMinute: 1 } });
    },
  });
  front = await startTestFront(`127.0.0.1:${gateway.grpcPort}`);
});
afterAll(async () => {
  await front.close();
  await gateway.close();
  await upstream.close();
});

const DOORS = ["gRPC", "Connect", "gRPC-Web", "Connect through a front"] as const;
type Door = (typeof DOORS)[number];

function transportOf(door: Door): Transport {
  const at = (port: number): string => `http://127.0.0.1:${port}`;
  if (door === "gRPC") return createGrpcTransport({ baseUrl: at(gateway.grpcPort) });
  const httpVersion = "1.1";
  if (door === "gRPC-Web") return createGrpcWebTransport({ baseUrl: at(gateway.httpPort), httpVersion });
  const port = door === "Connect" ? gateway.httpPort : front.httpPort;
  return createConnectTransport({ baseUrl: at(port), httpVersion });
}

const authorized = (key = gateway.key) => ({ headers: { authorization: `Bearer ${key}` } });

/** Calls with facts of the response. */
async function embed(door: Door, asked: Asked, { key, timeoutMs, signal }: Calling = {}) {
  const facts: Record<string, string> = {};
  const note = (headers: Headers): void => headers.forEach((value, name) => void (facts[name] = value));
  const answer = await createClient(EmbeddingService, transportOf(door)).create(asked, {
    ...authorized(key),
    onHeader: note,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(signal !== undefined && { signal }),
  });
  return { answer, facts };
}

interface Calling {
  readonly key?: string | undefined;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const failureOf = rejectionsOf(ConnectError);

/** Answers with a vector for each input, in base64, and one token for each. */
const embeds = (dimensions = 3): Act => {
  return (call) => {
    const { input } = upstream.calls("vectors-up").at(-1)!.body as { input: readonly string[] };
    const data = input.map((_, index) => ({
      index,
      embedding: Buffer.from(vector(index, dimensions).buffer).toString("base64"),
    }));
    sends(200, "application/json", JSON.stringify({ data, usage: { prompt_tokens: input.length } }))(call);
  };
};

function vector(index: number, dimensions: number): Float32Array {
  return Float32Array.from({ length: dimensions }, (_, at) => (index + at) / 7);
}

/** Log lines of ended calls since `from`. */
function ended(from: number): readonly LogLine[] {
  return gateway.log.slice(from).filter(({ msg }) => msg === "completion");
}

async function untilLogged(from: number): Promise<readonly LogLine[]> {
  await expect.poll(() => ended(from).length).toBeGreaterThan(0);
  return ended(from);
}

describe.each(DOORS)("embeddings over %s", (door) => {
  it("are returned in order, with usage, cost, attempts and the facts of the call, and recorded once", async () => {
    const before = upstream.calls("vectors-up").length;
    upstream.script("vectors-up", [...Array<Act>(before).fill(embeds()), refuses(503), embeds()]);
    const from = gateway.log.length;
    const { answer, facts } = await embed(door, {
      model: "vectors",
      inputs: toInputs(["a", "b"]),
      dimensions: 3,
      task: EmbeddingTask.QUERY,
      endUserId: "u-1",
    });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^embd-[0-9A-Za-z]{24}$/) as string,
      model: "vectors",
      embeddings: [0, 1].map((index) => ({ values: [...vector(index, 3)] })),
      usage: { inputTokens: 2, outputTokens: 0, totalTokens: 2 },
      report: {
        attempts: [{ outcome: AttemptOutcome.FAILED }, { outcome: AttemptOutcome.SERVED }],
        omitted: [{ field: "task" }],
      },
    });
    expect(answer.report?.costMicroUsd).toBeDefined();
    expect(facts).toMatchObject({
      "parley-requested-model": "vectors",
      "parley-served-model": "vectors",
      "parley-attempts": "2",
      "x-request-id": expect.stringMatching(/./) as string,
    });
    expect(upstream.calls("vectors-up").at(-1)).toMatchObject({
      path: "/v1/embeddings",
      body: { model: "vectors-up", input: ["a", "b"], encoding_format: "base64", dimensions: 3, user: "u-1" },
    });
    expect(ended(from)).toMatchObject([
      { completion_id: answer.id, model: "vectors", outcome: "served", streamed: false, prompt_tokens: 2 },
    ]);
  });

  it("take 2,048 inputs", async () => {
    upstream.script("vectors-up", [embeds(1536)]);
    const { answer } = await embed(door, { model: "vectors", inputs: toInputs(Array<string>(2048).fill("a")) });
    expect(answer.embeddings).toHaveLength(2048);
    expect(answer.embeddings.at(-1)?.values).toEqual([...vector(2047, 1536)]);
  });

  it("of a provider that counts nothing have no usage, and are booked by an estimate", async () => {
    const json = JSON.stringify({ embeddings: [{ values: [0.5] }, { values: [0.25] }] });
    upstream.script("batched-up", [sends(200, "application/json", json)]);
    const from = gateway.log.length;
    const { answer } = await embed(door, {
      model: "batched",
      inputs: toInputs(["12345678", "x"]),
      task: EmbeddingTask.DOCUMENT,
    });
    expect(answer.embeddings.map(({ values }) => values)).toEqual([[0.5], [0.25]]);
    expect(answer.usage).toBeUndefined();
    expect(answer.report?.omitted).toEqual([]);
    expect(upstream.calls("batched-up").at(-1)).toMatchObject({
      path: "/v1beta/models/batched-up:batchEmbedContents",
      body: { requests: [{ model: "models/batched-up", taskType: "RETRIEVAL_DOCUMENT" }, {}] },
    });
    expect(ended(from)).toMatchObject([{ outcome: "served", cost_micro_usd: 3 }]);
  });

  it("omit dimensions for a model of one length, and refuse them when the request is strict", async () => {
    const json = JSON.stringify({ data: [{ embedding: [1] }] });
    upstream.script("fixed-up", [sends(200, "application/json", json)]);
    const asked = { model: "fixed", inputs: toInputs(["a"]), dimensions: 8 };
    const { answer } = await embed(door, asked);
    expect(answer.report?.omitted).toMatchObject([{ field: "dimensions" }]);
    expect(upstream.calls("fixed-up").at(-1)?.body).not.toHaveProperty("dimensions");
    const failure = await failureOf(embed(door, { ...asked, strict: true }));
    expect(failure.code).toBe(Code.InvalidArgument);
    expect(failure.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([{ field: "dimensions" }]);
  });

  it.each<[string, Asked, string]>([
    ["an empty input", { inputs: toInputs(["a", ""]) }, "inputs[1]"],
    ["no input", { inputs: [] }, "inputs"],
    ["2,049 inputs", { inputs: toInputs(Array<string>(2049).fill("a")) }, "inputs"],
    ["101 inputs for Gemini", { model: "batched", inputs: toInputs(Array<string>(101).fill("a")) }, "inputs"],
    ["a task for OpenAI, when it is strict", { task: EmbeddingTask.QUERY, strict: true }, "task"],
    ["a model of completions", { model: "words" }, "model"],
  ])("are refused with %s, with details", async (_, asked, field) => {
    const failure = await failureOf(embed(door, { model: "vectors", inputs: toInputs(["a"]), ...asked }));
    expect(failure.code).toBe(Code.InvalidArgument);
    expect(failure.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "INVALID_REQUEST", domain: "parley" }]);
    expect(failure.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([{ field }]);
  });

  it("are refused for a key without the capability, and for an unknown model", async () => {
    const asked = { model: "vectors", inputs: toInputs(["a"]) };
    const denied = await failureOf(embed(door, asked, { key: keys.completions }));
    expect([denied.code, denied.rawMessage]).toEqual([
      Code.PermissionDenied,
      'This API key lacks the capability "embeddings".',
    ]);
    const unknown = await failureOf(embed(door, { ...asked, model: "nothing" }));
    expect(unknown.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "MODEL_NOT_FOUND" }]);
  });

  it("fail with all attempts when the provider does", async () => {
    upstream.script("broken-up", [sends(200, "application/json", JSON.stringify({ data: [] }))]);
    const failure = await failureOf(embed(door, { model: "broken", inputs: toInputs(["a"]) }));
    expect(failure.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "UPSTREAM_PROTOCOL" }]);
    expect(failure.findDetails(AttemptListSchema)[0]?.attempts).toHaveLength(2);
  });

  it("end with the deadline, and are recorded once", async () => {
    upstream.script("vectors-up", [staysSilent]);
    const from = gateway.log.length;
    const failure = await failureOf(embed(door, { model: "vectors", inputs: toInputs(["a"]) }, { timeoutMs: 1_000 }));
    expect(failure.code).toBe(Code.DeadlineExceeded);
    // The client's own deadline also ends the call, on a slow machine long before the gateway's.
    const outcome: unknown = expect.toBeOneOf(["deadline_exceeded", "cancelled"]);
    expect(await untilLogged(from)).toMatchObject([{ outcome }]);
    await expect.poll(() => upstream.calls("vectors-up").at(-1)?.state).toBe("closed");
  });

  it("end when the caller leaves, and are recorded once", async () => {
    upstream.script("vectors-up", [staysSilent]);
    const from = gateway.log.length;
    const before = upstream.calls("vectors-up").length;
    const leaving = new AbortController();
    const call = failureOf(embed(door, { model: "vectors", inputs: toInputs(["a"]) }, { signal: leaving.signal }));
    await expect.poll(() => upstream.calls("vectors-up").length).toBe(before + 1);
    leaving.abort();
    expect((await call).code).toBe(Code.Canceled);
    expect(await untilLogged(from)).toMatchObject([{ outcome: "cancelled" }]);
    await expect.poll(() => upstream.calls("vectors-up").at(-1)?.state).toBe("closed");
  });

  it("of one key are bounded together, before a provider is asked", async () => {
    upstream.script("vectors-up", [staysSilent]);
    const from = gateway.log.length;
    const before = upstream.calls("vectors-up").length;
    const leaving = new AbortController();
    const key = keys[keyAt(door)];
    const large = { model: "vectors", inputs: toInputs(Array<string>(2_048).fill("a")) };
    const first = failureOf(embed(door, large, { key, signal: leaving.signal }));
    await expect.poll(() => upstream.calls("vectors-up").length).toBe(before + 1);
    // On a busy machine a key that has just sent a large request waits first.
    const refusal = async () => {
      const { code, rawMessage } = await failureOf(embed(door, large, { key }));
      return { code, rawMessage };
    };
    await expect.poll(refusal).toEqual({
      code: Code.ResourceExhausted,
      rawMessage: expect.stringContaining("may be in transit at a time") as string,
    });
    expect(upstream.calls("vectors-up").length).toBe(before + 1);
    leaving.abort();
    expect((await first).code).toBe(Code.Canceled);
    // Neither its cost nor what it holds is counted in a later test.
    await expect.poll(() => ended(from).filter(({ outcome }) => outcome === "cancelled")).toHaveLength(1);
    const models = createClient(ModelService, transportOf(door));
    await expect.poll(async () => await models.list({}, authorized()).then(() => "served", String)).toBe("served");
  });

  it("list their models and the key's capability", async () => {
    const transport = transportOf(door);
    const asked = { outputModalities: [Modality.EMBEDDING] };
    const { models } = await createClient(ModelService, transport).list(asked, authorized());
    expect(models.map(({ id }) => id)).toEqual(["vectors", "fixed", "batched", "broken"]);
    expect(models[0]).toMatchObject({ capabilities: { embeddingDimensions: true, tools: false, sampling: false } });
    expect(models[0]?.maxOutputTokens).toBeUndefined();
    const key = await createClient(KeyService, transport).getCurrent({}, authorized());
    expect(key.capabilities).toContain(KeyCapability.EMBEDDINGS);
  });
});

describe("a budget", () => {
  it("is never exceeded by embeddings at the same time", async () => {
    upstream.script("vectors-up", [embeds()]);
    const from = gateway.log.length;
    // 96 bytes and four more: the worst case is 100 tokens, the count one token.
    const asked = { model: "vectors", inputs: toInputs(["x".repeat(96)]) };
    const calls = Array.from({ length: 60 }, (_, at) => embed(DOORS[at % DOORS.length]!, asked, { key: keys.thrifty }));
    const outcomes = await Promise.allSettled(calls);
    const served = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(served).toBeGreaterThanOrEqual(BUDGET_MICRO_USD / 100);
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      expect(ConnectError.from(outcome.reason).findDetails(ErrorInfoSchema)).toMatchObject([
        { reason: "BUDGET_SPENT" },
      ]);
    }
    const costs = ended(from).map((line) => Number(line["cost_micro_usd"] ?? 0));
    expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(BUDGET_MICRO_USD);
  });

  it("refuses a call whose worst case exceeds it", async () => {
    const asked = { model: "vectors", inputs: toInputs(["x".repeat(BUDGET_MICRO_USD + 1)]) };
    const failure = await failureOf(embed("gRPC", asked, { key: keys.thrifty }));
    expect(failure.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "BUDGET_SPENT" }]);
  });
});

describe("a rate limit", () => {
  it("refuses embeddings with the time to wait, for retry policies too", async () => {
    upstream.script("vectors-up", [embeds()]);
    const asked = { model: "vectors", inputs: toInputs(["a"]) };
    const { facts } = await embed("gRPC", asked, { key: keys.once });
    expect(facts).toMatchObject({ "x-ratelimit-limit-requests": "1", "x-ratelimit-remaining-requests": "0" });
    const failure = await failureOf(embed("gRPC", asked, { key: keys.once }));
    expect(failure.code).toBe(Code.ResourceExhausted);
    expect(failure.findDetails(RetryInfoSchema)).toHaveLength(1);
    expect(Number(failure.metadata.get("grpc-retry-pushback-ms"))).toBeGreaterThan(0);
  });
});

describe("a gRPC client that receives 4 MiB", () => {
  it("refuses larger vectors itself, and gets them with another limit", async () => {
    upstream.script("vectors-up", [embeds(1536)]);
    const { create: method } = serviceDefinition(EmbeddingService);
    const call = (options: object) =>
      new Promise<ServiceError | null>((resolve) => {
        const client = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure(), options);
        const metadata = new Metadata();
        metadata.set("authorization", `Bearer ${gateway.key}`);
        const request = create(EmbeddingRequestSchema, {
          model: "vectors",
          inputs: toInputs(Array<string>(700).fill("a")),
        });
        const { path, requestSerialize, responseDeserialize } = method!;
        const message = { bytes: 0, read: () => request };
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, metadata, (error) => {
          client.close();
          resolve(error);
        });
      });
    expect(await call({})).toMatchObject({ code: 8 });
    expect(await call({ "grpc.max_receive_message_length": -1 })).toBeNull();
  });
});
