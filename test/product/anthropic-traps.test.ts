import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readState } from "../../src/formats/anthropic/state.ts";
import { eventsOf, type Json, messageOf } from "../formats/anthropic/stream-support.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { withoutSeals, withSeals } from "../support/seals.ts";
import { ANSWER, formatFixtureModels, GEMINI_ANSWER } from "./support/format-fixtures.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/*
 * What clients of the Messages API were seen to do, and what went wrong with gateways: through the running gateway, with
 * providers of each dialect behind it.
 */

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const { providers, models } = formatFixtureModels(upstream.url);
  const { "fx-a": first } = models as Readonly<Record<string, object>>;
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      limits: { requests_per_minute: 100_000, tokens_per_minute: 100_000_000 },
      providers,
      models: { ...models, "fx-new": { ...first, capabilities: { mid_conversation_system: true } } },
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

/** Answers with the events of a stream of the Anthropic dialect. */
function streaming(...events: Json[]): void {
  answer = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((one) => `event: ${String(one["type"])}\ndata: ${JSON.stringify(one)}\n\n`).join(""));
  };
}

interface Sent {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(fields: object, { path = "/v1/messages", method = "POST", headers }: Sent = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    method,
    headers: { "content-type": "application/json", ...(headers ?? { "x-api-key": gateway.key }) },
    ...(method === "POST" && {
      body: JSON.stringify({ model: "fx-a", max_tokens: 100, messages: [{ role: "user", content: "Hi" }], ...fields }),
    }),
  });
}

/** The body that the provider was sent for a request that is answered. */
async function sentFor(fields: object, sent: Sent = {}): Promise<Json> {
  const response = await ask(fields, sent);
  expect(`${response.status} ${response.status === 200 ? "" : await response.text()}`).toBe("200 ");
  return JSON.parse(upstream.exchanges.at(-1)!.body) as Json;
}

const omittedOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { parley: { omitted: unknown } }).parley.omitted;

describe("keys and headers", () => {
  it.each([
    ["x-api-key", (key: string) => ({ "x-api-key": key })],
    ["a bearer token", (key: string) => ({ authorization: `Bearer ${key}` })],
    ["both, when they are the same", (key: string) => ({ "x-api-key": key, authorization: `Bearer ${key}` })],
  ])("are taken as %s", async (_, headers) => {
    expect((await ask({}, { headers: headers(gateway.key) })).status).toBe(200);
  });

  it("that name unknown betas reach providers of this dialect, but for counts; a version does not", async () => {
    const headers = {
      "x-api-key": gateway.key,
      "anthropic-beta": "claude-code-20250219,something-new-2027-01-01",
      "anthropic-version": "2027-01-01",
      "anthropic-dangerous-direct-browser-access": "true",
      "x-app": "cli",
    };
    for (const [path, betas] of [
      ["/v1/messages?beta=true", "claude-code-20250219,something-new-2027-01-01"],
      ["/v1/messages/count_tokens?beta=true", undefined],
    ]) {
      expect((await ask({}, { path: path!, headers })).status).toBe(200);
      const sent = upstream.exchanges.at(-1)!.request.headers;
      expect([sent["anthropic-beta"], sent["anthropic-version"]]).toEqual([betas, "2023-06-01"]);
    }
  });

  it("of every answer have the request's ID, and those of a completion the caller's limits", async () => {
    const response = await ask({});
    expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
    expect(response.headers.get("anthropic-ratelimit-requests-limit")).toBe("100000");
    expect(response.headers.get("anthropic-ratelimit-tokens-reset")).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const refused = await ask({}, { headers: {} });
    expect(refused.headers.get("request-id")).toMatch(/^req_/);
  });
});

describe("errors are in this format", () => {
  const bodyOf = async (response: Response): Promise<object> => ({
    status: response.status,
    ...((await response.json()) as object),
  });

  it.each<[string, object, Sent, number, string]>([
    ["without a key", {}, { headers: {} }, 401, "authentication_error"],
    ["at a path without a route", {}, { path: "/v1/messages/batches" }, 404, "not_found_error"],
    ["for another method", {}, { method: "GET" }, 404, "not_found_error"],
    ["for a body of another type", {}, { headers: { "content-type": "text/plain" } }, 401, "authentication_error"],
    ["for an unknown model", { model: "nope" }, {}, 404, "not_found_error"],
    ["for more tokens than the model has", { max_tokens: 64_001 }, {}, 400, "invalid_request_error"],
  ])("%s", async (_, fields, sent, status, type) => {
    const body = await bodyOf(await ask(fields, sent));
    expect(body).toMatchObject({ status, type: "error", error: { type }, request_id: expect.any(String) as string });
  });

  it("with the provider's words about a prompt that is too long", async () => {
    const message = "prompt is too long: 215000 tokens > 200000 maximum";
    answer = ({ response }) =>
      answerJson(response, 400, { type: "error", error: { type: "invalid_request_error", message } });
    const body = await bodyOf(await ask({}));
    expect(body).toMatchObject({ status: 400, error: { message: expect.stringContaining(message) as string } });
  });

  it("for a thread, so that clients send the whole conversation", async () => {
    const body = await bodyOf(await ask({ thread: { type: "continue", previous_message_id: "msg_1" } }));
    expect(body).toMatchObject({ status: 400, error: { details: { error_code: "thread_unsupported_request" } } });
  });
});

