import { readdirSync, readFileSync } from "node:fs";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createKey } from "../../src/access/keys.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { withSeals } from "../support/seals.ts";
import { ANSWER, formatFixtureModels, GEMINI_ANSWER } from "./support/format-fixtures.ts";
import type { Json } from "./support/fixtures.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* What a provider gets of a request that is written in its own dialect. */

const FOLDER = new URL("../fixtures/formats/clients/", import.meta.url);

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;
/** A key with a budget. */
let budgetKey: string;

/** Requests that real clients sent to a path, by the client. */
function readRecorded(path: RegExp): (readonly [name: string, request: { path: string; headers: Json; body: Json }])[] {
  return readdirSync(FOLDER)
    .filter((name) => name !== "omitted.json")
    .map((name) => [name, JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"))] as const)
    .filter(([, request]) => path.test((request as { path: string }).path)) as never;
}

const GEMINI = readRecorded(/:(streamG|g)enerateContent/);
const MESSAGES = readRecorded(/^\/v1\/messages(\?|$)/);
/** What has to be changed: budgets for reasoning that the provider refuses. */
const CHANGED: ReadonlyMap<string, Json> = new Map([
  ["opencode-03-messages-title.json", { thinking: { type: "enabled", budget_tokens: -1 } }],
  ["qwen-02-messages.json", { thinking: { type: "enabled", budget_tokens: 32_000 } }],
]);

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const { providers, models } = formatFixtureModels(upstream.url);
  const { "fx-a": first, "fx-g": second } = models as Readonly<Record<string, object>>;
  // What Claude Code takes its model for.
  const capabilities = {
    reasoning: "adaptive",
    reasoning_efforts: ["low", "medium", "high", "max"],
    mid_conversation_system: true,
    json_schema: true,
  };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      limits: { requests_per_minute: 100_000, tokens_per_minute: 100_000_000 },
      providers,
      models: {
        ...models,
        "fx-new": { ...first, upstream_model: "claude-new", capabilities },
        "fx-3": { ...second, price: { input: 3, output: 15 } },
        "fx-2": { ...first, price: { input: 3, output: 15 } },
      },
    },
    prepareKeys: async (context) => {
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 10_000_000 };
      budgetKey = (await createKey(context, { name: "small", limits })).secret;
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  answer = ({ request, response }) =>
    answerJson(response, 200, request.url?.startsWith("/v1beta/") === true ? GEMINI_ANSWER : ANSWER);
});

interface Answered {
  readonly sent: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly omitted: readonly string[];
}

