import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { Lighthouse } from "../support/lighthouse.ts";
import { RED_PIXEL } from "../support/red-pixel.ts";
import { EACH_DIALECT, MODELS, startThreeDialects, type ThreeDialects } from "../support/three-dialects.ts";

let running: ThreeDialects;

beforeAll(async () => {
  running = await startThreeDialects();
});

afterAll(() => running.stop());

beforeEach(cleanEnvironment);

function client(): OpenAI {
  return new OpenAI({ baseURL: running.baseURL, apiKey: running.apiKey, maxRetries: 0 });
}

function ask(model: string, content: string): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model, messages: [{ role: "user", content }] };
}

/** A request for a picture; the client's types only know text and speech. */
function draw(model: string): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { ...ask(model, "Draw a lighthouse"), modalities: ["text", "image"] as unknown as ("text" | "audio")[] };
}

const PNG_URL: unknown = expect.stringMatching(/^data:image\/png;base64,iVBORw0KGgo/);

/** A tool of the kind that `runTools` calls by itself, with what it was called with. */
function weatherTool() {
  const calls: unknown[] = [];
  const tool = {
    type: "function" as const,
    function: {
      name: "get_weather",
      description: "The weather in a town",
      parameters: {
        type: "object",
        properties: { town: { type: "string" }, days: { type: "integer", minimum: 2, maximum: 9 } },
        required: ["town", "days"],
        additionalProperties: false,
      },
      parse: (text: string) =>
        z.strictObject({ town: z.string(), days: z.int().min(2).max(9) }).parse(JSON.parse(text)),
      function: (input: { town: string; days: number }) => {
        calls.push(input);
        return `Fog for ${input.days} days in ${input.town}`;
      },
    },
  };
  return { tool, calls };
}

