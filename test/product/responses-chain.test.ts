import { createServer, request as forward, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";

/* A gateway whose provider is the Responses API of another gateway, with the simulator behind that one. */

type Json = Readonly<Record<string, unknown>>;
type Item = Json & { readonly type: string };

/** What went from the first gateway to the second one, and back. */
interface Exchange {
  readonly path: string | undefined;
  readonly sent: Json & { readonly input: readonly Item[] };
  readonly hops: unknown;
  received: string;
}

const exchanges: Exchange[] = [];
let inner: TestGateway;
let wire: Server;
let outer: TestGateway;

beforeAll(async () => {
  inner = await startTestGateway({
    config: { simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 } },
  });
  wire = createServer((asked, answer) => {
    const pieces: Buffer[] = [];
    asked.on("data", (piece: Buffer) => pieces.push(piece));
    asked.on("end", () => {
      const body = Buffer.concat(pieces);
      const { url: path, method, headers } = asked;
      const exchange: Exchange = {
        path,
        sent: JSON.parse(body.toString()) as Exchange["sent"],
        hops: headers["x-parley-hops"],
        received: "",
      };
      exchanges.push(exchange);
      const on = forward({ host: "127.0.0.1", port: inner.httpPort, path, method, headers }, (response) => {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        response.on("data", (piece: Buffer) => {
          exchange.received += piece.toString("latin1");
          answer.write(piece);
        });
        response.on("end", () => answer.end());
        // A fault of the simulator.
        response.on("error", () => answer.destroy());
      });
      on.end(body);
    });
  });
  await new Promise<void>((resolve) => wire.listen(0, "127.0.0.1", resolve));
  const { port } = wire.address() as AddressInfo;
  outer = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      providers: {
        inner: {
          preset: "openai",
          dialect: "openai-responses",
          base_url: `http://127.0.0.1:${port}/v1`,
          allow_private: true,
          api_keys: [inner.key],
        },
      },
      models: {
        chained: { provider: "inner", upstream_model: "alpha-sonnet-4.5", max_output_tokens: 32_000 },
        drawing: {
          provider: "inner",
          upstream_model: "beta-3-pro-image-preview",
          modalities: { input: ["text", "image"], output: ["text", "image"] },
        },
      },
    },
  });
});

afterAll(async () => {
  await outer.close();
  wire.closeAllConnections();
  await new Promise((resolve) => wire.close(resolve));
  await inner.close();
});

beforeEach(() => {
  exchanges.length = 0;
  cleanEnvironment();
});

const url = (): string => `http://127.0.0.1:${outer.httpPort}`;
const openai = (): OpenAI => new OpenAI({ baseURL: `${url()}/v1`, apiKey: outer.key, maxRetries: 0 });
const anthropic = (): Anthropic => new Anthropic({ baseURL: url(), apiKey: outer.key, maxRetries: 0 });

const QUESTION = "What is the weather in Paris?";
const RESULT = "18 degrees";
const SCHEMA = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
const ANY = expect.any(String) as string;

/** The items of a response of the second gateway, whole or streamed. */
function outputOf({ received }: Exchange): readonly Item[] {
  const events = received.split("\n\n").filter((event) => event.startsWith("event: response.completed"));
  const json = events.length > 0 ? events[0]!.split("data: ")[1]! : received;
  const parsed = JSON.parse(Buffer.from(json, "latin1").toString()) as Json;
  return ((parsed["response"] ?? parsed) as { output: readonly Item[] }).output;
}

/** Two turns in a caller's format: a question that leads to a call, and its result. Returns the last answer's text. */
type Conversation = () => Promise<string>;

const CHAT_TOOLS = [{ type: "function" as const, function: { name: "get_weather", parameters: SCHEMA } }];

async function chat(stream: boolean): Promise<string> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: QUESTION }];
  const ask = async (): Promise<OpenAI.ChatCompletionMessage> => {
    const body = { model: "chained", messages, tools: CHAT_TOOLS, reasoning_effort: "medium" } as const;
    if (!stream) return (await openai().chat.completions.create(body)).choices[0]!.message;
    const said: Record<string, unknown> & { content: string; tool_calls: Json[] } = {
      role: "assistant",
      content: "",
      tool_calls: [],
    };
    for await (const { choices } of await openai().chat.completions.create({ ...body, stream: true })) {
      const delta = (choices[0]?.delta ?? {}) as Json;
      if (typeof delta["content"] === "string") said.content += delta["content"];
      if (delta["thinking_blocks"] !== undefined) said["thinking_blocks"] = delta["thinking_blocks"];
      for (const { index, id, function: called } of (delta["tool_calls"] ?? []) as Json[]) {
        const { name = "", arguments: more = "" } = (called ?? {}) as { name?: string; arguments?: string };
        const before = said.tool_calls[index as number] as { function: { arguments: string } } | undefined;
        if (before === undefined)
          said.tool_calls[index as number] = { id, type: "function", function: { name, arguments: more } };
        else before.function.arguments += more;
      }
    }
    return said as unknown as OpenAI.ChatCompletionMessage;
  };
  const first = await ask();
  messages.push(first);
  for (const { id } of first.tool_calls ?? []) messages.push({ role: "tool", tool_call_id: id, content: RESULT });
  return (await ask()).content ?? "";
}

