import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerJson, beginStream, startUpstream, type Upstream } from "./support/upstream.ts";

/* Events and citations of types that the contract does not have, as official clients of their dialect read them. */

type Json = Readonly<Record<string, unknown>>;

const CREDENTIAL = "credential-of-the-gateway";
const OF_TOMORROW = "citation_of_tomorrow";

const CITED = { type: OF_TOMORROW, cited_text: "a", place: { line: 7 } };
const SECRET = { encrypted_index: "c2VjcmV0", nested: { signature: "c2VjcmV0" } };
const MESSAGE = {
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text: "Hello.", citations: [{ ...CITED, ...SECRET }] }],
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 4 },
};
const MESSAGE_EVENTS = [
  { type: "message_start", message: { ...MESSAGE, content: [] } },
  { type: "early_event", note: `of ${CREDENTIAL}` },
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 4, content_block: { type: "text", text: "", citations: [] } },
  { type: "content_block_delta", index: 4, delta: { type: "text_delta", text: "Hello." } },
  { type: "content_block_delta", index: 4, delta: { type: "delta_of_tomorrow", value: 1.0 } },
  { type: "content_block_delta", index: 4, delta: { type: "citations_delta", citation: { ...CITED, ...SECRET } } },
  { type: "content_block_stop", index: 4 },
  {
    type: "event_of_tomorrow",
    a: [null],
    model: "claude",
    organization: "ours",
    encrypted_state: "c2VjcmV0",
    message: MESSAGE,
  },
  { type: "large_event", value: "x".repeat(100_000) },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
  { type: "message_stop" },
];

const FILE_CITED = { type: "container_file_citation", container_id: "c", file_id: "f", filename: "a.txt", index: 3 };
const RUN = {
  id: "ci_1",
  type: "code_interpreter_call",
  status: "completed",
  code: "1+1",
  container_id: "c",
  outputs: null,
};
const SAID = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Hello.", annotations: [FILE_CITED] }],
};
const RESPONSE = {
  id: "resp_up",
  status: "completed",
  output: [RUN, SAID],
  usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};
const ofItem = { item_id: "ci_1", output_index: 0 };
const RESPONSE_EVENTS = [
  { type: "response.created", response: { ...RESPONSE, status: "in_progress", output: [] } },
  { type: "response.output_item.added", output_index: 0, item: { ...RUN, status: "in_progress", code: "" } },
  { type: "response.code_interpreter_call.in_progress", ...ofItem },
  { type: "response.code_interpreter_call_code.delta", ...ofItem, delta: "1+" },
  { type: "response.code_interpreter_call_code.delta", ...ofItem, delta: "1" },
  { type: "response.code_interpreter_call_code.done", ...ofItem, code: "1+1" },
  { type: "response.code_interpreter_call.interpreting", ...ofItem },
  { type: "response.code_interpreter_call.completed", ...ofItem },
  { type: "response.output_item.done", output_index: 0, item: RUN },
  { type: "response.output_item.added", output_index: 1, item: { ...SAID, content: [] } },
  { type: "response.output_text.delta", item_id: "msg_1", output_index: 1, content_index: 0, delta: "Hello." },
  { type: "response.text_of_tomorrow", item_id: "msg_1", output_index: 1, content_index: 0, mood: "good" },
  {
    type: "response.output_text.annotation.added",
    item_id: "msg_1",
    output_index: 1,
    content_index: 0,
    annotation_index: 0,
    annotation: FILE_CITED,
  },
  {
    type: "response.event_of_tomorrow",
    response_id: "resp_up",
    billing: { payer: "us" },
    note: "n",
    response: { ...RESPONSE, model: "gpt-up", organization: "ours" },
  },
  { type: "response.output_item.done", output_index: 1, item: SAID },
  { type: "response.completed", response: RESPONSE },
].map((event, at) => ({ ...event, sequence_number: 100 + at }));

const CHAT_CITED = { type: "file_citation", file_citation: { file_id: "f" } };

