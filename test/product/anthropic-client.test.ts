import Anthropic from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSimulator } from "../../src/simulator/server.ts";
import { type Product, startProduct } from "../support/product.ts";
import { RED_PIXEL } from "./support/red-pixel.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";
import { createKey } from "../support/cli.ts";

let upstream: Upstream;
let product: Product;
/** What the upstream does with the next requests; it serves them when the list is empty. */
let script: ((response: Parameters<typeof answerJson>[0]) => void)[] = [];

/** A server of the OpenAI dialect. */
let simulator: Awaited<ReturnType<typeof startSimulator>>;

beforeAll(async () => {
  simulator = await startSimulator();
  upstream = await startUpstream((exchange) => {
    const step = script.shift();
    if (step === undefined) answerText(exchange, "Served.");
    else step(exchange.response);
  });
  const { providers, models } = localModel(upstream.url);
  product = await startProduct({
    config: {
      providers: {
        ...providers,
        gamma: { dialect: "openai", base_url: `${simulator.url}/v1`, allow_private: true, api_keys: ["any"] },
      },
      models: { ...models, "gamma/mini": { provider: "gamma", upstream_model: "gpt-5-mini" } },
      simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
    },
  });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
  await simulator.close();
});

beforeEach(() => {
  script = [];
  cleanEnvironment();
});

function client(options: { apiKey?: string; maxRetries?: number } = {}): Anthropic {
  return new Anthropic({ baseURL: product.url, apiKey: product.firstKey, maxRetries: 0, ...options });
}

function ask(model: string, content = "Tell me about tides"): Anthropic.MessageCreateParamsNonStreaming {
  return { model, max_tokens: 2000, messages: [{ role: "user", content }] };
}

/** The error that a call ends with. */
const errorOf = rejectionsOf<InstanceType<typeof Anthropic.APIError>>(Anthropic.APIError);

const refuse =
  (status: number, headers: Record<string, string> = {}) =>
  (response: Parameters<typeof answerJson>[0]): void =>
    answerJson(response, status, { error: { message: "upstream says no", type: "x", code: null } }, headers);

const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  description: "Tells the weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** One model of each dialect. */
const MODELS = ["alpha-haiku-4.5", "beta-3-flash", "gamma/mini"] as const;

