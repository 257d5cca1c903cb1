import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerJson, beginStream, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* Tools of the Responses API that the provider runs, or that only its models call, and their items. */

type Json = Readonly<Record<string, unknown>>;

/** What a tool does between its begin and its end, by the type of its item. */
const WORKING: Readonly<Record<string, string>> = {
  web_search_call: "searching",
  file_search_call: "searching",
  code_interpreter_call: "interpreting",
};
const OWN = { type: "function", name: "f", parameters: { type: "object" }, strict: false };
const TOOLS = [
  OWN,
  { type: "web_search", search_context_size: "low", filters: { allowed_domains: ["example.com"] } },
  { type: "file_search", vector_store_ids: ["vs_1"] },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "image_generation", quality: "low" },
  { type: "mcp", server_label: "docs", server_url: "https://example.com/mcp", require_approval: "never" },
  { type: "computer_use_preview", display_width: 800, display_height: 600, environment: "browser" },
  { type: "local_shell" },
];
const SEARCH = {
  id: "ws_1",
  type: "web_search_call",
  status: "completed",
  action: { type: "search", query: "tides", sources: [{ type: "url", url: "https://example.com/" }] },
};
const FOUND = {
  id: "fs_1",
  type: "file_search_call",
  status: "completed",
  queries: ["tides"],
  results: [{ file_id: "file_1", score: 0.5, text: "Two." }],
};
const CODE = {
  id: "ci_1",
  type: "code_interpreter_call",
  status: "completed",
  code: "1 + 1",
  container_id: "cntr_1",
  outputs: [{ type: "logs", logs: "2" }],
};
const REMOTE = {
  id: "mcp_1",
  type: "mcp_call",
  status: "failed",
  server_label: "docs",
  name: "read",
  arguments: '{"page":1}',
  output: null,
  error: "no such page",
};
const SHELL = {
  id: "lsh_1",
  type: "local_shell_call",
  call_id: "call_s",
  status: "completed",
  action: { type: "exec", command: ["ls"], env: {} },
};
const SHOWN = { type: "local_shell_call_output", id: "lsh_1", output: "a.txt" };
const LATER = { id: "new_1", type: "tool_of_tomorrow_call", parts: [1e21, null, "é"] };
const ITEMS = [SEARCH, FOUND, CODE, REMOTE, LATER, SHELL];
const SAID = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Two.", annotations: [] }],
};
const USAGE = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
const ANSWER = { status: "completed", output: [...ITEMS, SAID], usage: USAGE };

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;
let budgetKey: string;
/** A key that may use tools of the provider, and no other options. */
let toolsKey: string;
/** A key without pictures. */
let chatKey: string;
/** A key without options. */
let plainKey: string;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const provider = { allow_private: true, api_keys: ["credential"] };
  const model = { upstream_model: "any", max_output_tokens: 64_000, price: { input: 3, output: 15, web_search: 1 } };
  const { url } = upstream;
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      providers: {
        r: { ...provider, base_url: `${url}/v1`, dialect: "openai-responses" },
        o: { ...provider, base_url: `${url}/v1`, dialect: "openai" },
        a: { ...provider, base_url: url, dialect: "anthropic" },
        g: { ...provider, base_url: url, dialect: "gemini" },
      },
      models: Object.fromEntries(["r", "o", "a", "g"].map((name) => [`fx-${name}`, { ...model, provider: name }])),
    },
    prepareKeys: async (context) => {
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000_000_000 };
      budgetKey = (await createKey(context, { name: "small", limits })).secret;
      chatKey = (await createKey(context, { name: "chat", capabilities: ["chat"] })).secret;
      plainKey = (await createKey(context, { name: "plain", options: [] })).secret;
      toolsKey = (await createKey(context, { name: "tools", options: ["provider_tools"] })).secret;
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  answer = ({ request, response }) => {
    const path = request.url ?? "";
    if (path.endsWith("/responses")) answerJson(response, 200, ANSWER);
    else if (path.endsWith("/messages"))
      answerJson(response, 200, { content: [{ type: "text", text: "Two." }], stop_reason: "end_turn", usage: {} });
    else if (path.includes("generateContent"))
      answerJson(response, 200, { candidates: [{ content: { parts: [{ text: "Two." }] }, finishReason: "STOP" }] });
    else answerJson(response, 200, { choices: [{ message: { content: "Two." }, finish_reason: "stop" }] });
  };
});