async function send(path: string, body: string, headers: object = {}): Promise<Answered> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}`, ...headers },
    body,
  });
  const text = await response.text();
  expect(`${response.status} ${response.status === 200 ? "" : text}`).toBe("200 ");
  const exchange = upstream.exchanges.at(-1)!;
  const omitted = /"omitted":(\[[^\]]*\])/.exec(text)?.[1] ?? "[]";
  return { sent: exchange.body, headers: exchange.request.headers, omitted: JSON.parse(omitted) as string[] };
}

/** Sends fields of a Messages request. */
function ask(fields: object, headers?: object): Promise<Answered> {
  const request = { model: "fx-a", max_tokens: 100, messages: [{ role: "user", content: "Hi" }], ...fields };
  return send("/v1/messages", JSON.stringify(request), headers);
}

describe("a Messages request to a provider of the dialect", () => {
  it.each(MESSAGES)("of %s arrives as it came", async (name, { path, headers, body }) => {
    const asked = { ...body, model: "fx-new", stream: undefined, ...(CHANGED.has(name) && { thinking: undefined }) };
    const { sent, omitted, headers: got } = await send(path, JSON.stringify(asked), headers);
    expect(omitted).toEqual([]);
    // A whole answer with a high token limit is fetched as a stream.
    const { stream: _, ...rest } = JSON.parse(sent) as Json;
    expect(rest).toEqual({ ...asked, model: "claude-new" });
    expect(got["anthropic-beta"]).toBe(headers["anthropic-beta"]);
  });

  it.each([...CHANGED])("of %s is not sent with its budget", async (name, { thinking }) => {
    const [, { path, headers, body }] = MESSAGES.find(([one]) => one === name)!;
    expect(body["thinking"]).toEqual(thinking);
    const { sent } = await send(path, JSON.stringify({ ...body, model: "fx-a", stream: undefined }), headers);
    expect((JSON.parse(sent) as Json)["thinking"]).not.toEqual(thinking);
  });

  it("arrives to the byte, but for the model", async () => {
    const body =
      '{"max_tokens":100,"model":"fx-a","system":"Be brief.","messages":[{"role":"user","content":"Hi","name":"x"},' +
      '{"role":"user","content":[{"text":"there","type":"text","new_field":[1,null]}]},{"role":"assistant","content":' +
      '[{"type":"tool_use","id":"t1","name":"f","input":{"b":1,"a":2}}]},{"role":"user","content":[{"type":"tool_result",' +
      '"tool_use_id":"t1","is_error":false,"content":"ok"}]}],"tools":[{"input_schema":{"type":"object"},"name":"f",' +
      '"defer_loading":true}],"new_field":{"z":1,"a":[]}}';
    const { sent, omitted } = await send("/v1/messages", body);
    expect(sent).toBe(body.replace("fx-a", "claude-sonnet-4-5"));
    expect(omitted).toEqual([]);
  });

  it("keeps its blanks, and the digits of its numbers", async () => {
    const body =
      '{ "model" : "fx-a", "max_tokens" : 1e2,\n"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[' +
      '{"type":"tool_use","id":"t1","name":"f","input":{"id": 12345678901234567890}}]},{"role":"user","content":[' +
      '{"type":"tool_result","tool_use_id":"t1","content":"\\u00e4"}]}], "tools":[{"name":"f","input_schema":{"type":"object"}}]}';
    const { sent } = await send("/v1/messages", body);
    expect(sent).toBe(body.replace("fx-a", "claude-sonnet-4-5"));
  });

  it("has the last one of two fields of a name, which is the one that was checked", async () => {
    const body = '{"max_tokens":64000,"model":"fx-a","max_tokens":7,"messages":[{"role":"user","content":"Hi"}]}';
    const { sent } = await send("/v1/messages", body);
    expect(sent).toBe('{"max_tokens":7,"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hi"}]}');
  });

  it("has no fields that are for the gateway, and no personal address", async () => {
    const metadata = { user_id: "someone@example.org", trace: "t" };
    const { sent } = await ask({ parley: { strict: false }, fallback_models: ["fx-2"], metadata });
    const body = JSON.parse(sent) as Json;
    expect(Object.keys(body)).toEqual(["model", "max_tokens", "messages", "metadata"]);
    expect(body["metadata"]).toEqual({ user_id: expect.stringMatching(/^[0-9a-f]{64}$/) as string, trace: "t" });
  });

  it.each<[string, object, object]>([
    [
      "blank texts",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: " " },
              { type: "text", text: "Hi" },
            ],
          },
        ],
      },
      { messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] },
    ],
    [
      "a picture of another type than it says",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/jpeg", data: "iVBORw0KGgo=" } }],
          },
        ],
      },
      {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } }],
          },
        ],
      },
    ],
  ])("is corrected where the provider would refuse it: %s", async (_, fields, corrected) => {
    const { sent } = await ask(fields);
    expect(JSON.parse(sent)).toMatchObject(corrected);
  });

  it("loses what its key may not use, and says so", async () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "Hi", new_field: 1 }] }];
    const fields = { model: "fx-2", messages, new_field: 1, service_tier: "auto", max_tokens: undefined };
    const { sent, omitted } = await ask(fields, { authorization: `Bearer ${budgetKey}` });
    expect(sent).not.toMatch(/new_field|service_tier/);
    expect(JSON.parse(sent)).toMatchObject({ max_tokens: expect.any(Number) as number });
    expect(omitted).toEqual(["messages.0.content.0.new_field", "new_field"]);
  });

  it("keeps what it is without, under a budget too", async () => {
    const { sent } = await ask(
      { model: "fx-2", system: "Be brief.", service_tier: "auto" },
      { authorization: `Bearer ${budgetKey}` },
    );
    expect(JSON.parse(sent)).toEqual({
      model: "claude-sonnet-4-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
      system: "Be brief.",
    });
  });

  it("is translated for a fallback of another dialect, which says what is lost", async () => {
    const serve = answer;
    answer = (exchange) => {
      if (exchange.request.url?.startsWith("/v1/messages") === true) answerJson(exchange.response, 529, {});
      else serve(exchange);
    };
    const { sent, omitted } = await ask({ fallback_models: ["fx-g"], new_field: 1, system: "Be brief." });
    expect(JSON.parse(sent)).toMatchObject({ systemInstruction: { parts: [{ text: "Be brief." }] } });
    expect(omitted).toEqual(["new_field"]);
  });
});

describe("a request of Gemini's format to a provider of the dialect", () => {
  it.each(GEMINI)("of %s arrives as it came", async (_, given) => {
    const body = JSON.stringify(given.body);
    const sealed = JSON.stringify(withSeals(given.body, (state) => gateway.seal("g", state)));
    const { sent, omitted } = await send("/v1beta/models/fx-g:generateContent", sealed, given.headers);
    expect(omitted).toEqual([]);
    expect(sent).toBe(body);
  });

  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];

  it("arrives to the byte", async () => {
    const body =
      '{"systemInstruction":{"role":"user","parts":[{"text":"Be brief."}]},"newField":{"b":1,"a":2},"contents":[{"parts":[' +
      '{"text":"Call f."}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"b":1,"a":2}},"thoughtSignature":' +
      '"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"x":1}},"newField":1}]}],"tools":[{' +
      '"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}}},"behavior":' +
      '"BLOCKING"}]}],"generationConfig":{"topK":3,"temperature":0.5,"enableEnhancedCivicAnswers":true}}';
    const sealed = body.replace("c2ln", gateway.seal("g", "c2ln"));
    const { sent, omitted } = await send("/v1beta/models/fx-g:generateContent", sealed);
    expect(sent).toBe(body);
    expect(omitted).toEqual([]);
  });

  it("keeps its blanks, the digits of its numbers, and its spelling of fields below the request", async () => {
    const body =
      '{ "contents" : [{"role":"user","parts":[{"text":"\\u00e4"}]}],\n"newField":{"id": 12345678901234567890},' +
      '"generationConfig":{"temperature": 0.50, "max_output_tokens":1e2} }';
    const { sent } = await send("/v1beta/models/fx-g:generateContent", body);
    expect(sent).toBe(body);
  });

  it("has one of two fields of a name, where it also has objects in place of lists", async () => {
    const body =
      '{"contents":{"parts":{"text":"Hi"}},"system_instruction":{"parts":[{"text":"a"}]},' +
      '"generation_config":{"maxOutputTokens":60000,"maxOutputTokens":5}}';
    const { sent } = await send("/v1beta/models/fx-g:generateContent", body);
    const config = '"generationConfig":{"maxOutputTokens":5}';
    expect(sent).toBe(
      `{"contents":[{"parts":[{"text":"Hi"}]}],"systemInstruction":{"parts":[{"text":"a"}]},${config}}`,
    );
  });

  it("has its names at the top in one spelling", async () => {
    const body = '{"contents":[{"parts":[{"text":"Hi"}]}],"system_instruction":{"parts":[{"text":"a"}]} }';
    const { sent } = await send("/v1beta/models/fx-g:generateContent", body);
    expect(JSON.parse(sent)).toEqual({
      contents: [{ parts: [{ text: "Hi" }] }],
      systemInstruction: { parts: [{ text: "a" }] },
    });
  });

  it("keeps the alphabet of its base64, of which the provider takes both", async () => {
    const data = Buffer.from("89504e470d0a1a0a00fbefbe", "hex").toString("base64url");
    const parts = [{ text: "Look." }, { inlineData: { mimeType: "image/png", data } }];
    const { sent } = await send("/v1beta/models/fx-g:generateContent", JSON.stringify({ contents: [{ parts }] }));
    expect(data).toMatch(/[-_]/);
    expect(JSON.parse(sent)).toEqual({ contents: [{ parts }] });
  });

  it("of pictures asks for text alone, as everywhere", async () => {
    const { sent } = await send("/v1beta/models/fx-gi:generateContent", JSON.stringify({ contents, newField: 1 }));
    expect(JSON.parse(sent)).toEqual({ contents, newField: 1, generationConfig: { responseModalities: ["TEXT"] } });
  });

  it("under a budget has nothing that Parley does not know, and a limit of tokens", async () => {
    const fields = { contents: [{ parts: [{ text: "Hi", newField: 1 }] }], newField: 1 };
    const headers = { authorization: `Bearer ${budgetKey}` };
    const { sent, omitted } = await send("/v1beta/models/fx-3:generateContent", JSON.stringify(fields), headers);
    expect(JSON.parse(sent)).toEqual({ contents, generationConfig: { maxOutputTokens: expect.any(Number) as number } });
    expect(omitted).toEqual(["newField"]);
  });
});

/*
 * Anthropic's protocol for gateways between Claude Code and its API, line by line:
 * https://code.claude.com/docs/en/llm-gateway-protocol (read in November 2026).
 */
describe("llm-gateway-protocol", () => {
  const [, claude] = MESSAGES.find(([name]) => name.startsWith("claude-02"))!;
  const asClaude = (fields: object = {}): string => {
    const { stream: _, ...body } = claude.body;
    return JSON.stringify({ ...body, model: "fx-new", ...fields });
  };
  const raw = (body: string, headers: object = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${gateway.httpPort}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}`, ...headers },
      body,
    });

  it("serves /v1/messages, /v1/messages/count_tokens, and /v1/models for the discovery of models", async () => {
    answer = ({ request, response }) =>
      answerJson(response, 200, request.url === "/v1/messages/count_tokens" ? { input_tokens: 7 } : ANSWER);
    expect((await raw(asClaude())).status).toBe(200);
    const { max_tokens: _, ...counted } = JSON.parse(asClaude()) as Json;
    const at = `http://127.0.0.1:${gateway.httpPort}`;
    const headers = { "content-type": "application/json", "x-api-key": gateway.key, "anthropic-version": "2023-06-01" };
    const counting = { method: "POST", headers, body: JSON.stringify(counted) };
    const count = await fetch(`${at}/v1/messages/count_tokens?beta=true`, counting);
    expect(await count.json()).toEqual({ input_tokens: 7 });
    const models = (await (await fetch(`${at}/v1/models?limit=1000`, { headers })).json()) as { data: Json[] };
    expect(models.data.map(({ id }) => id)).toContain("fx-new");
  });

  it("forwards anthropic-beta, anthropic-version and unknown anthropic-* headers as they are", async () => {
    const forwarded = {
      "anthropic-beta": String(claude.headers["anthropic-beta"]),
      "anthropic-version": "2023-06-01",
      "anthropic-something-new": "a; b=1",
    };
    const { headers } = await send("/v1/messages?beta=true", asClaude(), forwarded);
    expect(headers).toMatchObject(forwarded);
  });

  it("reads the headers that attribute requests, and forwards none", async () => {
    const attributing = { "x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a1", "x-app": "cli" };
    const { headers } = await send("/v1/messages", asClaude(), attributing);
    for (const name of Object.keys(attributing)) expect(headers).not.toHaveProperty(name);
    expect(headers["x-api-key"]).toBe("credential");
    expect(headers).not.toHaveProperty("authorization");
  });

  it("forwards the list of system texts untouched, the one for the bill first", async () => {
    const { sent } = await send("/v1/messages", asClaude());
    const { system } = JSON.parse(sent) as { system: { text: string }[] };
    expect(system).toEqual(claude.body["system"]);
    expect(system[0]!.text).toMatch(/^x-anthropic-billing-header:/);
  });

  it("forwards unknown fields of the body, at any place", async () => {
    const messages = [
      {
        role: "user",
        content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral", scope: "global" }, extra: 1 }],
      },
    ];
    const { sent } = await send("/v1/messages", asClaude({ messages, something_new: { a: [null] } }));
    expect(JSON.parse(sent)).toMatchObject({ messages, something_new: { a: [null] } });
  });

  it("forwards a beta's header and its fields together, or neither", async () => {
    const headers = { "anthropic-beta": "context-management-2025-06-27" };
    const fields = { model: "fx-2", context_management: { edits: [] }, messages: [{ role: "user", content: "Hi" }] };
    const both = await ask(fields, headers);
    expect([both.headers["anthropic-beta"], JSON.parse(both.sent)]).toMatchObject([
      headers["anthropic-beta"],
      { context_management: { edits: [] } },
    ]);
    const neither = await ask(fields, { ...headers, authorization: `Bearer ${budgetKey}` });
    expect([neither.headers["anthropic-beta"], JSON.parse(neither.sent) as Json]).toEqual([
      undefined,
      expect.not.objectContaining({ context_management: expect.anything() as unknown }),
    ]);
    expect(neither.omitted).toEqual(["anthropic-beta", "context_management"]);
  });

  it.each([
    "prompt is too long: 215000 tokens > 200000 maximum",
    "messages.1.content.0: `thinking` blocks cannot be modified",
    "context_management: Extra inputs are not permitted",
  ])("passes the words of the provider's refusal on: %s", async (message) => {
    answer = ({ response }) =>
      answerJson(response, 400, { type: "error", error: { type: "invalid_request_error", message } });
    const response = await raw(asClaude());
    const { error } = (await response.json()) as { error: Json };
    expect([response.status, error["type"]]).toEqual([400, "invalid_request_error"]);
    expect(error["message"]).toContain(message);
  });

  it("says after how many whole seconds to retry, and what is left of the caller's limits", async () => {
    answer = ({ response }) => {
      response.writeHead(529, { "content-type": "application/json", "retry-after": "2" });
      response.end('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}');
    };
    const overloaded = await raw(asClaude());
    expect(overloaded.status).toBe(503);
    expect(overloaded.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(overloaded.headers.get("anthropic-ratelimit-requests-remaining")).toMatch(/^\d+$/);
  });
});

