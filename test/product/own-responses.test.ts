import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* What a provider of the dialect `openai-responses` gets of a request of the Responses API. */

type Json = Readonly<Record<string, unknown>>;

const FOLDER = new URL("../fixtures/formats/clients/", import.meta.url);
const PNG = "iVBORw0KGgo=";
const ITEMS = [
  { id: "rs_up1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "gAAAA+/=" },
  {
    id: "msg_up2",
    type: "message",
    role: "assistant",
    status: "completed",
    phase: "commentary",
    content: [{ type: "output_text", text: "I draw.", annotations: [] }],
  },
  { id: "ig_up3", type: "image_generation_call", status: "completed", result: PNG, output_format: "png" },
  { id: "fc_up4", type: "function_call", status: "completed", call_id: "call_1", name: "f", arguments: "{}" },
];
const ANSWER = { status: "completed", output: ITEMS, usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } };

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;
/** A key with a budget, and one that may use fields that Parley does not know. */
let budgetKey: string;
let openKey: string;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const provider = { base_url: `${upstream.url}/v1`, allow_private: true, api_keys: ["credential"] };
  const model = {
    provider: "r",
    upstream_model: "gpt-any",
    max_output_tokens: 64_000,
    price: { input: 3, output: 15 },
  };
  const modalities = { input: ["text", "image"], output: ["text", "image"] };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      providers: { r: { ...provider, dialect: "openai-responses" }, o: { ...provider, dialect: "openai" } },
      models: {
        "fx-r": { ...model, modalities },
        "fx-plain": { ...model, capabilities: { reasoning: "none" } },
        "fx-o": { ...model, provider: "o" },
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
  readonly output: readonly Json[];
  readonly omitted: readonly string[];
}

async function send(body: object | string, key = gateway.key): Promise<Answered> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  expect(`${response.status} ${response.status === 200 ? "" : text}`).toBe("200 ");
  const { output, parley } = JSON.parse(text) as { output: Json[]; parley: { omitted?: string[] } };
  return { sent: upstream.exchanges.at(-1)!.body, output, omitted: parley.omitted ?? [] };
}

const OWN = { store: false, include: ["reasoning.encrypted_content"] };

