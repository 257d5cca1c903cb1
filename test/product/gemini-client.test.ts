import { ApiError, type Content, FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { RED_PIXEL } from "./support/red-pixel.ts";
import {
  answerJson,
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";

let upstream: Upstream;
let product: Product;
/** What the upstream does with the next requests; it says "Served." when the list is empty. */
let script: ((exchange: UpstreamExchange) => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const step = script.shift();
    if (step === undefined) answerText(exchange, "Served.");
    else step(exchange);
  });
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
  upstream.exchanges.length = 0;
  cleanEnvironment();
});

function client(options: { apiKey?: string; timeout?: number } = {}): GoogleGenAI {
  const { apiKey = product.firstKey, timeout } = options;
  const httpOptions = { baseUrl: product.url, ...(timeout !== undefined && { timeout }) };
  return new GoogleGenAI({ apiKey, vertexai: false, httpOptions });
}

/** The body that the upstream got last. */
function sent(): Record<string, unknown> {
  return JSON.parse(upstream.exchanges.at(-1)!.body) as Record<string, unknown>;
}

/** The error that a call ends with. */
const errorOf = rejectionsOf(ApiError);

const WEATHER = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};

/** Answers with calls of `get_weather`. */
const call =
  (...cities: string[]) =>
  ({ response }: UpstreamExchange): void =>
    answerJson(response, 200, {
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: null,
            tool_calls: cities.map((city) => ({
              id: `id_${city}`,
              type: "function",
              function: { name: "get_weather", arguments: JSON.stringify({ city }) },
            })),
          },
          finish_reason: "tool_calls",
        },
      ],
    });