let upstream: Upstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ request, response, body }) => {
    const path = request.url ?? "";
    const isStream = (JSON.parse(body) as Json)["stream"] === true;
    if (path.endsWith("/completions"))
      return answerJson(response, 200, {
        choices: [{ index: 0, message: { content: "Hello.", annotations: [CHAT_CITED] }, finish_reason: "stop" }],
      });
    const [whole, events] = path.endsWith("/messages") ? [MESSAGE, MESSAGE_EVENTS] : [RESPONSE, RESPONSE_EVENTS];
    if (!isStream) return answerJson(response, 200, whole);
    beginStream(response);
    const isKnown = (JSON.parse(body) as Json)["model"] === "known";
    for (const event of events)
      if (!isKnown || !event.type.includes("of_tomorrow"))
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  const { url } = upstream;
  const at = { allow_private: true, api_keys: [CREDENTIAL] };
  gateway = await startTestGateway({
    config: {
      limits: UNLIMITED,
      providers: {
        a: { ...at, base_url: url, dialect: "anthropic" },
        o: { ...at, base_url: `${url}/v1`, dialect: "openai" },
        r: { ...at, base_url: `${url}/v1`, dialect: "openai-responses" },
      },
      models: {
        "fx-a": { upstream_model: "any", max_output_tokens: 4_000, provider: "a" },
        "fx-o": { upstream_model: "any", max_output_tokens: 4_000, provider: "o" },
        "fx-r": { upstream_model: "any", max_output_tokens: 4_000, provider: "r" },
        // Without events that the client of today refuses.
        "fx-known": { upstream_model: "known", max_output_tokens: 4_000, provider: "r" },
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const url = (): string => `http://127.0.0.1:${gateway.httpPort}`;

async function raw(path: string, body: object): Promise<string> {
  const response = await fetch(url() + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return response.text();
}

const events = (text: string): Json[] => text.match(/(?<=^data: )\{.*$/gm)!.map((data) => JSON.parse(data) as Json);
const asked = { model: "fx-a", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };

describe("the Messages format", () => {
  it.each([false, true])("has citations of unknown types, without state (streamed: %s)", async (streamed) => {
    const client = new Anthropic({ baseURL: url(), apiKey: gateway.key, maxRetries: 0 });
    const { content } = streamed
      ? await client.messages.stream(asked).finalMessage()
      : await client.messages.create(asked);
    const { citations } = content.at(-1) as unknown as { citations: Json[] };
    expect(citations).toEqual([{ ...CITED, nested: {} }]);
  });

  it("has unknown events and deltas in their places, without what is the gateway's", async () => {
    const text = await raw("/v1/messages", { ...asked, stream: true });
    const sent = events(text);
    const types = sent.map(({ type, delta }) => (delta as Json | undefined)?.["type"] ?? type);
    expect(types.filter((type) => type !== "ping")).toEqual([
      "message_start",
      "early_event",
      "content_block_start",
      "thinking_delta",
      "content_block_stop",
      "content_block_start",
      "text_delta",
      "delta_of_tomorrow",
      "citations_delta",
      "content_block_stop",
      "event_of_tomorrow",
      "message_delta",
      "message_stop",
    ]);
    expect(sent).toContainEqual({ type: "early_event", note: "of [key]" });
    expect(sent).toContainEqual({ type: "event_of_tomorrow", a: [null] });
    expect(sent).toContainEqual({
      type: "content_block_delta",
      index: 1,
      delta: { type: "delta_of_tomorrow", value: 1 },
    });
    expect(text).toMatch(/^event: event_of_tomorrow$/m);
    expect(text).not.toMatch(/c2VjcmV0|xxxx/);
  });

  it("of another dialect is without them, and names them", async () => {
    const text = await raw("/v1/messages", { ...asked, model: "fx-r", stream: true });
    const [, names = "[]"] = /"left_out":(\[[^\]]*\])/.exec(text) ?? [];
    expect(JSON.parse(names)).toEqual(
      expect.arrayContaining([
        "openai-responses.response.event_of_tomorrow",
        "openai-responses.container_file_citation",
        "openai-responses.response.text_of_tomorrow",
      ]),
    );
    expect(text).not.toMatch(/"type":"response\.|"mood"/);
  });
});

describe("the Responses API", () => {
  it.each([false, true])("has annotations of unknown types (streamed: %s)", async (streamed) => {
    const client = new OpenAI({ baseURL: `${url()}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const given = { model: "fx-known", input: "Hi" };
    const { output } = streamed
      ? await client.responses.stream(given).finalResponse()
      : await client.responses.create(given);
    expect(output).toMatchObject([RUN, { content: [{ text: "Hello.", annotations: [FILE_CITED] }] }]);
  });

  it("has unknown events in their places, with its own IDs and numbers", async () => {
    const text = await raw("/v1/responses", { model: "fx-r", input: "Hi", stream: true });
    const sent = events(text);
    expect(sent.map(({ sequence_number: at }) => at)).toEqual(sent.map((_, at) => at));
    const types = sent.map(({ type }) => String(type).replace("response.", ""));
    const begun = types.indexOf("output_item.added");
    expect(types.slice(begun, begun + 8)).toEqual([
      "output_item.added",
      "code_interpreter_call.in_progress",
      "code_interpreter_call_code.delta",
      "code_interpreter_call_code.delta",
      "code_interpreter_call_code.done",
      "code_interpreter_call.interpreting",
      "code_interpreter_call.completed",
      "output_item.done",
    ]);
    expect(sent[begun + 2]).toMatchObject({ item_id: "ci_1", output_index: 0, delta: "1+" });
    const said = sent.find(({ type }) => type === "response.output_text.delta")!;
    const ofTomorrow = sent.find(({ type }) => type === "response.text_of_tomorrow");
    expect(ofTomorrow).toMatchObject({ item_id: said["item_id"], output_index: 1, content_index: 0, mood: "good" });
    expect(said["item_id"]).not.toBe("msg_1");
    const ofAnswer = sent.find(({ type }) => type === "response.event_of_tomorrow");
    expect(ofAnswer).toEqual({
      type: "response.event_of_tomorrow",
      note: "n",
      sequence_number: expect.any(Number) as unknown,
    });
  });
});

it("chat completions have annotations of unknown types, and name those of other dialects", async () => {
  const messages = [{ role: "user", content: "Hi" }];
  expect(await raw("/v1/chat/completions", { model: "fx-o", messages })).toContain(
    `"annotations":[${JSON.stringify(CHAT_CITED)}]`,
  );
  const other = await raw("/v1/chat/completions", { model: "fx-a", messages });
  expect(other).toContain(`"left_out":["anthropic.${OF_TOMORROW}"]`);
  expect(other).not.toContain('"annotations"');
});