describe("the unmodified anthropic client", () => {
  it.each(MODELS)("gets a whole message of %s", async (model) => {
    const { data, request_id: requestId } = await client().messages.create(ask(model)).withResponse();
    expect(data).toMatchObject({ type: "message", role: "assistant", model, stop_reason: "end_turn" });
    expect(data.id).toMatch(/^msg_/);
    expect(textOf(data)).toContain("Tell me about tides");
    expect(data.usage.input_tokens).toBeGreaterThan(0);
    expect(data.usage.output_tokens).toBeGreaterThan(0);
    expect(requestId).toMatch(/^req_/);
    expect(data).toHaveProperty("parley.attempts", [expect.objectContaining({ model, outcome: "served" })]);
  });

  it.each(MODELS)("reads a stream of %s to its end", async (model) => {
    const whole = await client().messages.create(ask(model));
    const events = await Array.fromAsync(await client().messages.create({ ...ask(model), stream: true }));
    expect(events[0]).toMatchObject({ type: "message_start", message: { model, content: [], stop_reason: null } });
    const [start] = events as [Anthropic.RawMessageStartEvent];
    expect(start.message.usage.input_tokens).toBeGreaterThan(0);
    const text = events.map((event) =>
      event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : "",
    );
    expect(text.join("")).toBe(textOf(whole));
    expect(events.at(-2)).toMatchObject({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: whole.usage.input_tokens, output_tokens: whole.usage.output_tokens },
    });
    expect(events.at(-1)).toMatchObject({ type: "message_stop", parley: { attempts: [{ outcome: "served" }] } });
  });

  it.each(MODELS)("puts a stream of %s together with its own helper, as the whole message", async (model) => {
    const whole = await client().messages.create(ask(model));
    const runner = client().messages.stream(ask(model));
    let heard = "";
    runner.on("text", (delta) => void (heard += delta));
    const final = await runner.finalMessage();
    expect(textOf(final)).toBe(heard);
    expect(final.content).toEqual(whole.content);
    expect(final).toMatchObject({ stop_reason: "end_turn", usage: { output_tokens: whole.usage.output_tokens } });
  });

  it.each(MODELS)("completes a round of tools with %s, streamed", async (model) => {
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: 'How is the weather in "Paris"?' }];
    const asked = { model, max_tokens: 1000, tools: [WEATHER], messages };
    const first = await client().messages.stream(asked).finalMessage();
    expect(first.stop_reason).toBe("tool_use");
    const call = first.content.find((block) => block.type === "tool_use");
    expect(call).toMatchObject({ name: "get_weather", input: { city: "Paris" } });
    messages.push(
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call!.id, content: "It rains." }] },
    );
    const second = await client().messages.create(asked);
    expect(second.stop_reason).toBe("end_turn");
    expect(textOf(second)).not.toBe("");
  });

  it("lets its tool runner call the tools", async () => {
    const cities: string[] = [];
    const runner = client().beta.messages.toolRunner({
      ...ask("alpha-haiku-4.5", 'How is the weather in "Paris"?'),
      tools: [
        {
          ...WEATHER,
          run: ({ city }: { city: string }) => {
            cities.push(city);
            return "It rains.";
          },
          parse: (input: unknown) => input as { city: string },
        },
      ] as never,
    });
    const final = await runner;
    expect(cities).toEqual(["Paris"]);
    expect(final.stop_reason).toBe("end_turn");
  });

  it.each(MODELS)("parses structured output of %s", async (model) => {
    const schema = {
      type: "object",
      properties: { title: { type: "string" }, pages: { type: "integer" } },
      required: ["title", "pages"],
      additionalProperties: false,
    } as const;
    const message = await client().messages.parse({
      ...ask(model, "Name a book"),
      output_config: { format: jsonSchemaOutputFormat(schema) },
    });
    expect(message.parsed_output).toEqual({ title: expect.any(String) as string, pages: expect.any(Number) as number });
  });

  it.each(["alpha-haiku-4.5", "beta-3-flash"])("shows a picture to %s", async (model) => {
    const source = { type: "base64", media_type: "image/png", data: RED_PIXEL } as const;
    const content: Anthropic.ContentBlockParam[] = [
      { type: "text", text: "What is this?" },
      { type: "image", source },
    ];
    const message = await client().messages.create({ ...ask(model), messages: [{ role: "user", content }] });
    expect(textOf(message)).toContain("Picture 1 of 1 is ");
  });

  it("gets the model's reasoning, whole and streamed, and sends it back", async () => {
    const asked = {
      ...ask("alpha-sonnet-4.5"),
      max_tokens: 4000,
      thinking: { type: "enabled", budget_tokens: 2000 } as const,
    };
    const whole = await client().messages.create(asked);
    const final = await client().messages.stream(asked).finalMessage();
    expect(whole.content[0]).toMatchObject({ type: "thinking", signature: expect.stringMatching(/./) as string });
    expect(final.content).toEqual(whole.content);
    const messages: Anthropic.MessageParam[] = [
      ...asked.messages,
      { role: "assistant", content: final.content },
      { role: "user", content: "Go on" },
    ];
    const next = await client().messages.create({ ...asked, messages });
    expect(next).toHaveProperty("parley.omitted", []);
  });

  it("counts tokens", async () => {
    const { input_tokens: tokens } = await client().messages.countTokens({
      model: "alpha-haiku-4.5",
      messages: [{ role: "user", content: "Tell me about tides" }],
    });
    expect(tokens).toBeGreaterThan(0);
  });

  it("lists the models, page by page, and retrieves one", async () => {
    const all = await Array.fromAsync(client().models.list());
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["alpha-opus-4.5", "beta-3-flash", "local/test"]));
    expect((await Array.fromAsync(client().models.list({ limit: 2 }))).map(({ id }) => id)).toEqual(ids);
    const page = await client().models.list({ limit: 2, before_id: ids[3]! });
    expect(page.data.map(({ id }) => id)).toEqual(ids.slice(1, 3));
    expect(await client().models.retrieve("local/test")).toMatchObject({
      type: "model",
      id: "local/test",
      max_input_tokens: 100_000,
      max_tokens: 10_000,
    });
  });
});

