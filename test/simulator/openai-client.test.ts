import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { SimulatorOptions } from "../../src/simulator/server.ts";
import { PIXEL } from "./support/png-reader.ts";
import { openSimulator } from "./support/simulators.ts";

const MODEL = "gpt-5-mini";

async function openClient(options: SimulatorOptions = {}): Promise<OpenAI> {
  const { url } = await openSimulator(options);
  return new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
}

function ask(content: string): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model: MODEL, messages: [{ role: "user", content }] };
}

const WEATHER_FUNCTION = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const WEATHER: OpenAI.ChatCompletionTool = { type: "function", function: WEATHER_FUNCTION };

describe("the official OpenAI client", () => {
  it("gets a completion with a consistent usage", async () => {
    const client = await openClient();
    const completion = await client.chat.completions.create(ask("What is a tide?"));
    expect(completion.choices[0]?.message.content).toContain("What is a tide?");
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    const { usage } = completion;
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0));
  });

  it("receives the same text as a stream, with usage in a separate chunk if requested", async () => {
    const client = await openClient();
    const whole = await client.chat.completions.create(ask("Tell me a story in 50 words"));
    const stream = await client.chat.completions.create({
      ...ask("Tell me a story in 50 words"),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const texts = chunks.map((chunk) => chunk.choices[0]?.delta.content).filter(Boolean);
    expect(texts.join("")).toBe(whole.choices[0]?.message.content);
    expect(texts).toHaveLength(whole.usage?.completion_tokens ?? 0);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  it("gets no usage in a stream unless requested", async () => {
    const client = await openClient();
    const stream = await client.chat.completions.create({ ...ask("Hello"), stream: true });
    for await (const chunk of stream) expect(chunk).not.toHaveProperty("usage");
  });

  it("assembles a stream with its own helper", async () => {
    const client = await openClient();
    const helper = client.chat.completions.stream({ ...ask("get weather, please"), stream: true, tools: [WEATHER] });
    const completion = await helper.finalChatCompletion();
    expect(completion.choices[0]?.finish_reason).toBe("tool_calls");
    const [call] = completion.choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
  });

  it("runs a tool loop to an answer that quotes the result", async () => {
    const client = await openClient();
    const run = client.chat.completions.runTools({
      model: MODEL,
      messages: [{ role: "user", content: "Please get_weather for Oslo" }],
      tools: [{ type: "function", function: { ...WEATHER_FUNCTION, description: "", function: () => "14 degrees" } }],
    });
    expect(await run.finalContent()).toContain("14 degrees");
  });

  it("gets the requested number of different choices, whole and streamed", async () => {
    const client = await openClient();
    const { choices } = await client.chat.completions.create({ ...ask("Tell me a story in 30 words"), n: 3 });
    expect(new Set(choices.map((choice) => choice.message.content)).size).toBe(3);
    const streamed = client.chat.completions.stream({ ...ask("Tell me a story in 30 words"), n: 3, stream: true });
    const { choices: folded } = await streamed.finalChatCompletion();
    expect(folded.map((choice) => choice.message.content)).toEqual(choices.map((choice) => choice.message.content));
  });

  it("gets the finish reason of an answer that ended early", async () => {
    const client = await openClient();
    const cut = await client.chat.completions.create({ ...ask("Hello"), max_completion_tokens: 3 });
    expect(cut).toMatchObject({ choices: [{ finish_reason: "length" }], usage: { completion_tokens: 3 } });
    const stopped = await client.chat.completions.create({ ...ask("one two HALT three"), stop: "HALT" });
    expect(stopped.choices[0]?.message.content).toMatch(/one two $/u);
    expect(stopped.choices[0]?.finish_reason).toBe("stop");
  });

  it("gets a description of its image with type and size", async () => {
    const client = await openClient();
    const completion = await client.chat.completions.create({
      model: MODEL,
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }] },
      ],
    });
    expect(completion.choices[0]?.message.content).toContain("image/png, 1 × 1 pixels, 70 bytes");
  });

  it("gets the same answer for the same seed, and a different one for another seed", async () => {
    const client = await openClient();
    const tell = async (seed: number): Promise<string | null | undefined> =>
      (await client.chat.completions.create({ ...ask("A story in 80 words"), seed })).choices[0]?.message.content;
    expect(await tell(1)).toBe(await tell(1));
    expect(await tell(1)).not.toBe(await tell(2));
  });

  it("lists the models and finds one", async () => {
    const client = await openClient();
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain(MODEL);
    expect(await client.models.retrieve(MODEL)).toMatchObject({ id: MODEL, object: "model" });
    await expect(client.models.retrieve("a/b")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  it.each([
    ["status=429; retry-after=2", OpenAI.RateLimitError, 429],
    ["status=500", OpenAI.InternalServerError, 500],
    ["status=400; code=context_length_exceeded", OpenAI.BadRequestError, 400],
    ["reset", OpenAI.APIConnectionError, undefined],
  ])("throws its own error class for the fault %s", async (fault, errorClass, status) => {
    const client = await openClient({ faults: [{ fault }] });
    const failure: unknown = await client.chat.completions.create(ask("Hello")).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(errorClass);
    expect(failure).toMatchObject({ status });
  });

  it("throws for an error during the stream", async () => {
    const client = await openClient({ faults: [{ fault: "error-after=2" }] });
    const read = async (): Promise<number> => {
      let count = 0;
      for await (const _ of await client.chat.completions.create({ ...ask("Hello"), stream: true })) count += 1;
      return count;
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  it("gets an error for an unknown parameter", async () => {
    const client = await openClient();
    const failure: unknown = await client.chat.completions
      .create(Object.assign(ask("Hello"), { colour: "red" }))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 400, code: "unknown_parameter", param: "colour" });
  });
});

describe("the official OpenAI client, for embeddings", () => {
  const EMBEDDING_MODEL = "text-embedding-3-small";

  it("gets a vector of length 1 for each input, in order, with usage", async () => {
    const client = await openClient();
    const { data, model, usage } = await client.embeddings.create({
      model: EMBEDDING_MODEL,
      input: ["the cat sat", "a dog ran"],
    });
    expect(data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
      [0, 1536],
      [1, 1536],
    ]);
    for (const { embedding } of data) expect(Math.hypot(...embedding)).toBeCloseTo(1, 4);
    expect({ model, usage }).toEqual({ model: EMBEDDING_MODEL, usage: { prompt_tokens: 6, total_tokens: 6 } });
  });

  it("gets the same vector as numbers and as base64, and similar ones for similar texts", async () => {
    const client = await openClient();
    const of = async (input: string, more: object = {}): Promise<readonly number[]> =>
      (await client.embeddings.create({ model: EMBEDDING_MODEL, input, dimensions: 256, ...more })).data[0]!.embedding;
    const cat = await of("the black cat");
    expect(await of("the black cat", { encoding_format: "float" })).toEqual(cat);
    const product = (other: readonly number[]): number => cat.reduce((sum, value, at) => sum + value * other[at]!, 0);
    expect(product(await of("the white cat"))).toBeGreaterThan(product(await of("quarterly figures")) + 0.2);
  });

  it.each<[string, object, number]>([
    ["an empty input", { input: ["a", ""] }, 400],
    ["too many inputs", { input: Array<string>(2049).fill("a") }, 400],
    ["more dimensions than the model has", { dimensions: 2000 }, 400],
    ["a longer input than the model reads", { input: "word ".repeat(10_000) }, 400],
    ["a chat model", { model: MODEL }, 403],
    ["an unknown field", { task: "query" }, 400],
  ])("is refused with %s", async (_, more, status) => {
    const client = await openClient();
    await expect(client.embeddings.create({ model: EMBEDDING_MODEL, input: "a", ...more })).rejects.toMatchObject({
      status,
    });
  });

  it("meets the faults of completions", async () => {
    const client = await openClient({ faults: [{ fault: "status=429; retry-after=2", model: EMBEDDING_MODEL }] });
    await expect(client.embeddings.create({ model: EMBEDDING_MODEL, input: "a" })).rejects.toMatchObject({
      status: 429,
    });
  });

  it("is refused when it asks an embedding model for a completion", async () => {
    const client = await openClient();
    await expect(client.chat.completions.create({ ...ask("Hi"), model: EMBEDDING_MODEL })).rejects.toMatchObject({
      status: 404,
    });
  });
});
