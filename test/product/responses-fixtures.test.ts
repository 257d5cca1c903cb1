import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { withoutSeals } from "../support/seals.ts";
import {
  DELIVERIES,
  formatFixtureModels,
  type FormatScenario,
  readFormatScenarios,
  serveScenario,
} from "./support/format-fixtures.ts";
import type { Json } from "./support/fixtures.ts";
import { startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      ...formatFixtureModels(upstream.url),
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

async function ask({ meta, callerRequest }: FormatScenario): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.httpPort}${meta.path}`, {
    method: meta.method,
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json", ...meta.headers },
    body: JSON.stringify(callerRequest),
  });
}

/** IDs as numbers in the order in which they first occur, the same in every event. */
function withPlainIds(text: string): string {
  const seen = new Map<string, string>();
  return text.replaceAll(/"(resp|msg|rs|fc|ctc|ig)_[A-Za-z0-9]+"/g, (id, prefix: string) => {
    const plain = seen.get(id) ?? `"${prefix}_${seen.size}"`;
    seen.set(id, plain);
    return plain;
  });
}

/** Fields that the scenarios do not have. */
const ADDED: ReadonlySet<string> = new Set(["parley", "created_at", "prompt_cache_key"]);
/** Fields that the specification Open Responses wants, and the scenarios leave out where they say nothing. */
const OPTIONAL: ReadonlySet<string> = new Set([
  "completed_at",
  "frequency_penalty",
  "presence_penalty",
  "safety_identifier",
  "usage",
  "description",
  "parameters",
  "strict",
]);

/** A value without what differs from answer to answer, and with the state of providers decoded. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key, each]) => !ADDED.has(key) && !(OPTIONAL.has(key) && !each));
  return Object.fromEntries(
    entries.map(([key, each]) => {
      if (key === "completed_at" && each !== null) return [key, "then"];
      if (key !== "encrypted_content") return [key, comparable(each)];
      const state = JSON.parse(withoutSeals(Buffer.from(String(each), "base64").toString())) as Json;
      return [key, "image" in state ? { ...state, image: "picture" } : state];
    }),
  );
}

/** The events of a stream: neighbouring deltas of a place joined, and without numbers, which have no gaps. */
function events(stream: string): unknown[] {
  const out: Record<string, unknown>[] = [];
  const blocks = stream.split("\n\n").filter((block) => block !== "");
  blocks.forEach((block, at) => {
    const [, type, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
    const { sequence_number: number, ...event } = JSON.parse(data ?? "{}") as Record<string, unknown>;
    expect(event["type"]).toBe(type);
    expect(number).toBe(at);
    const last = out.at(-1) ?? {};
    const isMore = last["type"] === type && last["item_id"] === event["item_id"] && typeof event["delta"] === "string";
    if (isMore) last["delta"] = String(last["delta"]) + String(event["delta"]);
    else out.push(comparable(event) as Record<string, unknown>);
  });
  return out;
}

/** What an upstream failure is called in the answer differs from the scenario's own words. */
const FAILURE = /"message":"(?:The|Upstream)[^"]*(?:provider|upstream)[^"]*"/i;

describe.each(readFormatScenarios("r").map((given) => [given.name, given] as const))("%s", (_, scenario) => {
  it.each(DELIVERIES)("sends and gives what it should, with the upstream answering in %s", async (__, pieceBytes) => {
    const { meta, upstreamRequest, expected } = scenario;
    answer = (exchange) => serveScenario(exchange, scenario, pieceBytes);
    const before = upstream.exchanges.length;
    const reply = await ask(scenario);
    const text = withPlainIds(await reply.text()).replace(FAILURE, '"message":"failed"');

    const sent = upstream.exchanges[before];
    expect(upstreamRequest && (JSON.parse(sent?.body ?? "null") as unknown)).toEqual(upstreamRequest);
    expect(sent?.request.url).toBe(meta.upstream_path);
    expect(reply.status).toBe(meta.expected_status);
    const wanted = withPlainIds("stream" in expected ? expected.stream : JSON.stringify(expected.whole)).replace(
      FAILURE,
      '"message":"failed"',
    );
    const toAnswer = "stream" in expected ? events : (json: string) => comparable(JSON.parse(json));
    expect(toAnswer(text)).toEqual(toAnswer(wanted));
  });
});

/** An answer of Anthropic's that calls a custom tool, which is a function there. */
const PATCH_CALL = [
  ["message_start", { message: { id: "m", model: "c", usage: { input_tokens: 5, output_tokens: 1 } } }],
  [
    "content_block_start",
    { index: 0, content_block: { type: "tool_use", id: "toolu_1", name: "apply_patch", input: {} } },
  ],
  ["content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json: '{"input":"*** Be' } }],
  ["content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json: 'gin\\nEnd"}' } }],
  ["content_block_stop", { index: 0 }],
  ["message_delta", { delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } }],
  ["message_stop", {}],
] as const;

it("calls a custom tool of a provider without them as a custom tool", async () => {
  answer = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const [type, fields] of PATCH_CALL)
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
    response.end();
    return Promise.resolve();
  };
  const call = { type: "custom_tool_call", call_id: "call_0", name: "apply_patch", input: "before" };
  const reply = await ask({
    meta: { method: "POST", path: "/v1/responses", stream: true, expected_status: 200 },
    callerRequest: {
      model: "fx-a",
      stream: true,
      input: [
        { role: "user", content: "Patch it" },
        call,
        { type: "custom_tool_call_output", call_id: "call_0", output: "done" },
      ],
      tools: [
        { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "start: X" } },
      ],
    },
  } as unknown as FormatScenario);
  const received = events(withPlainIds(await reply.text())) as { type: string; item?: Json; delta?: string }[];
  const sent = JSON.parse(upstream.exchanges.at(-1)?.body ?? "{}") as {
    tools: Json[];
    messages: { content: Json[] }[];
  };
  expect(sent.tools[0]).toMatchObject({
    name: "apply_patch",
    description: expect.stringContaining("start: X") as string,
  });
  expect(sent.messages[1]?.content[0]).toMatchObject({ type: "tool_use", input: { input: "before" } });
  expect(received.find(({ type }) => type === "response.custom_tool_call_input.delta")?.delta).toBe("*** Begin\nEnd");
  expect(received.find(({ type }) => type === "response.output_item.done")?.item).toMatchObject({
    type: "custom_tool_call",
    call_id: "toolu_1",
    name: "apply_patch",
    input: "*** Begin\nEnd",
  });
});
