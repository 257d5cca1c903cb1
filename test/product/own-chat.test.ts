import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* What a provider of the dialect `openai` gets of a chat completion. */

type Json = Readonly<Record<string, unknown>>;

const FOLDER = new URL("../fixtures/formats/clients/", import.meta.url);
const RECORDED = readdirSync(FOLDER)
  .filter((name) => name !== "omitted.json")
  .map(
    (name) => [name, JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as { path: string; body: Json }] as const,
  )
  .filter(([, { path }]) => path === "/v1/chat/completions");

const ANSWER = {
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const PNG = "iVBORw0KGgo=";

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;
/** A key with a budget, and one that may use fields that Parley does not know. */
let budgetKey: string;
let openKey: string;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const provider = { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true, api_keys: ["credential"] };
  const modalities = { input: ["text", "image", "audio"], output: ["text", "audio"] };
  const model = { upstream_model: "llama", max_output_tokens: 64_000, price: { input: 3, output: 15 }, modalities };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      limits: UNLIMITED,
      providers: { o: provider, open: { ...provider, options: ["service_tier", "other_fields"] } },
      models: {
        "fx-o": { ...model, provider: "o" },
        "fx-open": { ...model, provider: "open" },
        "fx-old": {
          ...model,
          provider: "open",
          capabilities: {
            content_parts: false,
            max_tokens_field: "max_completion_tokens",
            mid_conversation_system: false,
            multiple_choices: false,
            json_schema: false,
            stream_usage: false,
          },
        },
      },
    },
    prepareKeys: async (context) => {
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 10_000_000 };
      budgetKey = (await createKey(context, { name: "small", limits })).secret;
      openKey = (await createKey(context, { name: "open", limits, options: ["other_fields"] })).secret;
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  answer = ({ response }) => answerJson(response, 200, ANSWER);
});

interface Answered {
  readonly sent: string;
  readonly omitted: readonly string[];
}

async function send(body: object | string, key = gateway.key): Promise<Answered> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  expect(`${response.status} ${response.status === 200 ? "" : text}`).toBe("200 ");
  const { parley } = (text.startsWith("{") ? JSON.parse(text) : {}) as { parley?: { omitted?: string[] } };
  return { sent: upstream.exchanges.at(-1)!.body, omitted: parley?.omitted ?? [] };
}

const HI = { model: "fx-o", messages: [{ role: "user", content: "Hi" }] };
const sentOf = async (fields: object, key?: string): Promise<unknown> =>
  JSON.parse((await send({ ...HI, ...fields }, key)).sent);

