import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { type Product, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  localModel,
  startUpstream,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";

let upstream: Upstream;
let product: Product;
let foreignKey: string;
let script: ((exchange: UpstreamExchange) => void)[] = [];

const NO_LIMITS = {
  requestsPerMinute: undefined,
  tokensPerMinute: undefined,
  concurrentRequests: undefined,
  monthlyBudgetMicroUsd: undefined,
};
const MODEL = "local/test";

beforeAll(async () => {
  upstream = await startUpstream((exchange) => (script.shift() ?? ((each) => answerText(each, "Yes.")))(exchange));
  product = await startProduct({ config: { ...localModel(upstream.url), responses: { store_days: 1 } } });
  const store = await openStore({ dataDir: dataDir(), databaseUrl: undefined });
  await store.accounts.insert({
    id: "acct_other",
    name: "Other",
    kind: "person",
    email: "other@example.com",
    role: "developer",
    createdAtMs: Date.now(),
    passwordHash: undefined,
    disabledAtMs: undefined,
    limits: NO_LIMITS,
  });
  foreignKey = (
    await createKey({ store: store.keys, clock: systemClock }, { name: "foreign", accountId: "acct_other" })
  ).secret;
  await store.close();
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

beforeEach(() => {
  script = [];
  cleanEnvironment();
});

const dataDir = (): string =>
  join(
    product.home,
    readdirSync(product.home).find((name) => name.includes("data"))!,
  );
const client = (apiKey = product.firstKey): OpenAI =>
  new OpenAI({ baseURL: `${product.url}/v1`, apiKey, maxRetries: 0 });

interface Sent {
  readonly messages: readonly Record<string, unknown>[];
}
const sent = (): Sent => JSON.parse(upstream.exchanges.at(-1)!.body) as Sent;

const errorOf = rejectionsOf<InstanceType<typeof OpenAI.APIError>>(OpenAI.APIError);
async function statusOf(call: PromiseLike<unknown>): Promise<{ status: unknown; code: unknown }> {
  const { status, code } = await errorOf(call);
  return { status, code };
}

const NOT_FOUND = { status: 404, code: null };
const NO_PREVIOUS = { status: 400, code: "previous_response_not_found" };

describe("stored responses", () => {
  it("continue a conversation over three turns, with a tool call", async () => {
    const tools: OpenAI.Responses.Tool[] = [
      { type: "function", name: "weather", parameters: { type: "object", properties: {} }, strict: false },
    ];
    const first = await client().responses.create({ model: MODEL, input: "My city is Oslo." });
    expect(first).toMatchObject({ store: true, previous_response_id: null, output_text: "Yes." });
    script.push(({ response }) =>
      answerJson(response, 200, {
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: null,
              tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"a":1}' } }],
            },
            finish_reason: "tool_calls",
          },
        ],
      }),
    );
    const second = await client().responses.create({
      model: MODEL,
      input: "How is the weather there?",
      tools,
      previous_response_id: first.id,
    });
    expect(second.previous_response_id).toBe(first.id);
    const third = await client().responses.create({
      model: MODEL,
      input: [{ type: "function_call_output", call_id: "call_1", output: "Snow" }],
      tools,
      previous_response_id: second.id,
    });
    expect(third.output_text).toBe("Yes.");
    expect(sent().messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "tool"]);
    expect(sent().messages[0]).toMatchObject({ content: "My city is Oslo." });
    expect(sent().messages[3]).toMatchObject({ tool_calls: [{ id: "call_1" }] });

    const items = await client().responses.inputItems.list(third.id, { order: "asc", limit: 2 });
    expect(items.data).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "My city is Oslo." }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes." }] },
    ]);
    const all: unknown[] = [];
    for await (const item of items) all.push(item);
    expect(all).toMatchObject([{}, {}, { role: "user" }, { type: "function_call" }, { type: "function_call_output" }]);

    expect(await client().responses.retrieve(second.id)).toMatchObject({
      id: second.id,
      object: "response",
      status: "completed",
      store: true,
      output: [{ type: "function_call", call_id: "call_1" }],
    });
    // The middle of the chain.
    await client().responses.delete(second.id);
    expect(await statusOf(client().responses.retrieve(second.id))).toEqual(NOT_FOUND);
    expect(await statusOf(client().responses.delete(second.id))).toEqual(NOT_FOUND);
    await client().responses.create({ model: MODEL, input: "And now?", previous_response_id: third.id });
    expect(sent().messages).toHaveLength(7);
  });

  it("continue a streamed answer", async () => {
    const stream = client().responses.stream({ model: MODEL, input: "Say yes" });
    const first = await stream.finalResponse();
    expect(first).toMatchObject({ store: true, status: "completed" });
    expect(await client().responses.retrieve(first.id)).toMatchObject({
      id: first.id,
      output: [{ id: first.output[0]!.id, content: [{ type: "output_text", text: "Yes." }] }],
    });
    await client().responses.stream({ model: MODEL, input: "Again", previous_response_id: first.id }).finalResponse();
    expect(sent().messages).toMatchObject([
      { role: "user", content: "Say yes" },
      { role: "assistant", content: "Yes." },
      { role: "user", content: "Again" },
    ]);
  });

  it("are kept when the answer is incomplete", async () => {
    script.push(({ response }) =>
      answerJson(response, 200, {
        choices: [{ index: 0, message: { role: "assistant", content: "Ye" }, finish_reason: "length" }],
      }),
    );
    const { id, status } = await client().responses.create({ model: MODEL, input: "Say yes" });
    expect(status).toBe("incomplete");
    expect(await client().responses.retrieve(id)).toMatchObject({ id, status: "incomplete", store: true });
  });

  it("are not kept with store: false", async () => {
    const { id, ...answer } = await client().responses.create({ model: MODEL, input: "Say yes", store: false });
    expect(answer).toMatchObject({ store: false });
    expect(await statusOf(client().responses.retrieve(id))).toEqual(NOT_FOUND);
    const next = client().responses.create({ model: MODEL, input: "Again", previous_response_id: id });
    expect(await statusOf(next)).toEqual(NO_PREVIOUS);
  });

  it("are not found by keys of another account", async () => {
    const { id } = await client().responses.create({ model: MODEL, input: "My secret" });
    const foreign = client(foreignKey).responses;
    expect(await statusOf(foreign.retrieve(id))).toEqual(NOT_FOUND);
    expect(await statusOf(foreign.delete(id))).toEqual(NOT_FOUND);
    expect(await statusOf(foreign.inputItems.list(id))).toEqual(NOT_FOUND);
    const next = foreign.create({ model: MODEL, input: "Again", previous_response_id: id });
    expect(await statusOf(next)).toEqual(NO_PREVIOUS);
    expect(await statusOf(client("pk_wrong").responses.retrieve(id))).toMatchObject({ status: 401 });
    expect(await client().responses.retrieve(id)).toMatchObject({ id });
  });

  it("name the fields of a request without those of its history", async () => {
    const { id } = await client().responses.create({ model: MODEL, input: "Hello" });
    const call = client().responses.create({
      model: MODEL,
      input: [{ type: "function_call_output", call_id: "call_9", output: "" }],
      previous_response_id: id,
    });
    await expect(call).rejects.toMatchObject({ status: 400, param: expect.stringMatching(/^input/) as string });
    await expect(call).rejects.not.toMatchObject({ param: expect.stringMatching(/^input\[[1-9]/) as string });
  });

  it("are encrypted with a key that only their owner can read", () => {
    const file = join(dataDir(), "responses.key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const files = readdirSync(dataDir()).filter((name) => name.startsWith("parley.db"));
    const isWritten = (text: string): boolean =>
      files.some((name) => readFileSync(join(dataDir(), name)).includes(text));
    expect(isWritten("kept_responses")).toBe(true);
    expect(isWritten("My secret")).toBe(false);
    expect(isWritten(Buffer.from("My secret").toString("base64").slice(0, 10))).toBe(false);
  });
});