describe("the unmodified @google/genai client", () => {
  it("gets a whole answer", async () => {
    const response = await client().models.generateContent({
      model: "alpha-haiku-4.5",
      contents: "Tell me about tides",
      config: { systemInstruction: "Be brief.", temperature: 0.5, maxOutputTokens: 500 },
    });
    expect(response.text).toContain("Tell me about tides");
    expect(response.candidates?.[0]).toMatchObject({ finishReason: "STOP", index: 0, content: { role: "model" } });
    expect(response.modelVersion).toBe("alpha-haiku-4.5");
    expect(response.responseId).toMatch(/^chatcmpl-/);
    const { promptTokenCount = 0, candidatesTokenCount = 0, totalTokenCount } = response.usageMetadata ?? {};
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount);
    expect(totalTokenCount).toBeGreaterThan(0);
  });

  it("reads a stream to its end", async () => {
    const whole = await client().models.generateContent({ model: "beta-3-flash", contents: "Tell me about tides" });
    const stream = await client().models.generateContentStream({
      model: "beta-3-flash",
      contents: "Tell me about tides",
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map(({ text }) => text ?? "").join("")).toBe(whole.text);
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe("STOP");
    expect(chunks.at(-1)?.usageMetadata?.totalTokenCount).toBe(whole.usageMetadata?.totalTokenCount);
    expect(chunks.slice(0, -1).every(({ candidates }) => candidates?.[0]?.finishReason === undefined)).toBe(true);
  });

  it("keeps streamed turns in the history of a chat, and sends them back as one message", async () => {
    script = [
      ({ response }) => {
        beginStream(response);
        response.end(textEvent("Hel") + textEvent("lo.") + END_EVENTS);
      },
    ];
    const chat = client().chats.create({ model: "local/test" });
    await Array.fromAsync(await chat.sendMessageStream({ message: "Hi" }));
    const response = await chat.sendMessage({ message: "And now?" });
    expect(response.text).toBe("Served.");
    expect(sent()["messages"]).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "And now?" },
    ]);
  });

  it("calls functions, several at once, and sends their results", async () => {
    script = [call("Paris", "Oslo")];
    const ai = client();
    const config = {
      tools: [{ functionDeclarations: [WEATHER] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
    };
    const first = await ai.models.generateContent({ model: "local/test", contents: "Weather?", config });
    expect(first.functionCalls).toEqual([
      { id: "id_Paris", name: "get_weather", args: { city: "Paris" } },
      { id: "id_Oslo", name: "get_weather", args: { city: "Oslo" } },
    ]);
    expect(first.candidates?.[0]?.finishReason).toBe("STOP");
    expect(sent()).toMatchObject({
      tool_choice: "required",
      tools: [
        {
          function: {
            name: "get_weather",
            parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
          },
        },
      ],
    });

    const contents: Content[] = [
      { role: "user", parts: [{ text: "Weather?" }] },
      first.candidates![0]!.content!,
      {
        role: "user",
        parts: ["Oslo", "Paris"].map((city) => ({
          functionResponse: { id: `id_${city}`, name: "get_weather", response: { output: `rain in ${city}` } },
        })),
      },
    ];
    const second = await ai.models.generateContent({ model: "local/test", contents, config });
    expect(second.text).toBe("Served.");
    expect((sent()["messages"] as object[]).slice(1)).toEqual([
      expect.objectContaining({
        role: "assistant",
        tool_calls: [expect.objectContaining({ id: "id_Paris" }), expect.objectContaining({ id: "id_Oslo" })],
      }),
      { role: "tool", tool_call_id: "id_Oslo", content: '{"output":"rain in Oslo"}' },
      { role: "tool", tool_call_id: "id_Paris", content: '{"output":"rain in Paris"}' },
    ]);
  });

  it("gets structured output", async () => {
    script = [(exchange) => answerText(exchange, '{"city":"Paris"}')];
    const response = await client().models.generateContent({
      model: "local/test",
      contents: "Where?",
      config: {
        responseMimeType: "application/json",
        responseSchema: { type: Type.OBJECT, properties: { city: { type: Type.STRING, nullable: true } } },
      },
    });
    expect(JSON.parse(response.text ?? "")).toEqual({ city: "Paris" });
    expect(sent()["response_format"]).toMatchObject({
      type: "json_schema",
      json_schema: { schema: { type: "object", properties: { city: { type: ["string", "null"] } } } },
    });
  });

  it.each(["alpha-haiku-4.5", "beta-3-flash"])("shows a picture to %s", async (model) => {
    const inlineData = { mimeType: "image/png", data: RED_PIXEL };
    const { text } = await client().models.generateContent({ model, contents: ["What is this?", { inlineData }] });
    expect(text).toContain("Picture 1 of 1 is ");
  });

  it("gets a picture, whole and in a stream", async () => {
    const asked = {
      model: "beta-3-pro-image-preview",
      contents: "Draw a lighthouse",
      config: { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "16:9" } },
    };
    const whole = await client().models.generateContent(asked);
    const picture = whole.candidates?.[0]?.content?.parts?.find(({ inlineData }) => inlineData !== undefined);
    expect(picture?.inlineData).toMatchObject({ mimeType: "image/png" });
    expect(picture?.inlineData?.data).toMatch(/^iVBORw0KGgo/);
    const chunks = await Array.fromAsync(await client().models.generateContentStream(asked));
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    expect(parts.some(({ inlineData }) => inlineData?.data?.startsWith("iVBORw0KGgo"))).toBe(true);
  });

  it("shows the thoughts only when they are asked for", async () => {
    const ask = (includeThoughts: boolean) =>
      client().models.generateContent({
        model: "alpha-sonnet-4.5",
        contents: "Tell me about tides",
        config: { thinkingConfig: { includeThoughts, thinkingBudget: 2000 }, maxOutputTokens: 4000 },
      });
    const thoughts = async (includeThoughts: boolean): Promise<number> => {
      const { candidates } = await ask(includeThoughts);
      return candidates?.[0]?.content?.parts?.filter(({ thought }) => thought === true).length ?? 0;
    };
    expect(await thoughts(true)).toBeGreaterThan(0);
    expect(await thoughts(false)).toBe(0);
  });

  it("counts tokens", async () => {
    const { totalTokens } = await client().models.countTokens({ model: "beta-3-flash", contents: "Hello there" });
    expect(totalTokens).toBeGreaterThan(0);
  });

  it("embeds texts", async () => {
    const { embeddings } = await client().models.embedContent({
      model: "gamma-embedding-3-small",
      contents: ["the cat sat", "a dog ran"],
      config: { outputDimensionality: 8, taskType: "RETRIEVAL_DOCUMENT" },
    });
    expect(embeddings?.map(({ values }) => values?.length)).toEqual([8, 8]);
  });

  it("lists the models page by page, and gets one", async () => {
    const pager = await client().models.list({ config: { pageSize: 2 } });
    expect(pager.page.length).toBe(2);
    const names = (await Array.fromAsync(pager)).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(["models/alpha-opus-4.5", "models/beta-3-flash", "models/local/test"]),
    );
    expect(new Set(names).size).toBe(names.length);
    const model = await client().models.get({ model: "beta-3-flash" });
    expect(model.name).toBe("models/beta-3-flash");
    expect(model.supportedActions).toContain("generateContent");
  });
});