describe("a Responses request to a provider of the dialect", () => {
  it("arrives to the byte, where it says what a translation would say", async () => {
    const body =
      '{"max_output_tokens":100,"model":"fx-r","instructions":"Be brief.","input":[{"role":"developer","content":"a"},' +
      '{"content":[{"text":"Hi","type":"input_text","new_field":[1,null]}],"role":"user"},{"type":"function_call",' +
      '"call_id":"1","name":"f","arguments":"{\\"b\\": 1}"},{"type":"function_call_output","call_id":"1","output":"ok"}],' +
      '"tools":[{"parameters":{"type":"object"},"name":"f","type":"function","defer_loading":true}],"store":false,' +
      '"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low"},"truncation":"auto","new_field":{"z":1,"a":[]}}';
    const { sent, omitted } = await send(body);
    expect(JSON.parse(sent)).toEqual(JSON.parse(body.replace("fx-r", "gpt-any")));
    expect(sent).toHaveLength(body.replace("fx-r", "gpt-any").length);
    expect(omitted).toEqual([]);
  });

  it("keeps its blanks, and the digits of its numbers", async () => {
    const body =
      '{ "model" : "fx-plain", "input":[ {"role":"user","content":"\\u00e4"},{"type":"function_call","call_id":"1","name":"f",' +
      '"arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"ok"}], "max_output_tokens":1e2,\n"store": false,' +
      '"tools":[{"type":"function","name":"f","strict":false,"parameters":{"const":12345678901234567890}}] }';
    const { sent } = await send(body);
    expect(sent).toBe(body.replace("fx-plain", "gpt-any"));
  });

  it("keeps the output of a tool of the client's own, which has no call", async () => {
    const context = { type: "function_call_output", name: "goal_objective", namespace: "agent", output: "Mend it" };
    const input = [
      { type: "function_call", call_id: "1", name: "create_goal", arguments: "{}" },
      { type: "function_call_output", call_id: "1", output: "ok" },
      context,
    ];
    const tools = [{ type: "function", name: "create_goal", strict: false, parameters: { type: "object" } }];
    const { sent, omitted } = await send({ model: "fx-plain", input, tools, store: false });
    expect(JSON.parse(sent)).toMatchObject({ input });
    expect(omitted).toEqual([]);
  });

  it("has what the gateway decides, and nothing that is for the gateway", async () => {
    const given = {
      model: "fx-r",
      input: "Hi",
      parley: { strict: false },
      fallback_models: ["fx-o"],
      background: false,
      previous_response_id: "",
      stream_options: { include_obfuscation: false },
      include: ["file_search_call.results"],
      new_field: 1,
    };
    expect(JSON.parse((await send(given)).sent)).toEqual({
      model: "gpt-any",
      input: "Hi",
      new_field: 1,
      store: false,
      include: ["file_search_call.results", "reasoning.encrypted_content"],
      reasoning: { summary: "auto" },
    });
  });

  it("makes one picture at most under a budget", async () => {
    const tools = [{ type: "image_generation", quality: "high" }];
    const { sent, omitted } = await send({ model: "fx-r", input: "Draw", tools, max_tool_calls: 9 }, openKey);
    expect(JSON.parse(sent)).toMatchObject({ tools, max_tool_calls: 1 });
    expect(omitted).toEqual([]);
  });

  it("has its own words in every turn, with the provider's reasoning, phases and pictures, and without IDs", async () => {
    const given = { model: "fx-r", ...OWN, reasoning: { effort: "low" }, new_field: 1 };
    const question = { role: "user", content: "Draw" };
    const { output } = await send({ ...given, input: [question] });
    expect(output.map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
      "reasoning",
      "image_generation_call",
      "reasoning",
      "function_call",
    ]);
    const result = { type: "function_call_output", id: "fco_1", call_id: "call_1", output: "ok", new_field: 1 };
    // As the official clients keep calls.
    const kept = output.map((item) => (item["type"] === "function_call" ? { ...item, parsed_arguments: null } : item));
    const { sent, omitted } = await send({ ...given, input: [question, ...kept, result] });
    const { id: _, ...resultAsSent } = result;
    const [reasoning, message, image, call] = ITEMS as unknown as [Json, Json, Json, Json];
    const { id: _message, ...messageAsSent } = message;
    const { id: _call, ...callAsSent } = call;
    const { output_format: _format, ...imageAsSent } = image;
    expect(JSON.parse(sent)).toEqual({
      ...given,
      model: "gpt-any",
      input: [
        question,
        reasoning,
        { ...messageAsSent, content: [{ type: "output_text", text: "I draw.", annotations: [], logprobs: [] }] },
        imageAsSent,
        callAsSent,
        resultAsSent,
      ],
    });
    expect(omitted).toEqual([]);
  });

  it.each<[string, Json, Json, readonly string[]]>([
    ["a limit above the model's own", { max_output_tokens: 3 }, { max_output_tokens: 16 }, ["new_field"]],
    [
      "a tool that the gateway does not offer among those with a common name",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "function", name: "f" }, { type: "web_search" }] }] },
      { tools: [{ type: "function", name: "n__f", parameters: null, strict: false }] },
      ["new_field", "tools[0].tools[1]"],
    ],
    [
      "tools with a common name",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "function", name: "f" }] }] },
      { tools: [{ name: "n__f" }] },
      ["new_field"],
    ],
    [
      "reasoning of another server",
      {
        input: [
          { role: "user", content: "Hi" },
          { type: "reasoning", summary: [], encrypted_content: "gAAAA" },
        ],
      },
      { input: [{ role: "user", content: "Hi" }] },
      ["new_field", "input[1]"],
    ],
  ])("is written anew where it has to be changed: %s", async (_, fields, expected, lost) => {
    const { sent, omitted } = await send({ model: "fx-r", input: "Hi", new_field: 1, ...fields });
    expect(JSON.parse(sent)).toMatchObject(expected);
    expect(sent).not.toContain("new_field");
    expect(omitted).toEqual(lost);
  });

  it("is written anew for a model that does not reason, where it asks for reasoning", async () => {
    const { sent } = await send({
      model: "fx-plain",
      input: "Hi",
      ...OWN,
      reasoning: { summary: "auto" },
      new_field: 1,
    });
    expect(JSON.parse(sent)).toEqual({
      model: "gpt-any",
      input: [{ type: "message", role: "user", content: "Hi" }],
      store: false,
    });
    const own = await send({ model: "fx-plain", input: "Hi", ...OWN, new_field: 1 });
    expect(JSON.parse(own.sent)).toEqual({ model: "gpt-any", input: "Hi", store: false, new_field: 1 });
  });

  it("under a budget has nothing that Parley does not know, and a limit of tokens", async () => {
    const { sent, omitted } = await send({ model: "fx-r", input: "Hi", service_tier: "auto", new_field: 1 }, budgetKey);
    expect(JSON.parse(sent)).toEqual({
      model: "gpt-any",
      input: [{ type: "message", role: "user", content: "Hi" }],
      ...OWN,
      reasoning: { summary: "auto" },
      max_output_tokens: expect.any(Number) as number,
    });
    expect(omitted).toEqual(["new_field"]);
  });

  it("is translated for a provider of another dialect, which says what is lost", async () => {
    answer = ({ response }) =>
      answerJson(response, 200, { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
    const { sent, omitted } = await send({ model: "fx-o", input: "Hi", truncation: "auto", new_field: 1 });
    expect(JSON.parse(sent)).toEqual({ model: "gpt-any", messages: [{ role: "user", content: "Hi" }] });
    expect(omitted).toEqual(["truncation", "new_field"]);
  });

  const recorded = readdirSync(FOLDER).filter((name) => {
    const { path } = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as { path?: string };
    return path === "/v1/responses";
  });

  it.each(recorded)("of %s arrives with every message, call and tool", async (name) => {
    const { body } = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as { body: Json };
    const { sent } = await send({ ...body, model: "fx-r", stream: false, max_output_tokens: 100 });
    const said = JSON.parse(sent) as Json;
    expect(said).toMatchObject({ ...OWN, model: "gpt-any", max_output_tokens: 100 });
    const texts = JSON.stringify(body["input"]).match(/"text":"(?:[^"\\]|\\.)*"/g) ?? [];
    for (const text of texts) expect(sent).toContain(text.slice('"text":'.length));
  });
});