describe("a request with a field that a server may take for another one", () => {
  const messages = [{ role: "user", content: "Hi" }];
  it.each([
    ["/v1/messages", { max_tokens: 10, messages, Model: "dear" }, "Model"],
    ["/v1/messages", { max_tokens: 10, messages, MAX_TOKENS: 100_000 }, "MAX_TOKENS"],
    ["/v1/messages", { max_tokens: 10, messages, ſtream: true }, "ſtream"],
    ["/v1/messages", { max_tokens: 10, messages: [{ ...messages[0], Content: "Other" }] }, "messages.0.Content"],
    [
      "/v1/messages",
      { max_tokens: 10, messages, tools: [{ Type: "web_search", name: "f", input_schema: {} }] },
      "Type",
    ],
    ["/v1/chat/completions", { messages, Model: "dear" }, "Model"],
    ["/v1/responses", { input: "Hi", Max_Output_Tokens: 100_000 }, "Max_Output_Tokens"],
    ["/v1beta/models/fx-g:generateContent", { contents: [{ parts: [{ text: "Hi" }] }], Tools: [] }, "Tools"],
  ])("is refused: %s %j", async (path, fields, name) => {
    const before = upstream.exchanges.length;
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ ...(path.startsWith("/v1/") && { model: "fx-a" }), ...fields }),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(`${name}: must be written `);
    expect(upstream.exchanges.length).toBe(before);
  });

  it("is not one with such names in a schema", async () => {
    const schema = { type: "object", properties: { id: { type: "string" }, ID: { type: "string" }, Type: {} } };
    const { sent } = await ask({ tools: [{ name: "f", input_schema: schema }] });
    expect(JSON.parse(sent)).toMatchObject({ tools: [{ input_schema: schema }] });
  });
});