describe("errors of the @google/genai client", () => {
  it("are ApiError with the field for a value out of range", async () => {
    const error = await errorOf(
      client().models.generateContent({ model: "alpha-haiku-4.5", contents: "Hi", config: { temperature: 3 } }),
    );
    expect(error.status).toBe(400);
    expect(JSON.parse(error.message)).toMatchObject({
      error: {
        code: 400,
        status: "INVALID_ARGUMENT",
        message: expect.stringMatching(/^generationConfig\.temperature: /) as string,
        details: [
          { reason: "INVALID_REQUEST", domain: "parley" },
          { fieldViolations: [{ field: "generationConfig.temperature" }] },
        ],
      },
    });
  });

  it("are ApiError with 401 for a wrong key", async () => {
    const error = await errorOf(
      client({ apiKey: "sk_parley_wrong" }).models.generateContent({ model: "beta-3-flash", contents: "Hi" }),
    );
    expect(error.status).toBe(401);
    expect(error.message).toContain('"UNAUTHENTICATED"');
  });

  it("are ApiError with 404 for an unknown model, and at a path that is not served", async () => {
    const unknown = await errorOf(client().models.generateContent({ model: "nope", contents: "Hi" }));
    expect(unknown.status).toBe(404);
    expect(unknown.message).toContain('"MODEL_NOT_FOUND"');
    const files = await errorOf(client().files.get({ name: "files/x" }));
    expect(files.status).toBe(404);
    expect(JSON.parse(files.message)).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
  });

  it("end a stream that broke off", async () => {
    script = [
      ({ response }) => {
        beginStream(response);
        response.write(textEvent("Half of"), () => setTimeout(() => response.destroy(), 50));
      },
    ];
    const stream = await client().models.generateContentStream({ model: "local/test", contents: "Hi" });
    let text = "";
    const error = await errorOf(
      (async () => {
        for await (const chunk of stream) text += chunk.text ?? "";
      })(),
    );
    expect(text).toBe("Half of");
    expect(error.status).toBeGreaterThanOrEqual(500);
  });

  it("come at the client's own timeout, which is the deadline", async () => {
    script = [() => undefined];
    const answer = await fetch(`${product.url}/v1beta/models/local/test:generateContent`, {
      method: "POST",
      headers: { "x-goog-api-key": product.firstKey, "content-type": "application/json", "x-server-timeout": "0.2" },
      body: JSON.stringify({ contents: [{ parts: [{ text: "Hi" }] }] }),
    });
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ error: { code: 504, status: "DEADLINE_EXCEEDED" } });
  });

  // Last, because it disables the model.
  it("say how long to wait when the provider limits the rate", async () => {
    script = [({ response }) => answerJson(response, 429, { error: { message: "slow down" } }, { "retry-after": "7" })];
    const error = await errorOf(client().models.generateContent({ model: "local/test", contents: "Hi" }));
    expect(error.status).toBe(429);
    const { details } = (JSON.parse(error.message) as { error: { details: object[] } }).error;
    expect(details).toContainEqual({ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "7s" });
  });
});