async function post(body: object, key = gateway.key): Promise<{ status: number; json: Json }> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, json: (await response.json()) as Json };
}

const sent = (): Json => JSON.parse(upstream.exchanges.at(-1)!.body) as Json;

async function ask(body: object, key?: string): Promise<{ output: unknown; omitted: readonly string[] }> {
  const { status, json } = await post(body, key);
  expect([status, json["error"]]).toEqual([200, null]);
  return { output: json["output"], omitted: (json["parley"] as { omitted?: string[] }).omitted ?? [] };
}

const client = (): OpenAI => new OpenAI({ baseURL: `http://127.0.0.1:${gateway.httpPort}/v1`, apiKey: gateway.key });

const QUESTION = { role: "user", content: "How many tides?" };
const CALL = { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" };
const RESULT = { type: "function_call_output", call_id: "call_1", output: "ok" };
/** Results in another order than the calls. */
const HISTORY = [QUESTION, ...ITEMS.slice(0, -1), CALL, SHELL, SHOWN, RESULT];

describe("tools of OpenAI's servers and their items, to a provider of the dialect", () => {
  it("arrive as they were sent, with the choice among them", async () => {
    const given = { model: "fx-r", input: HISTORY, tools: TOOLS, tool_choice: { type: "web_search" } };
    const { omitted } = await ask({ ...given, max_tool_calls: 3, include: ["web_search_call.action.sources"] });
    const { include, ...rest } = sent();
    expect(rest).toMatchObject({ ...given, model: "any", max_tool_calls: 3 });
    expect(rest["tools"]).toEqual(TOOLS);
    expect(rest["input"]).toEqual(HISTORY);
    expect(include).toEqual(["web_search_call.action.sources", "reasoning.encrypted_content"]);
    expect(omitted).toEqual([]);
  });

  it("arrive in a translated request too", async () => {
    const { omitted } = await ask({ model: "fx-r", input: HISTORY, tools: TOOLS, new_field: 1 }, toolsKey);
    const { input, tools } = sent() as { input: Json[]; tools: Json[] };
    expect(tools).toEqual(TOOLS);
    expect(input).toEqual([{ type: "message", ...QUESTION }, ...HISTORY.slice(1)]);
    expect(omitted).toEqual(["new_field"]);
  });

  it("come back as they came, and go back so in the next turn", async () => {
    const { output } = await ask({ model: "fx-r", input: [QUESTION], tools: TOOLS });
    const items = output as Json[];
    expect(items.slice(0, -1)).toEqual(ITEMS);
    await ask({ model: "fx-r", input: [QUESTION, ...items, SHOWN], tools: TOOLS });
    expect((sent()["input"] as Json[]).slice(1, -2)).toEqual(ITEMS);
    expect((sent()["input"] as Json[]).at(-1)).toEqual(SHOWN);
  });

  it("come back in a stream, which the official client reads", async () => {
    answer = ({ response }) => {
      beginStream(response);
      ANSWER.output.forEach((item, output_index) => {
        const works = WORKING[item.type];
        const states = works === undefined ? [] : ["in_progress", works, "completed"];
        for (const event of [
          { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } },
          ...states.map((state) => ({ type: `response.${item.type}.${state}`, output_index, item_id: item.id })),
          { type: "response.output_item.done", output_index, item },
        ])
          response.write(`data: ${JSON.stringify(event)}\n\n`);
      });
      response.end(`data: ${JSON.stringify({ type: "response.completed", response: ANSWER })}\n\n`);
    };
    const running = client().responses.stream({ model: "fx-r", input: "How many tides?", tools: TOOLS as never });
    const seen: string[] = [];
    running.on("event", (event) => {
      if ("output_index" in event && event.output_index < 4)
        seen.push(`${event.output_index} ${event.type.slice("response.".length)}`);
    });
    const { output, output_text: text } = await running.finalResponse();
    expect(output.slice(0, -1)).toEqual(ITEMS);
    expect(text).toBe("Two.");
    expect(seen).toEqual([
      ...["output_item.added", "web_search_call.in_progress", "web_search_call.searching"].map((type) => `0 ${type}`),
      ...["web_search_call.completed", "output_item.done"].map((type) => `0 ${type}`),
      ...["output_item.added", "file_search_call.in_progress", "file_search_call.searching"].map((type) => `1 ${type}`),
      ...["file_search_call.completed", "output_item.done"].map((type) => `1 ${type}`),
      ...["output_item.added", "code_interpreter_call.in_progress"].map((type) => `2 ${type}`),
      ...["code_interpreter_call.interpreting", "code_interpreter_call.completed"].map((type) => `2 ${type}`),
      "2 output_item.done",
      "3 output_item.added",
      "3 output_item.done",
    ]);
  });

  it("are not sent under a budget: they may cost any amount", async () => {
    const { omitted } = await ask({ model: "fx-r", input: [QUESTION], tools: TOOLS.slice(0, 2) }, budgetKey);
    expect(sent()["tools"]).toEqual([OWN]);
    expect(omitted).toEqual(["tools[1]"]);
  });

  it.each([
    ["under a budget", () => budgetKey, ["web_search", "mcp", "image_generation"]],
    ["without `provider_tools`", () => plainKey, ["web_search", "mcp", "image_generation"]],
    ["without the capability `images`", () => chatKey, ["image_generation"]],
  ] as const)("need the same permissions within an item, for a key %s", async (_, key, refused) => {
    const found = (tool: object) => ({ type: "tool_search_output", call_id: "c", execution: "client", tools: [tool] });
    const items = [OWN, TOOLS[1]!, TOOLS[5]!, TOOLS[4]!].map(found);
    const { omitted } = await ask({ model: "fx-r", input: [QUESTION, ...items] }, key());
    const isRefused = (item: (typeof items)[number]): boolean =>
      refused.includes((item.tools[0] as { type: string }).type as never);
    expect((sent()["input"] as Json[]).slice(1)).toEqual(items.filter((item) => !isRefused(item)));
    expect(omitted).toEqual(items.flatMap((item, at) => (isRefused(item) ? [`input[${at + 1}]`] : [])));
  });

  it("are sent but for pictures where the key lacks the capability `images`", async () => {
    const given = { model: "fx-r", input: [QUESTION], tools: TOOLS };
    const { omitted } = await ask(given, chatKey);
    const others = TOOLS.filter(({ type }) => type !== "image_generation");
    expect([sent()["tools"], omitted]).toEqual([others, ["tools[4]"]]);
    // Chosen, it asks for pictures.
    const chosen = await post({ ...given, tool_choice: { type: "image_generation" } }, chatKey);
    expect(chosen.status).toBe(403);
  });

  it("are asked for again without their items when the reasoning that these need is gone", async () => {
    answer = ({ response, body }) => {
      const message =
        "Item 'ws_1' of type 'web_search_call' was provided without its required 'reasoning' item: 'rs_1'.";
      if (body.includes("ws_1")) answerJson(response, 400, { error: { message, type: "invalid_request_error" } });
      else answerJson(response, 200, ANSWER);
    };
    await ask({ model: "fx-r", input: [QUESTION, SEARCH, SAID, QUESTION] });
    expect((sent()["input"] as Json[]).map(({ type, role }) => role ?? type)).toEqual(["user", "assistant", "user"]);
  });
});