describe("a chat completion to a provider of the dialect", () => {
  it.each(RECORDED)("of %s arrives as it came", async (_, { body }) => {
    const asked = { ...body, model: "fx-o", stream: false, stream_options: undefined };
    const { sent, omitted } = await send(asked);
    expect(omitted).toEqual([]);
    expect(sent).toBe(JSON.stringify({ ...asked, model: "llama" }));
  });

  const WORDS =
    '{"temperature":0.5,"n":1,"store":false,"stream":false,"logprobs":false,"parallel_tool_calls":true,"stop":"END",' +
    '"response_format":{"type":"text"},"model":"fx-o","max_tokens":100,"messages":[{"content":[{"text":"a","type":"text"}],' +
    '"role":"system"},{"name":"x","content":[{"type":"text","text":"Look."},{"image_url":{"detail":"auto","url":' +
    `"data:image/png;base64,${PNG}"},"type":"image_url"}],"role":"user"},{"tool_calls":[{"type":"function","id":"c1",` +
    '"function":{"arguments":"{\\"b\\": 1}","name":"f"}}],"content":"","role":"assistant"},{"content":"ok","role":"tool",' +
    '"tool_call_id":"c1"}],"tools":[{"function":{"parameters":{"type":"object","properties":{}},"description":"","name":"f"},' +
    '"type":"function"}],"tool_choice":"auto","prediction":{"content":[{"text":"x","type":"text"}],"type":"content"}}';

  it("arrives to the byte, but for the model", async () => {
    const { sent, omitted } = await send(WORDS);
    expect(sent).toBe(WORDS.replace("fx-o", "llama"));
    expect(omitted).toEqual([]);
  });

  it("has no field that Parley does not know, and lists those beside known ones", async () => {
    const fields = '"new_field":{"z":1},"messages":[{"new_field":1,';
    const { sent, omitted } = await send(WORDS.replace('"messages":[{', fields));
    expect(sent).toBe(WORDS.replace("fx-o", "llama"));
    expect(omitted).toEqual(["new_field", "messages[0].new_field"]);
  });

  it.each<[string, () => { model: string; key: string }]>([
    ["its provider names", () => ({ model: "fx-open", key: gateway.key })],
    ["its key names, under a budget too", () => ({ model: "fx-o", key: openKey })],
  ])("has them at any place where %s the option", async (_, setUp) => {
    const { model, key } = setUp();
    const body = JSON.stringify({
      new_field: { z: 1, a: [null] },
      model,
      max_tokens: 9,
      messages: [{ role: "user", content: [{ type: "text", text: "Hi", new_field: 1 }], new_field: null }],
      tools: [{ type: "function", function: { name: "f", new_field: 2 }, new_field: 3 }],
    });
    const { sent, omitted } = await send(body, key);
    expect(sent).toBe(body.replace(model, "llama"));
    expect(omitted).toEqual([]);
  });

  it.each(["fx-o", "fx-open"])("is refused when it is strict and has such fields, at %s", async (model) => {
    const refused = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ ...HI, model, new_field: 1, parley: { strict: true } }),
    });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("new_field")]);
  });

  it("has nothing that is for the gateway, about earlier answers, or null", async () => {
    const message = { role: "assistant", content: "Hm.", refusal: null, annotations: [], reasoning_content: "x" };
    const messages = [
      { role: "user", content: "Hi" },
      { ...message, function_call: null, audio: null },
      HI.messages[0],
    ];
    const fields = { messages, parley: { strict: false }, fallback_models: ["fx-open"], top_p: null };
    expect(await sentOf(fields)).toEqual({
      model: "llama",
      messages: [messages[0], { role: "assistant", content: "Hm." }, messages[2]],
    });
  });

  it("is corrected where a server would refuse it, and keeps the rest", async () => {
    const picture = (type: string) => ({ type: "image_url", image_url: { url: `data:image/${type};base64,${PNG}` } });
    const question = { content: [{ text: "Look.", type: "text" }, picture("jpeg")], role: "user" };
    const sent = await sentOf({ messages: [{ role: "developer", content: [{ type: "text", text: "a" }] }, question] });
    expect(sent).toEqual({
      model: "llama",
      messages: [
        { role: "system", content: [{ type: "text", text: "a" }] },
        { ...question, content: [question.content[0], picture("png")] },
      ],
    });
  });

  it("keeps the quirks of its server", async () => {
    const schema = { name: "s", schema: { type: "object" } };
    const sent = (await sentOf({
      model: "fx-old",
      n: 1,
      max_tokens: 9,
      messages: [
        { role: "user", content: [{ type: "text", text: "a" }] },
        { role: "system", content: "b" },
        { role: "user", content: [{ type: "text", text: "c" }] },
      ],
      response_format: { type: "json_schema", json_schema: schema },
    })) as Json;
    const instruction = `b\n\nAnswer only with a JSON object that satisfies this JSON Schema: ${JSON.stringify(schema.schema)}.`;
    expect(sent).toEqual({
      model: "llama",
      max_completion_tokens: 9,
      messages: [
        { role: "system", content: instruction },
        { role: "user", content: "a" },
        { role: "user", content: "c" },
      ],
      response_format: { type: "json_object" },
    });
  });

  it("has a limit of tokens under a budget, and no option that the key may not use", async () => {
    const fields = { service_tier: "priority", store: true, web_search_options: {}, new_field: 1 };
    const { sent, omitted } = await send({ ...HI, ...fields }, budgetKey);
    expect(JSON.parse(sent)).toEqual({
      model: "llama",
      messages: HI.messages,
      max_tokens: expect.any(Number) as number,
    });
    expect(omitted.toSorted()).toEqual(["new_field", "service_tier", "store", "web_search_options"]);
  });

  it("keeps its blanks, the digits of its numbers, and the order of numbered fields", async () => {
    const body =
      '{ "logit_bias": {"9":1,"1":-1.50}, "temperature" : 5e-1,\n "parley": {}, "model":"fx-o", "tools":[{"type":"function","function":' +
      '{"name":"f","parameters":{"type":"object","const":12345678901234567890}}}],\t"messages":[ {"role":"user","content":"\\u00e4"} ] }';
    const { sent } = await send(body);
    expect(sent).toBe(body.replace('\n "parley": {},', "").replace("fx-o", "llama"));
    const repeated = body.replace('"role":"user",', '"role":"user","role":"user",');
    expect((await send(repeated)).sent).toBe(JSON.stringify(JSON.parse(sent)));
  });

  it("has the last one of two fields of a name, which is the one that was checked", async () => {
    const { sent } = await send(
      '{"max_tokens":64000,"model":"fx-o","max_tokens":7,"messages":[{"role":"user","content":"Hi"}]}',
    );
    expect(sent).toBe('{"max_tokens":7,"model":"llama","messages":[{"role":"user","content":"Hi"}]}');
  });

  it("asks for the usage of a stream, whatever its caller says", async () => {
    answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const [{ message, finish_reason }] = ANSWER.choices as [(typeof ANSWER.choices)[0]];
      const chunk = { choices: [{ index: 0, delta: message, finish_reason }], usage: ANSWER.usage };
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    };
    const stream_options = { include_obfuscation: false, include_usage: false };
    const body = { stream_options, stream: true, ...HI };
    await send(body);
    const sent = (): unknown => JSON.parse(upstream.exchanges.at(-1)!.body);
    expect(sent()).toEqual({ ...body, model: "llama", stream_options: { include_usage: true } });
    await send({ ...body, model: "fx-open" });
    expect(sent()).toEqual({ ...body, model: "llama", stream_options: { ...stream_options, include_usage: true } });
  });

  it("passes the words of a refusal on that is about what only its caller wrote", async () => {
    const message = "Unknown parameter: 'new_field'.";
    const error = { message, type: "invalid_request_error", param: "new_field", code: "unknown_parameter" };
    answer = ({ response }) => answerJson(response, 400, { error });
    const statusFor = async (model: string): Promise<readonly [number, boolean]> => {
      const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({ ...HI, model, new_field: 1 }),
      });
      return [response.status, (await response.text()).includes(message)];
    };
    expect(await statusFor("fx-open")).toEqual([400, true]);
    expect(await statusFor("fx-o")).toEqual([500, false]);
  });
});
