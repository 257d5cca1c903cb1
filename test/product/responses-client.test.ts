import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Product, startProduct } from "../support/product.ts";
import { RED_PIXEL } from "./support/red-pixel.ts";
import { answerJson, beginStream, localModel, startUpstream, type Upstream } from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";

type Reply = Parameters<typeof answerJson>[0];

let upstream: Upstream;
let product: Product;
/** What the upstream does with the next requests. */
let script: ((response: Reply) => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream(({ response }) => script.shift()?.(response));
  product = await startProduct({
    config: {
      ...localModel(upstream.url),
      simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
    },
  });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

beforeEach(() => {
  script = [];
  cleanEnvironment();
});

function client(options: { apiKey?: string } = {}): OpenAI {
  return new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0, ...options });
}

/** The error that a call ends with. */
const errorOf = rejectionsOf<InstanceType<typeof OpenAI.APIError>>(OpenAI.APIError);

const sent = (): Record<string, unknown> => JSON.parse(upstream.exchanges.at(-1)!.body) as Record<string, unknown>;

/** A whole answer of the OpenAI dialect. */
const say =
  (message: object, finish = "stop") =>
  (response: Reply): void =>
    answerJson(response, 200, {
      choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    });

/** A streamed one. */
const stream =
  (deltas: readonly object[], finish = "stop") =>
  (response: Reply): void => {
    beginStream(response);
    const chunk = (delta: object, reason: string | null): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
    response.end(`${deltas.map((delta) => chunk(delta, null)).join("")}${chunk({}, finish)}data: [DONE]\n\n`);
  };

const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "The weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false,
} as const;
const CALL = {
  id: "call_1",
  type: "function",
  function: { name: "get_weather", arguments: '{"city":"Paris"}' },
} as const;

describe("the official client's responses", () => {
  it("has a text, its usage, and what the request said", async () => {
    script = [say({ content: "Hello." })];
    const response = await client().responses.create({ model: "local/test", input: "Hi", instructions: "Be brief." });
    expect(response).toMatchObject({
      output_text: "Hello.",
      status: "completed",
      instructions: "Be brief.",
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
      store: false,
    });
    expect(sent()["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ]);
  });

  it("streams a text, and has the same response at the end", async () => {
    script = [stream([{ content: "One " }, { content: "two." }])];
    const running = client().responses.stream({ model: "local/test", input: "Count" });
    const texts: string[] = [];
    running.on("response.output_text.delta", ({ delta }) => void texts.push(delta));
    const response = await running.finalResponse();
    expect(texts.join("")).toBe("One two.");
    expect(response.output_text).toBe("One two.");
    expect(response.status).toBe("completed");
  });

  it("streams from every dialect of the simulator, whole and streamed alike", async () => {
    for (const model of ["alpha-sonnet-4.5", "beta-3-pro-preview"]) {
      const whole = await client().responses.create({ model, input: "Tell me about tides" });
      const streamed = await client().responses.stream({ model, input: "Tell me about tides" }).finalResponse();
      expect(whole.output_text.length, model).toBeGreaterThan(20);
      expect(streamed.output_text.length, model).toBeGreaterThan(20);
    }
  });

  it("takes a tool's result back, in a stream and whole", async () => {
    script = [
      stream(
        [
          { tool_calls: [{ index: 0, ...CALL, function: { ...CALL.function, arguments: "" } }] },
          { tool_calls: [{ index: 0, function: { arguments: CALL.function.arguments } }] },
        ],
        "tool_calls",
      ),
      say({ content: "Sunny." }),
    ];
    const asked = { model: "local/test", tools: [WEATHER] };
    const first = await client()
      .responses.stream({ ...asked, input: "Weather in Paris?" })
      .finalResponse();
    const [call] = first.output;
    expect(call).toMatchObject({ type: "function_call", call_id: "call_1", arguments: '{"city":"Paris"}' });
    const second = await client().responses.create({
      ...asked,
      input: [
        { role: "user", content: "Weather in Paris?" },
        ...first.output,
        { type: "function_call_output", call_id: "call_1", output: "18 °C" },
      ] as OpenAI.Responses.ResponseInput,
    });
    expect(second.output_text).toBe("Sunny.");
    expect(sent()["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [CALL] },
      { role: "tool", tool_call_id: "call_1", content: "18 °C" },
    ]);
  });

  it("parses structured output", async () => {
    script = [
      say({ content: '{"name":"dog","legs":4}' }),
      stream([{ content: '{"name":"dog"' }, { content: ',"legs":4}' }]),
    ];
    const asked = {
      model: "local/test",
      input: "A dog",
      text: { format: zodTextFormat(z.object({ name: z.string(), legs: z.int() }), "animal") },
    };
    expect((await client().responses.parse(asked)).output_parsed).toEqual({ name: "dog", legs: 4 });
    expect((await client().responses.stream(asked).finalResponse()).output_parsed).toEqual({ name: "dog", legs: 4 });
    expect(sent()).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "animal", strict: true } },
    });
  });

  it.each(["alpha-sonnet-4.5", "beta-3-flash"])("shows a picture to %s", async (model) => {
    const content: OpenAI.Responses.ResponseInputContent[] = [
      { type: "input_text", text: "What is this?" },
      { type: "input_image", image_url: `data:image/png;base64,${RED_PIXEL}`, detail: "auto" },
    ];
    const response = await client().responses.create({ model, input: [{ role: "user", content }] });
    expect(response.output_text).toContain("Picture 1 of 1 is ");
  });

  it("gets a picture, whole and in a stream", async () => {
    const asked = {
      model: "beta-3-pro-image-preview",
      input: "Draw a lighthouse",
      tools: [{ type: "image_generation" as const }],
    };
    const whole = await client().responses.create(asked);
    const streamed = await client().responses.stream(asked).finalResponse();
    for (const { output } of [whole, streamed]) {
      const pictures = output.flatMap((item) => (item.type === "image_generation_call" ? [item.result] : []));
      expect(pictures).toEqual([expect.stringMatching(/^iVBORw0KGgo/)]);
    }
  });

  it("says that an answer was cut", async () => {
    script = [say({ content: "Half" }, "length"), stream([{ content: "Half" }], "length")];
    const asked = { model: "local/test", input: "Long", max_output_tokens: 1 };
    const whole = await client().responses.create(asked);
    const streamed = await client().responses.stream(asked).finalResponse();
    for (const { status, incomplete_details: details, output } of [whole, streamed]) {
      expect({ status, details }).toEqual({ status: "incomplete", details: { reason: "max_output_tokens" } });
      expect(output).toMatchObject([{ type: "message", status: "incomplete" }]);
    }
  });

  it("counts tokens", async () => {
    const { object, input_tokens: tokens } = await client().responses.inputTokens.count({
      model: "alpha-sonnet-4.5",
      input: "How many are these?",
    });
    expect(object).toBe("response.input_tokens");
    expect(tokens).toBeGreaterThan(0);
  });
});