describe.each(["fx-o", "fx-a", "fx-g"])("the same to a provider of another dialect: %s", (model) => {
  it("are left out, and listed", async () => {
    const { omitted } = await ask({ model, input: HISTORY, tools: TOOLS });
    expect(upstream.exchanges.at(-1)!.body).not.toMatch(/ws_1|lsh_1|web_search|local_shell/);
    const places = HISTORY.flatMap((item, at) =>
      [QUESTION, CALL, RESULT].includes(item as never) ? [] : [`input[${at}]`],
    );
    expect(omitted.toSorted()).toEqual([...places, ...TOOLS.slice(1).map((_, at) => `tools[${at + 1}]`)].toSorted());
  });

  it("are left out where nothing else was said after them", async () => {
    const { omitted } = await ask({ model, input: [QUESTION, SEARCH] });
    expect(omitted).toEqual(["input[1]"]);
  });

  it("are refused by name when one is forced, unless a provider of the dialect can serve", async () => {
    const given = { model, input: "Look.", tools: [OWN, TOOLS[2]], tool_choice: { type: "file_search" } };
    const { status, json } = await post(given);
    expect([status, json["error"]]).toMatchObject([400, { param: "tools[1].type", code: "unsupported_value" }]);
    answer = ({ response }) => answerJson(response, 529, {});
    const before = upstream.exchanges.length;
    await post({ ...given, model: "fx-r", fallback_models: [model] });
    expect(new Set(upstream.exchanges.slice(before).map(({ request }) => request.url))).toEqual(
      new Set(["/v1/responses"]),
    );
  });
});