describe("the anthropic client's typed errors", () => {
  it("are BadRequestError with the field for a value out of range", async () => {
    const error = await errorOf(client().messages.create({ ...ask("alpha-haiku-4.5"), temperature: 3 } as never));
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect(error.error).toMatchObject({ error: { message: expect.stringMatching(/^temperature: /) as string } });
    expect(error.requestID).toMatch(/^req_/);
  });

  it("are AuthenticationError for a wrong key", async () => {
    const error = await errorOf(client({ apiKey: "sk_parley_wrong" }).messages.create(ask("alpha-haiku-4.5")));
    expect(error).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(error).toMatchObject({ status: 401, type: "authentication_error" });
    expect(error.requestID).toMatch(/^req_/);
  });

  it("are PermissionDeniedError for a model that the key may not use", async () => {
    const { key } = await createKey(product, "--models beta-3-flash");
    const narrow = client({ apiKey: key });
    const error = await errorOf(narrow.messages.create(ask("alpha-haiku-4.5")));
    expect(error).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(error).toMatchObject({ status: 403, type: "permission_error" });
    expect((await Array.fromAsync(narrow.models.list())).map(({ id }) => id)).toEqual(["beta-3-flash"]);
  });

  it("are NotFoundError for an unknown model, asked for a message, a count or by name", async () => {
    const { max_tokens: _, ...counted } = ask("gamma-9");
    const calls = [
      () => client().messages.create(ask("gamma-9")),
      () => client().messages.countTokens(counted),
      () => client().models.retrieve("gamma-9"),
    ];
    for (const call of calls) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(Anthropic.NotFoundError);
      expect(error).toMatchObject({ status: 404, type: "not_found_error" });
      expect(error.requestID).toMatch(/^req_/);
    }
  });

  it("are NotFoundError for an API that is not offered", async () => {
    const error = await errorOf(client().messages.batches.list());
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect(error).toMatchObject({ status: 404, type: "not_found_error" });
  });

  it("are RateLimitError with the wait for a provider's rate limit", async () => {
    script = [refuse(429, { "retry-after": "1" })];
    const error = await errorOf(client().messages.create(ask("local/test")));
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    expect(error).toMatchObject({ status: 429, type: "rate_limit_error" });
    expect(error.headers?.get("retry-after")).toBe("1");
    // The circuit breaker is open for that second; the next tests need it closed.
    await expect.poll(() => client().messages.create(ask("local/test")), { timeout: 5000 }).toBeDefined();
  });

  it("are InternalServerError for a provider's other failures", async () => {
    script = [refuse(401)];
    const refused = await errorOf(client().messages.create(ask("local/test")));
    expect(refused).toBeInstanceOf(Anthropic.InternalServerError);
    expect(refused).toMatchObject({ status: 500, type: "api_error" });
    expect(refused.headers?.get("x-should-retry")).toBe("false");

    script = [refuse(503), refuse(503)];
    const down = await errorOf(client().messages.create(ask("local/test")));
    expect(down).toBeInstanceOf(Anthropic.InternalServerError);
    expect(down).toMatchObject({ status: 503, type: "overloaded_error" });
    expect(down.headers?.get("retry-after")).toMatch(/^\d+$/);
  });

  it("are thrown in the middle of a stream that breaks off", async () => {
    script = [
      (response) => {
        beginStream(response);
        response.end(textEvent("Once upon"));
      },
    ];
    const runner = client().messages.stream(ask("local/test"));
    let text = "";
    runner.on("text", (delta) => void (text += delta));
    const error = await errorOf(runner.finalMessage());
    expect(text).toBe("Once upon");
    expect(error).toMatchObject({ type: "api_error" });
  });
});

describe("retries and cancellation", () => {
  it("lets the client retry after the response's retry-after", async () => {
    script = [refuse(429, { "retry-after": "1" })];
    const before = upstream.exchanges.length;
    const message = await client({ maxRetries: 1 }).messages.create(ask("local/test"));
    expect(textOf(message)).toBe("Served.");
    expect(upstream.exchanges.length - before).toBe(2);
  });

  it("closes the upstream when the client aborts in mid-stream", async () => {
    script = [
      (response) => {
        beginStream(response);
        response.write(textEvent("Once upon"));
      },
    ];
    const stream = await client().messages.create({ ...ask("local/test"), stream: true });
    for await (const { type } of stream) if (type === "content_block_delta") stream.controller.abort();
    await expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
  });
});