async function responses(stream: boolean): Promise<string> {
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: QUESTION }];
  const ask = async (): Promise<OpenAI.Responses.Response> => {
    const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
      model: "chained",
      input,
      store: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "medium" },
      tools: [{ type: "function", name: "get_weather", parameters: SCHEMA, strict: false }],
    };
    if (!stream) return openai().responses.create(body);
    return openai()
      .responses.stream(body as never)
      .finalResponse();
  };
  const first = await ask();
  for (const item of first.output) {
    input.push(item as OpenAI.Responses.ResponseInputItem);
    if (item.type === "function_call")
      input.push({ type: "function_call_output", call_id: item.call_id, output: RESULT });
  }
  return (await ask()).output_text;
}

async function inMessages(stream: boolean): Promise<string> {
  const said: Anthropic.MessageParam[] = [{ role: "user", content: QUESTION }];
  const ask = async (): Promise<Anthropic.Message> => {
    const body = {
      model: "chained",
      max_tokens: 8000,
      thinking: { type: "adaptive" },
      output_config: { effort: "medium" },
      tools: [{ name: "get_weather", input_schema: SCHEMA }],
      messages: said,
    } satisfies Anthropic.MessageCreateParamsNonStreaming;
    return stream ? anthropic().messages.stream(body).finalMessage() : anthropic().messages.create(body);
  };
  const { content } = await ask();
  said.push({ role: "assistant", content });
  const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
    block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: RESULT }] : [],
  );
  said.push({ role: "user", content: results });
  const last = await ask();
  return last.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

describe.each<[string, Conversation]>([
  ["chat completions", () => chat(false)],
  ["streamed chat completions", () => chat(true)],
  ["responses", () => responses(false)],
  ["streamed responses", () => responses(true)],
  ["Messages", () => inMessages(false)],
  ["streamed Messages", () => inMessages(true)],
])("a conversation in %s", (_, converse) => {
  it("takes the provider's reasoning back to it, byte for byte, with the call that it led to", async () => {
    expect(await converse()).not.toBe("");
    expect(exchanges.map(({ path, hops }) => [path, hops])).toEqual([
      ["/v1/responses", "1"],
      ["/v1/responses", "1"],
    ]);
    const [first, second] = exchanges as [Exchange, Exchange];
    expect(first.sent).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] });
    const output = outputOf(first);
    expect(output.map(({ type }) => type)).toEqual(["reasoning", "function_call"]);
    const [reasoning, call] = output as [Item, Item];
    expect(reasoning).toMatchObject({ id: ANY, encrypted_content: ANY, summary: [{ text: ANY }] });
    const { status: _status, ...asItCame } = reasoning;
    const { call_id: callId, name, arguments: written } = call;
    expect(second.sent.input).toMatchObject([
      { role: "user", content: QUESTION },
      { type: "reasoning" },
      { type: "function_call", call_id: callId, name, arguments: written },
      { type: "function_call_output", call_id: callId, output: RESULT },
    ]);
    expect(second.sent.input[1]).toEqual(asItCame);
  });
});

describe("through two gateways", () => {
  it("the provider's usage arrives", async () => {
    const { usage } = await openai().responses.create({ model: "chained", input: "Hi", reasoning: { effort: "low" } });
    const { usage: counted } = JSON.parse(exchanges[0]!.received) as { usage: Json };
    expect(usage).toEqual(counted);
    expect(usage!.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  });

  it("a picture is drawn, and shown to the model again", async () => {
    const drawn = await openai().responses.create({
      model: "drawing",
      input: "Draw a cat",
      include: ["reasoning.encrypted_content"],
      tools: [{ type: "image_generation" }],
    });
    const picture = drawn.output.find(({ type }) => type === "image_generation_call") as { result: string } | undefined;
    expect(picture?.result.slice(0, 8)).toBe("iVBORw0K");
    const input = [
      { role: "user", content: "Draw a cat" },
      ...drawn.output,
      { role: "user", content: "Make it blue" },
    ] as OpenAI.Responses.ResponseInput;
    await openai().responses.create({
      model: "drawing",
      input,
      include: ["reasoning.encrypted_content"],
      tools: [{ type: "image_generation" }],
    });
    const [first, second] = exchanges as [Exchange, Exchange];
    const made = outputOf(first).find(({ type }) => type === "image_generation_call")!;
    const { output_format: _, ...asItCame } = made;
    expect(second.sent.input).toContainEqual(asItCame);
  });

  it("tokens are counted by the provider", async () => {
    const { input_tokens: tokens } = await openai().responses.inputTokens.count({ model: "chained", input: "Hello" });
    expect(exchanges.map(({ path }) => path)).toEqual(["/v1/responses/input_tokens"]);
    expect(JSON.parse(exchanges[0]!.received)).toMatchObject({ input_tokens: tokens });
  });

  it("a stream that fails after content ends with a failure", async () => {
    const asked = `Write 200 words [[fault: error-after=20]]`;
    const types: string[] = [];
    for await (const event of await openai().responses.create({ model: "chained", input: asked, stream: true }))
      types.push(event.type);
    expect(types).toContain("response.output_text.delta");
    expect(types.at(-1)).toBe("response.failed");
  });

  it("an answer that breaks off before its first content is a failure of the provider", async () => {
    const asked = openai().responses.create({ model: "chained", input: "Hi [[fault: error-first]]", stream: true });
    await expect(asked).rejects.toMatchObject({ status: 503 });
  });

  // Its circuit breaker is open after it.
  it("a refusal keeps its status", async () => {
    const asked = openai().responses.create({ model: "chained", input: "Hi [[fault: status=429]]" });
    await expect(asked).rejects.toMatchObject({ status: 429 });
  });
});