describe("what agents send", () => {
  it("with a system message after the first one stays where it is, for a model that takes it", async () => {
    const messages = [
      { role: "user", content: "Run echo" },
      { role: "system", content: "Agents: none." },
    ];
    const turns = (body: Json): unknown[] => (body["messages"] as Json[]).map(({ role }) => role);
    expect(turns(await sentFor({ model: "fx-new", messages }))).toEqual(["user", "system"]);
    const older = await sentFor({ messages });
    expect(turns(older)).toEqual(["user"]);
    expect(older["system"]).toEqual([{ type: "text", text: "Agents: none." }]);
  });

  it("in front of the system prompt for their bill stays there for providers of the dialect alone", async () => {
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.197.931;" },
      { type: "text", text: "Be brief." },
    ];
    expect((await sentFor({ system })).system).toEqual(system);
    expect((await sentFor({ system: system[0]!.text })).system).toEqual(system[0]!.text);
    expect((await sentFor({ system: system.toReversed() })).system).toEqual([system[1]]);
  });

  it("goes to a provider of the dialect as it came", async () => {
    const same = {
      stop_sequences: ["END"],
      top_k: 40,
      temperature: 0.5,
      metadata: { user_id: `{"device_id":"d","session_id":"s"}` },
      service_tier: "auto",
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      tools: [
        {
          name: "Bash",
          description: "Runs",
          input_schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: {} },
        },
        { type: "web_search_20250305", name: "web_search", max_uses: 8 },
      ],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      messages: [
        { role: "user", content: [{ type: "text", text: "Look" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm", signature: "c2ln" },
            { type: "redacted_thinking", data: "cmVk" },
            { type: "text", text: "Searching" },
            { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
            { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
            { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "toolu_1",
              content: [
                { type: "text", text: "a picture" },
                { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
              ],
              is_error: true,
              cache_control: { type: "ephemeral" },
            },
            { type: "search_result", source: "https://x", title: "T", content: [{ type: "text", text: "t" }] },
            {
              type: "document",
              source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
              title: "T",
              citations: { enabled: true },
            },
          ],
        },
      ],
    };
    const sealed = withSeals(same, (state) => gateway.seal("a", state));
    const { model: _, max_tokens: __, ...body } = await sentFor(sealed);
    expect(body).toEqual(same);
  });

  it.each([{ type: "enabled", budget_tokens: -1 }, { type: "enabled" }, { type: "enabled", budget_tokens: 32_000 }])(
    "as a budget is never refused: %j",
    async (thinking) => {
      expect((await ask({ thinking, max_tokens: 8000, temperature: 1 })).status).toBe(200);
    },
  );

  it("as a picture in a tool's result is kept", async () => {
    const source = { type: "base64", media_type: "image/png", data: PIXEL };
    const messages = [
      { role: "user", content: "Look" },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "see", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "image", source }] }] },
    ];
    for (const model of ["fx-a", "fx-g"]) expect(JSON.stringify(await sentFor({ model, messages }))).toContain(PIXEL);
  });

  it("as tools of the provider is left out for another dialect, and listed", async () => {
    const tools = [
      { name: "f", input_schema: { type: "object" } },
      { type: "web_search_20250305", name: "web_search" },
    ];
    const response = await ask({ model: "fx-g", tools });
    expect(response.status).toBe(200);
    expect(await omittedOf(response)).toEqual(["tools.1"]);
  });

  it("and no dialect knows is listed by the caller's names", async () => {
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text: "Hi", cache_control: { type: "ephemeral" } },
          { type: "search_result", source: "https://x", title: "T", content: [] },
        ],
      },
    ];
    const response = await ask({ model: "fx-g", context_management: { edits: [] }, messages, top_k: 3 });
    expect(await omittedOf(response)).toEqual([
      "messages.0.content.1",
      "context_management",
      "messages.0.content.0.cache_control",
    ]);
  });

  it("and Parley does not know reaches providers of this dialect as it came", async () => {
    const edits = [{ type: "clear_tool_uses_20250919", keep: { type: "tool_uses", value: 2 } }];
    const response = await ask({ context_management: { edits }, something_new: [1, { a: null }] });
    expect(await omittedOf(response)).toEqual([]);
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).toMatchObject({
      context_management: { edits },
      something_new: [1, { a: null }],
    });
  });

  it("and the provider does not take is refused in the provider's words", async () => {
    const message = "context_management: Extra inputs are not permitted";
    answer = ({ response }) =>
      answerJson(response, 400, { type: "error", error: { type: "invalid_request_error", message } });
    const response = await ask({ context_management: {} });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", message } });
  });

  it("as reasoning of another provider does not reach one that would refuse it", async () => {
    answer = ({ response }) =>
      answerJson(response, 200, {
        candidates: [
          {
            content: {
              role: "model",
              parts: [{ functionCall: { id: "c1", name: "f", args: {} }, thoughtSignature: "c2ln" }],
            },
            index: 0,
            finishReason: "STOP",
          },
        ],
      });
    const tools = [{ name: "f", input_schema: { type: "object", properties: {} } }];
    const { content } = (await (await ask({ model: "fx-g", tools })).json()) as { content: Json[] };
    expect(content.map(({ type }) => type)).toEqual(["thinking", "tool_use"]);
    const { toolCall, signature = "" } = readState(String(content[0]!["signature"])) ?? {};
    expect([toolCall, withoutSeals(signature)]).toEqual(["c1", "c2ln"]);
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "x" }] },
    ];
    answer = ({ request, response }) =>
      answerJson(response, 200, request.url?.startsWith("/v1beta/") === true ? GEMINI_ANSWER : ANSWER);
    const same = JSON.stringify(await sentFor({ model: "fx-g", tools, messages }));
    expect(same).toContain(`"thoughtSignature":"c2ln"`);
    const other = await sentFor({ tools, messages });
    expect((other["messages"] as Json[])[1]).toEqual({
      role: "assistant",
      content: [{ type: "tool_use", id: "c1", name: "f", input: {} }],
    });
  });
});