describe.each(EACH_DIALECT)("the openai client and a model of the $dialect dialect", ({ model }) => {
  it("gets a whole completion", async () => {
    const call = client().chat.completions.create(ask(model, "Tell me about tides"));
    const { data: completion, request_id: requestId } = await call.withResponse();
    expect(completion).toMatchObject({
      object: "chat.completion",
      model,
      id: expect.stringMatching(/^chatcmpl-/) as unknown,
    });
    expect(requestId).toMatch(/^req_/);
    expect(completion.choices).toMatchObject([{ index: 0, finish_reason: "stop", message: { role: "assistant" } }]);
    expect(completion.choices[0]?.message.content).toContain("Tell me about tides");
    const { prompt_tokens: prompt = 0, completion_tokens: answer = 0, total_tokens: total } = completion.usage ?? {};
    expect(prompt).toBeGreaterThan(0);
    expect(answer).toBeGreaterThan(0);
    expect(total).toBe(prompt + answer);
  });

  it("reads the same answer and usage from a stream", async () => {
    const whole = await client().chat.completions.create(ask(model, "Tell me about tides"));
    const stream = await client().chat.completions.create({
      ...ask(model, "Tell me about tides"),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      whole.choices[0]?.message.content,
    );
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: "assistant", content: "" });
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  it("cuts an answer at the token limit, with the finish reason length", async () => {
    const completion = await client().chat.completions.create({ ...ask(model, "200 words on tides"), max_tokens: 5 });
    expect(completion.choices[0]?.finish_reason).toBe("length");
    expect(completion.usage?.completion_tokens).toBe(5);
  });

  it("puts a stream together with the .stream() helper", async () => {
    const runner = client().chat.completions.stream({ ...ask(model, "Tell me about tides"), stream: true });
    let heard = "";
    runner.on("content", (delta) => void (heard += delta));
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: heard } });
    expect(heard).toContain("Tell me about tides");
  });

  it("puts streamed calls of two tools together with the .stream() helper", async () => {
    const { tool } = weatherTool();
    const declare = (name: string): OpenAI.ChatCompletionFunctionTool => ({
      type: "function",
      function: { name, parameters: tool.function.parameters },
    });
    const runner = client().chat.completions.stream({
      ...ask(model, "Use get_weather and get_tides, please"),
      stream: true,
      tools: [declare("get_weather"), declare("get_tides")],
    });
    const { finish_reason: reason, message } = (await runner.finalChatCompletion()).choices[0]!;
    expect(reason).toBe("tool_calls");
    expect(message.tool_calls?.map((call) => call.type === "function" && call.function.name)).toEqual([
      "get_weather",
      "get_tides",
    ]);
    expect(new Set(message.tool_calls?.map((call) => call.id)).size).toBe(2);
    for (const call of message.tool_calls ?? []) {
      if (call.type !== "function") throw new Error(`not a function: ${call.type}`);
      tool.function.parse(call.function.arguments);
    }
  });

  it("calls a real function in the runTools loop and continues with its result", async () => {
    const { tool, calls } = weatherTool();
    const runner = client().chat.completions.runTools({
      model,
      messages: [{ role: "user", content: "Use get_weather for Bergen" }],
      tools: [tool],
    });
    const answer = await runner.finalContent();
    expect(calls).toHaveLength(1);
    expect(answer).toContain(tool.function.function(calls[0] as { town: string; days: number }));
    expect(runner.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  it("runs the same loop over streams", async () => {
    const { tool, calls } = weatherTool();
    const runner = client().chat.completions.runTools({
      ...ask(model, "Use get_weather for Bergen"),
      stream: true,
      tools: [tool],
    });
    expect(await runner.finalContent()).toContain("Fog for ");
    expect(calls).toHaveLength(1);
  });

  it("makes the call that tool_choice demands", async () => {
    const { tool } = weatherTool();
    const completion = await client().chat.completions.create({
      ...ask(model, "Hello"),
      tools: [{ type: "function", function: { name: "get_weather", parameters: tool.function.parameters } }],
      tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    const [call] = completion.choices[0]?.message.tool_calls ?? [];
    expect(completion.choices[0]?.finish_reason).toBe("tool_calls");
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
  });

  it("parses an answer that has to satisfy a zod schema", async () => {
    const completion = await client().chat.completions.parse({
      ...ask(model, "Describe a lighthouse"),
      response_format: zodResponseFormat(Lighthouse, "lighthouse"),
    });
    const parsed = completion.choices[0]?.message.parsed;
    expect(Lighthouse.parse(parsed)).toEqual(parsed);
    expect(parsed?.keepers.length).toBeGreaterThan(0);
  });

  it("parses a streamed answer that has to satisfy a zod schema", async () => {
    const runner = client().chat.completions.stream({
      ...ask(model, "Describe a lighthouse"),
      stream: true,
      response_format: zodResponseFormat(Lighthouse, "lighthouse"),
    });
    const parsed = (await runner.finalChatCompletion()).choices[0]?.message.parsed;
    expect(Lighthouse.parse(parsed)).toEqual(parsed);
  });

  it("shows a picture of a data URL to the model", async () => {
    const completion = await client().chat.completions.create({
      model,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${RED_PIXEL}` } },
          ],
        },
      ],
    });
    expect(completion.choices[0]?.message.content).toMatch(/Picture 1 of 1 is .*1 ?[x×] ?1/);
  });

  it("throws RateLimitError for the provider's rate limit", async () => {
    const call = client().chat.completions.create(ask(model, "[[fault: status=429; retry-after=1]] Hi"));
    const error = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" });
    const { headers, requestID } = error as InstanceType<typeof OpenAI.RateLimitError>;
    expect([headers.get("retry-after"), requestID]).toEqual(["1", expect.stringMatching(/^req_/)]);
    // The circuit breaker is open for that second; the next test needs it closed.
    await expect.poll(() => client().chat.completions.create(ask(model, "Awake?")), { timeout: 5000 }).toBeDefined();
  });

  it.each([
    {
      fault: "status=400",
      type: OpenAI.BadRequestError,
      status: 400,
      name: "BadRequestError for a request that it rejects",
    },
    {
      fault: "status=401",
      type: OpenAI.InternalServerError,
      status: 500,
      name: "InternalServerError for our own credential",
    },
    { fault: "status=500", type: OpenAI.InternalServerError, status: 503, name: "InternalServerError when it fails" },
  ])("throws $name", async ({ fault, type, status }) => {
    const call = client().chat.completions.create(ask(model, `[[fault: ${fault}]] Hello`));
    await expect(call).rejects.toBeInstanceOf(type);
    await expect(call).rejects.toMatchObject({ status });
  });

  it("throws APIError in the middle of a stream that breaks off", async () => {
    const stream = await client().chat.completions.create({
      ...ask(model, "[[fault: cut-after=3]] Tell me about tides"),
      stream: true,
    });
    let text = "";
    const reading = (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    })();
    await expect(reading).rejects.toBeInstanceOf(OpenAI.APIError);
    expect(text).not.toBe("");
  });
});

describe("the openai client and the gateway itself", () => {
  it.each([MODELS.anthropic, MODELS.gemini, MODELS.openai])(
    "throws BadRequestError for a picture by %s, and names a model that draws",
    async (model) => {
      const call = client().chat.completions.create(draw(model));
      await expect(call).rejects.toBeInstanceOf(OpenAI.BadRequestError);
      await expect(call).rejects.toThrow("beta-3-pro-image-preview");
    },
  );

  it("gets a picture in a stream", async () => {
    const stream = await client().chat.completions.create({ ...draw("beta-3-pro-image-preview"), stream: true });
    // The client's types do not know pictures.
    const deltas = (await Array.fromAsync(stream)).map((chunk) => chunk.choices[0]?.delta as { images?: unknown[] });
    expect(deltas.flatMap((delta) => delta?.images ?? [])).toMatchObject([
      { index: 0, type: "image_url", image_url: { url: PNG_URL } },
    ]);
  });

  it("gets a picture beside text, and shows it to another model", async () => {
    const drawn = await client().chat.completions.create(draw("beta-3-pro-image-preview"));
    const parts = drawn.choices[0]?.message.content as unknown as OpenAI.ChatCompletionContentPart[];
    const picture = parts.find((part) => part.type === "image_url")!;
    expect(picture).toMatchObject({ image_url: { url: PNG_URL } });
    const seen = await client().chat.completions.create({
      model: MODELS.anthropic,
      messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, picture] }],
    });
    expect(seen.choices[0]?.message.content).toContain("Picture 1 of 1 is ");
  });
});