describe("the official client's errors", () => {
  it("are of its own classes", async () => {
    const ask = (model: string, options: { apiKey?: string } = {}): PromiseLike<unknown> =>
      client(options).responses.create({ model, input: "Hi" });
    expect(await errorOf(ask("nobody"))).toBeInstanceOf(OpenAI.NotFoundError);
    expect(await errorOf(ask("local/test", { apiKey: "sk_wrong" }))).toBeInstanceOf(OpenAI.AuthenticationError);
    script = Array.from(
      { length: 9 },
      () => (response) => answerJson(response, 429, { error: { message: "slow down" } }),
    );
    expect(await errorOf(ask("local/test"))).toBeInstanceOf(OpenAI.RateLimitError);
  });

  it("names the field of the request", async () => {
    const call = client().responses.create({
      model: "local/test",
      input: [{ type: "function_call_output", call_id: "call_9", output: "lost" }],
    });
    expect(await errorOf(call)).toMatchObject({ status: 400, param: "input[0].call_id" });
  });

  it("says that no response is kept", async () => {
    const call = client().responses.create({ model: "local/test", input: "And?", previous_response_id: "resp_1" });
    expect(await errorOf(call)).toMatchObject({ status: 400, code: "previous_response_not_found" });
    expect(await errorOf(client().responses.retrieve("resp_1"))).toBeInstanceOf(OpenAI.NotFoundError);
  });

  it("ends a stream that broke off with a failed response", async () => {
    script = [
      (response) => {
        beginStream(response);
        response.write('data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n', () => response.destroy());
      },
    ];
    const response = await client().responses.stream({ model: "local/test", input: "Hi" }).finalResponse();
    expect(response).toMatchObject({ status: "failed", error: { code: "server_error" } });
    expect(response.output_text).toBe("Half");
  });
});

it("refuses a WebSocket at once", async () => {
  const headers = {
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "x",
  };
  const { get } = await import("node:http");
  const status = await new Promise((resolve, reject) => {
    const request = get(`${product.url}/v1/responses`, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", reject);
  });
  expect(status).toBe(426);
});