describe("streams", () => {
  const START = {
    type: "message_start",
    message: { ...ANSWER, content: [], stop_reason: null, usage: { input_tokens: 12, output_tokens: 1 } },
  };
  const END = [
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: "message_stop" },
  ];

  it("have the calls and results of tools that the provider runs", async () => {
    const call = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search" };
    const result = {
      type: "web_search_tool_result",
      tool_use_id: "srvtoolu_1",
      content: [{ type: "web_search_result" }],
    };
    const found = {
      type: "web_search_result_location",
      url: "https://x",
      title: "T",
      cited_text: "c",
      encrypted_index: "e",
    };
    streaming(
      START,
      { type: "content_block_start", index: 0, content_block: { ...call, input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: `{"query":"x"}` } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: result },
      { type: "content_block_stop", index: 1 },
      { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "Found." } },
      { type: "content_block_delta", index: 2, delta: { type: "citations_delta", citation: found } },
      { type: "content_block_stop", index: 2 },
      ...END,
    );
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    const stream = await (await ask({ stream: true, tools, tool_choice: { type: "tool", name: "web_search" } })).text();
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).toMatchObject({
      tools,
      tool_choice: { type: "tool", name: "web_search" },
    });
    expect(messageOf(stream)).toMatchObject({
      content: [
        { ...call, input: { query: "x" } },
        result,
        { type: "text", text: "Found.", citations: [{ url: "https://x", cited_text: "c" }] },
      ],
      usage: { input_tokens: 12, output_tokens: 7 },
    });
  });

  it("begin with an estimate of the input above 0", async () => {
    streaming(START, { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hi" } }, ...END);
    const [start] = eventsOf(await (await ask({ stream: true })).text());
    const { usage } = start!["message"] as { usage: { input_tokens: number } };
    expect(usage.input_tokens).toBeGreaterThan(0);
  });

  it("that break off end with an error event, and without the end of the message", async () => {
    streaming(START, { type: "content_block_start", index: 0, content_block: { type: "text", text: "Half" } });
    const events = eventsOf(await (await ask({ stream: true })).text());
    expect(events.at(-1)).toMatchObject({
      type: "error",
      error: { type: "api_error" },
      request_id: expect.any(String) as string,
    });
    expect(events.map(({ type }) => type)).not.toContain("message_stop");
  });
});

describe("counting", () => {
  it("takes what a client counts, without max_tokens, and the provider's number", async () => {
    answer = ({ response }) => answerJson(response, 200, { input_tokens: 42 });
    const response = await ask({ max_tokens: undefined, tools: [] }, { path: "/v1/messages/count_tokens" });
    expect(await response.json()).toEqual({ input_tokens: 42 });
    expect(upstream.exchanges.at(-1)!.request.url).toBe("/v1/messages/count_tokens");
  });

  it("estimates rather too high where the provider does not answer", async () => {
    answer = ({ response }) => answerJson(response, 500, {});
    const content = "word ".repeat(1000);
    const path = "/v1/messages/count_tokens";
    const response = await ask({ messages: [{ role: "user", content }] }, { path });
    expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(1250);
  });
});

it("a request that only warms a connection up is no error in the log", async () => {
  for (const path of ["/", "/api/hello"]) await ask({}, { path, method: "HEAD" });
  const errors = gateway.log.filter(({ level }) => Number(level) >= 50);
  expect(errors).toEqual([]);
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
