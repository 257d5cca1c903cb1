import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerJson, beginStream, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* State of providers on its way through every format and back, as clients keep it. */

type Json = Readonly<Record<string, unknown>>;

const THOUGHT = "c2lnbmF0dXJl+/8=";
const ENCRYPTED = "gAAAAB-_x";
const ID = { upstream_model: "any", context_window: 200_000, max_output_tokens: 4_000, capabilities: {} };

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const { url } = upstream;
  const at = { allow_private: true, api_keys: ["credential"] };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      limits: { requests_per_minute: 100_000 },
      providers: {
        a: { ...at, base_url: url, dialect: "anthropic" },
        "a-too": { ...at, base_url: `${url}/too`, dialect: "anthropic" },
        g: { ...at, base_url: url, dialect: "gemini" },
        r: { ...at, base_url: `${url}/v1`, dialect: "openai-responses" },
      },
      models: {
        "fx-a": { ...ID, provider: "a" },
        "fx-a-2": { ...ID, provider: "a", upstream_model: "another" },
        "fx-a-too": { ...ID, provider: "a-too" },
        "fx-g": { ...ID, provider: "g" },
        "fx-r": { ...ID, provider: "r" },
        "fx-any": { targets: [{ model: "fx-a-too" }, { model: "fx-a" }] },
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const CALL = { id: "call_1", name: "f", input: {} };
const ANTHROPIC = {
  content: [
    { type: "thinking", thinking: "Hm.", signature: THOUGHT },
    { type: "tool_use", ...CALL },
  ],
  stop_reason: "tool_use",
  usage: { input_tokens: 3, output_tokens: 4 },
};
const GEMINI = {
  candidates: [
    {
      content: { parts: [{ functionCall: { id: "call_1", name: "f", args: {} }, thoughtSignature: THOUGHT }] },
      finishReason: "STOP",
    },
  ],
};
const RESPONSES = {
  status: "completed",
  output: [
    { id: "rs_1", type: "reasoning", summary: [], encrypted_content: ENCRYPTED },
    { id: "fc_1", type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
  ],
};

/** Answers in pieces where a stream was asked for. */
function answerAnthropic({ body, response }: UpstreamExchange): void {
  if ((JSON.parse(body) as Json)["stream"] !== true) return answerJson(response, 200, ANTHROPIC);
  beginStream(response);
  const event = (type: string, fields: object): void =>
    void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  event("message_start", { message: { usage: ANTHROPIC.usage } });
  event("content_block_start", { index: 0, content_block: { type: "thinking", thinking: "", signature: "" } });
  event("content_block_delta", { index: 0, delta: { type: "thinking_delta", thinking: "Hm." } });
  for (const signature of [THOUGHT.slice(0, 5), THOUGHT.slice(5)])
    event("content_block_delta", { index: 0, delta: { type: "signature_delta", signature } });
  event("content_block_stop", { index: 0 });
  event("content_block_start", { index: 1, content_block: { type: "tool_use", ...CALL } });
  event("content_block_stop", { index: 1 });
  event("message_delta", { delta: { stop_reason: "tool_use" }, usage: { output_tokens: 4 } });
  event("message_stop", {});
  response.end();
}

function answerOthers({ request, response }: UpstreamExchange): void {
  const path = request.url ?? "";
  if (path.includes("streamGenerateContent")) {
    beginStream(response);
    response.end(`data: ${JSON.stringify(GEMINI)}\n\n`);
  } else if (path.includes("generateContent")) answerJson(response, 200, GEMINI);
  else answerJson(response, 200, RESPONSES);
}

beforeEach(() => {
  answer = (exchange) => {
    if (exchange.request.url?.endsWith("/messages") === true) answerAnthropic(exchange);
    else answerOthers(exchange);
  };
});

async function post(path: string, body: object): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect([response.status, response.status === 200 ? "" : text]).toEqual([200, ""]);
  return text;
}

const eventsOf = (stream: string): Json[] =>
  (stream.match(/(?<=^data: )\{.*$/gm) ?? []).map((data) => JSON.parse(data) as Json);

/** A caller of a format: what it asks first, and how it sends the answer back with the tool's result. */
interface Caller {
  readonly path: (model: string, stream: boolean) => string;
  readonly first: (model: string, stream: boolean) => object;
  /** The answer as a client keeps it, of a whole answer or of the events of a stream. */
  readonly kept: (answer: Json | readonly Json[]) => unknown;
  readonly second: (model: string, kept: unknown) => object;
}

const SCHEMA = { type: "object" };

const CALLERS: Readonly<Record<string, Caller>> = {
  chat: {
    path: () => "/v1/chat/completions",
    first: (model, stream) => ({
      model,
      stream,
      messages: [{ role: "user", content: "Go" }],
      tools: [{ type: "function", function: { name: "f", parameters: SCHEMA } }],
    }),
    kept(given) {
      type Choice = { message?: Json; delta?: Json };
      const choices = [given].flat().flatMap((each) => (each as { choices?: Choice[] }).choices ?? []);
      const kept: Record<string, unknown> = {};
      for (const { message, delta } of choices) {
        const { tool_calls: calls, ...said } = message ?? delta ?? {};
        // The first piece of a call has all but its arguments.
        Object.assign(kept, said, calls !== undefined && kept["tool_calls"] === undefined && { tool_calls: calls });
      }
      return kept;
    },
    second(model, kept) {
      const { tool_calls: calls, content: _, ...message } = kept as { tool_calls: Json[]; content: unknown };
      const called = calls.map((call) => ({ ...call, function: { name: "f", arguments: "{}" } }));
      return {
        ...CALLERS["chat"]!.first(model, false),
        messages: [
          { role: "user", content: "Go" },
          { role: "assistant", ...message, tool_calls: called },
          { role: "tool", tool_call_id: "call_1", content: "ok" },
        ],
      };
    },
  },
  messages: {
    path: () => "/v1/messages",
    first: (model, stream) => ({
      model,
      stream,
      max_tokens: 2000,
      messages: [{ role: "user", content: "Go" }],
      tools: [{ name: "f", input_schema: SCHEMA }],
    }),
    kept(given) {
      if (!Array.isArray(given)) return (given as Json)["content"];
      const blocks: Record<string, unknown>[] = [];
      for (const { type, content_block: block, delta } of given as readonly Json[]) {
        const { type: kind, ...fields } = (delta ?? {}) as Json;
        if (type === "content_block_start") blocks.push({ ...(block as object) });
        else if (kind === "signature_delta" || kind === "thinking_delta") Object.assign(blocks.at(-1)!, fields);
      }
      return blocks;
    },
    second: (model, kept) => ({
      ...CALLERS["messages"]!.first(model, false),
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: kept },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "ok" }] },
      ],
    }),
  },
  responses: {
    path: () => "/v1/responses",
    first: (model, stream) => ({
      model,
      stream,
      include: ["reasoning.encrypted_content"],
      input: [{ role: "user", content: "Go" }],
      tools: [{ type: "function", name: "f", parameters: SCHEMA }],
    }),
    kept: (given) =>
      (Array.isArray(given) ? ((given as Json[]).at(-1)!["response"] as Json) : (given as Json))["output"],
    second: (model, kept) => ({
      ...CALLERS["responses"]!.first(model, false),
      input: [
        { role: "user", content: "Go" },
        ...(kept as Json[]),
        { type: "function_call_output", call_id: "call_1", output: "ok" },
      ],
    }),
  },
  gemini: {
    path: (model, stream) => `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    first: () => ({
      contents: [{ role: "user", parts: [{ text: "Go" }] }],
      tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: SCHEMA }] }],
    }),
    kept: (given) =>
      [given]
        .flat()
        .flatMap((each) => (each as { candidates?: { content?: { parts?: Json[] } }[] }).candidates ?? [])
        .flatMap(({ content }) => content?.parts ?? []),
    second: (model, kept) => ({
      ...CALLERS["gemini"]!.first(model, false),
      contents: [
        { role: "user", parts: [{ text: "Go" }] },
        { role: "model", parts: kept },
        { role: "user", parts: [{ functionResponse: { id: "call_1", name: "f", response: { ok: 1 } } }] },
      ],
    }),
  },
  contract: {
    path: () => "/parley.v1.CompletionService/Create",
    first: (model) => ({
      model,
      messages: [{ role: "ROLE_USER", parts: [{ text: "Go" }] }],
      tools: [{ function: { name: "f" } }],
    }),
    kept: (given) => (given as { choices: { message: Json }[] }).choices[0]!.message,
    second: (model, kept) => ({
      ...CALLERS["contract"]!.first(model, false),
      messages: [
        { role: "ROLE_USER", parts: [{ text: "Go" }] },
        kept,
        { role: "ROLE_TOOL", parts: [{ toolResult: { toolCallId: "call_1", parts: [{ text: "ok" }] } }] },
      ],
    }),
  },
};

const PROVIDERS = [
  ["fx-a", `"signature":"${THOUGHT}"`],
  ["fx-g", `"thoughtSignature":"${THOUGHT}"`],
  ["fx-r", `"encrypted_content":"${ENCRYPTED}"`],
] as const;
const RUNS = Object.keys(CALLERS).flatMap((format) =>
  PROVIDERS.flatMap(([model, state]) =>
    (format === "contract" ? [false] : [false, true]).map((stream) => ({ format, model, state, stream })),
  ),
);

async function firstTurn(format: string, model: string, stream = false): Promise<unknown> {
  const { path, first, kept } = CALLERS[format]!;
  const text = await post(path(model, stream), first(model, stream));
  expect(text).not.toContain(`"${THOUGHT}"`);
  return kept(stream ? eventsOf(text) : (JSON.parse(text) as Json));
}

/** Sends an answer back; returns what the provider gets, and what is listed. */
async function secondTurn(format: string, model: string, kept: unknown): Promise<{ sent: string; omitted: unknown[] }> {
  const { path, second } = CALLERS[format]!;
  const { parley, report } = JSON.parse(await post(path(model, false), second(model, kept))) as Json;
  const { omitted = [] } = (parley ?? report) as { omitted?: unknown[] };
  return { sent: upstream.exchanges.at(-1)!.body, omitted };
}

const STATE = /"(?:signature|thoughtSignature|encrypted_content)":"(?!skip_)/;

describe.each(RUNS)("state of $model through $format (streamed: $stream)", ({ format, model, state, stream }) => {
  it("comes back to the provider as it gave it, and is left out and listed elsewhere", async () => {
    const kept = await firstTurn(format, model, stream);
    const same = await secondTurn(format, model, kept);
    expect(same.sent).toContain(state);
    expect(same.sent).not.toContain("PLY1");
    expect(same.omitted).toEqual([]);
    for (const other of ["fx-a-too", "fx-g", "fx-r"].filter((one) => one !== model)) {
      const { sent, omitted } = await secondTurn(format, other, kept);
      expect(sent).not.toMatch(STATE);
      expect(omitted).toHaveLength(1);
    }
  });
});

describe("state in a conversation", () => {
  const signed = (signature: string): object[] => [
    { type: "thinking", thinking: "Hm.", signature },
    { type: "tool_use", ...CALL },
  ];

  it.each<[string, () => string]>([
    ["of another account", () => gateway.seal("a", THOUGHT, "acct_other")],
    ["that was changed", () => `${gateway.seal("a", THOUGHT).slice(0, -4)}AAA=`],
    ["of a conversation from elsewhere", () => THOUGHT],
    ["with the seal of another state", () => gateway.seal("a", "b3RoZXI=").slice(0, 32) + THOUGHT],
  ])("is left out and listed, never an error: %s", async (_, signature) => {
    const { sent, omitted } = await secondTurn("messages", "fx-a", signed(signature()));
    expect(sent).not.toMatch(STATE);
    expect(omitted).toEqual(["messages.1.content.0"]);
  });

  it("is not refused by a strict request", async () => {
    const body = { ...CALLERS["messages"]!.second("fx-a", signed(THOUGHT)), parley: { strict: true } };
    expect(await post("/v1/messages", body)).toContain('"omitted":["messages.1.content.0"]');
  });

  it("is that of the provider, whichever of its models answers", async () => {
    const { sent, omitted } = await secondTurn("messages", "fx-a-2", signed(gateway.seal("a", THOUGHT)));
    expect(sent).toContain(THOUGHT);
    expect(omitted).toEqual([]);
  });

  it("keeps the conversation at the target that gave it", async () => {
    await firstTurn("messages", "fx-any");
    expect(upstream.exchanges.at(-1)!.request.url).toBe("/too/v1/messages");
    for (const [provider, path] of [
      ["a", "/v1/messages"],
      ["a-too", "/too/v1/messages"],
    ] as const) {
      const { sent, omitted } = await secondTurn("messages", "fx-any", signed(gateway.seal(provider, THOUGHT)));
      expect(upstream.exchanges.at(-1)!.request.url).toBe(path);
      expect(sent).toContain(THOUGHT);
      expect(omitted).toEqual([]);
    }
  });

  it("is left out for a fallback, which answers without it", async () => {
    answer = (exchange) =>
      exchange.request.url === "/v1/messages" ? answerJson(exchange.response, 529, {}) : answerAnthropic(exchange);
    const body = {
      ...CALLERS["messages"]!.second("fx-a", signed(gateway.seal("a", THOUGHT))),
      fallback_models: ["fx-a-too"],
    };
    expect(await post("/v1/messages", body)).toContain('"omitted":["messages.1.content.0"]');
    expect(upstream.exchanges.at(-1)!.body).not.toMatch(STATE);
  });
});