describe("a response that cannot be stored", () => {
  it("is answered, and says so", async () => {
    const own = await startProduct({ config: { ...localModel(upstream.url), responses: { store_days: 1 } } });
    try {
      const data = join(
        own.home,
        readdirSync(own.home).find((name) => name.includes("data"))!,
      );
      const database = new DatabaseSync(join(data, "parley.db"));
      database.exec("drop table kept_responses");
      database.close();
      const { responses } = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: own.firstKey, maxRetries: 0 });
      const whole = await responses.create({ model: MODEL, input: "Say yes", metadata: { x: '"store": true}' } });
      expect(whole).toMatchObject({ output_text: "Yes.", store: false, metadata: { x: '"store": true}' } });
      const streamed = await responses.stream({ model: MODEL, input: "Say yes" }).finalResponse();
      expect(streamed).toMatchObject({ output_text: "Yes.", store: false, status: "completed" });
      expect(await statusOf(responses.retrieve(whole.id))).toMatchObject({ status: 503 });
    } finally {
      await own.stop();
    }
  });
});

describe("several workers", () => {
  it("share stored responses and their key", async () => {
    const own = await startProduct({
      config: { ...localModel(upstream.url), workers: 2, responses: { store_days: 1 } },
    });
    try {
      const connect = (): OpenAI["responses"] =>
        new OpenAI({
          baseURL: `${own.url}/v1`,
          apiKey: own.firstKey,
          maxRetries: 0,
          defaultHeaders: { connection: "close" },
        }).responses;
      const { id } = await connect().create({ model: MODEL, input: "Say yes" });
      const found = await Promise.all(Array.from({ length: 8 }, () => connect().retrieve(id)));
      expect(new Set(found.map((each) => each.id))).toEqual(new Set([id]));
    } finally {
      await own.stop();
    }
  });
});

describe("a front", () => {
  it("stores nothing, and says so", async () => {
    const config = { ...localModel(upstream.url), responses: { store_days: 1 } };
    const core = await startProduct({ config, flags: ["--role", "core"] });
    const flags = ["--role", "front", "--core", `127.0.0.1:${core.grpcPort}`];
    const front = await startProduct({ config: { responses: { store_days: 1 } }, flags });
    try {
      const { responses } = new OpenAI({ baseURL: `${front.url}/v1`, apiKey: core.firstKey, maxRetries: 0 });
      const { id, store } = (await responses.create({ model: MODEL, input: "Say yes", store: true })) as {
        id: string;
        store?: boolean;
      };
      expect(store).toBe(false);
      expect(await statusOf(responses.retrieve(id))).toEqual(NOT_FOUND);
      const next = responses.create({ model: MODEL, input: "Again", previous_response_id: id });
      expect(await statusOf(next)).toEqual(NO_PREVIOUS);
    } finally {
      await front.stop();
      await core.stop();
    }
  });
});
