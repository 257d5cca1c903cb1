import {
  ApiError,
  FunctionCallingConfigMode,
  GoogleGenAI,
  Modality,
  type GenerateContentParameters,
} from "@google/genai";
import { describe, expect, it } from "vitest";
import type { SimulatorOptions } from "../../src/simulator/server.ts";
import { PIXEL, readPng } from "./support/png-reader.ts";
import { openSimulator } from "./support/simulators.ts";

const MODEL = "gemini-3-flash-preview";
const IMAGE_MODEL = "gemini-3-pro-image-preview";

async function openClient(options: SimulatorOptions = {}): Promise<GoogleGenAI> {
  const { url } = await openSimulator(options);
  return new GoogleGenAI({ apiKey: "any", vertexai: false, httpOptions: { baseUrl: url } });
}

const PICTURE: GenerateContentParameters = {
  model: IMAGE_MODEL,
  contents: "A red bicycle by the sea",
  config: {
    responseModalities: [Modality.TEXT, Modality.IMAGE],
    imageConfig: { aspectRatio: "16:9", imageSize: "1K" },
  },
};

describe("the official Gemini client", () => {
  it("gets an answer that quotes the question and the system instruction", async () => {
    const client = await openClient();
    const response = await client.models.generateContent({
      model: MODEL,
      contents: "What is a tide?",
      config: { systemInstruction: "You are terse.", temperature: 0.5 },
    });
    expect(response.text).toContain("What is a tide?");
    expect(response.text).toContain("You are terse.");
    expect(response.candidates?.[0]?.finishReason).toBe("STOP");
    expect(response.modelVersion).toBe(MODEL);
  });

  it("receives the same text as a stream, one token per chunk, with usage as a running total", async () => {
    const client = await openClient();
    const request = { model: MODEL, contents: "Tell me a story in 40 words" };
    const whole = await client.models.generateContent(request);
    const texts: string[] = [];
    const totals: (number | undefined)[] = [];
    const finishes: unknown[] = [];
    for await (const chunk of await client.models.generateContentStream(request)) {
      if (chunk.text) texts.push(chunk.text);
      totals.push(chunk.usageMetadata?.candidatesTokenCount);
      finishes.push(chunk.candidates?.[0]?.finishReason);
    }
    expect(texts.join("")).toBe(whole.text);
    expect(texts).toHaveLength(whole.usageMetadata?.candidatesTokenCount ?? 0);
    expect(totals.slice(0, 3)).toEqual([1, 2, 3]);
    expect(totals.at(-1)).toBe(texts.length);
    expect(finishes.filter(Boolean)).toEqual(["STOP"]);
  });

  it("gets text and an image of the requested size", async () => {
    const client = await openClient();
    const response = await client.models.generateContent(PICTURE);
    const [text, image] = response.candidates?.[0]?.content?.parts ?? [];
    expect(text?.text).toContain("A red bicycle by the sea");
    expect(image?.inlineData?.mimeType).toBe("image/png");
    expect(readPng(Buffer.from(image?.inlineData?.data ?? "", "base64"))).toMatchObject({ width: 1376, height: 768 });
    expect(response.usageMetadata).toMatchObject({
      candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1120 }],
    });
  });

  it("receives the image of a stream in one chunk, identical to the whole response", async () => {
    const client = await openClient();
    const whole = await client.models.generateContent(PICTURE);
    const images: unknown[] = [];
    for await (const chunk of await client.models.generateContentStream(PICTURE)) {
      for (const part of chunk.candidates?.[0]?.content?.parts ?? []) if (part.inlineData) images.push(part);
    }
    expect(images).toEqual([whole.candidates?.[0]?.content?.parts?.[1]]);
  });

  it("gets an image without text if only an image is requested", async () => {
    const client = await openClient();
    const response = await client.models.generateContent({
      ...PICTURE,
      config: { responseModalities: [Modality.IMAGE] },
    });
    expect(response.candidates?.[0]?.content?.parts?.map((part) => Object.keys(part)[0])).toEqual(["inlineData"]);
  });

  it("gets only text from a model without image output", async () => {
    const client = await openClient();
    const response = await client.models.generateContent({ ...PICTURE, model: MODEL });
    expect(response.candidates?.[0]?.content?.parts?.map((part) => Object.keys(part))).toEqual([["text"]]);
  });

  it("gets a description of its image, and finish reasons for limits and stop sequences", async () => {
    const client = await openClient();
    const parts = [{ inlineData: { mimeType: "image/png", data: PIXEL } }, { text: "One two HALT three" }];
    const seen = await client.models.generateContent({ model: MODEL, contents: [{ role: "user", parts }] });
    expect(seen.text).toContain("image/png, 1 × 1 pixels, 70 bytes");
    expect(seen.usageMetadata?.promptTokensDetails).toContainEqual({ modality: "IMAGE", tokenCount: 1 });
    const cut = await client.models.generateContent({
      model: MODEL,
      contents: "Hello",
      config: { maxOutputTokens: 4 },
    });
    expect(cut.candidates?.[0]?.finishReason).toBe("MAX_TOKENS");
    expect(cut.usageMetadata?.candidatesTokenCount).toBe(4);
    const config = { stopSequences: ["HALT"] };
    const stopped = await client.models.generateContent({ model: MODEL, contents: "One two HALT three", config });
    expect(stopped.text).toMatch(/One two $/u);
    expect(stopped.candidates?.[0]?.finishReason).toBe("STOP");
  });

  it("gets a call of a forced function, and text after its response", async () => {
    const client = await openClient();
    const parametersJsonSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const config = {
      tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema }] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
    };
    const question = { role: "user", parts: [{ text: "Hi" }] };
    const first = await client.models.generateContent({ model: MODEL, contents: [question], config });
    const content = first.candidates?.[0]?.content;
    expect(first.functionCalls).toMatchObject([{ name: "get_weather", args: { city: expect.any(String) } }]);
    const result = { functionResponse: { name: "get_weather", response: { output: "14 degrees" } } };
    const contents = [question, content ?? {}, { role: "user", parts: [result] }];
    const second = await client.models.generateContent({ model: MODEL, contents, config: { tools: config.tools } });
    expect(second.text).toContain("14 degrees");
  });

  it("gets JSON that satisfies a schema", async () => {
    const client = await openClient();
    const responseJsonSchema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer", minimum: 18 } },
      required: ["name", "age"],
    };
    const config = { responseMimeType: "application/json", responseJsonSchema };
    const response = await client.models.generateContent({ model: MODEL, contents: "A person", config });
    expect(JSON.parse(response.text ?? "")).toEqual({ name: "example name", age: 18 });
  });

  it("lists the models and finds one", async () => {
    const client = await openClient();
    const names: (string | undefined)[] = [];
    for await (const model of await client.models.list({ config: { queryBase: true } })) names.push(model.name);
    expect(names).toEqual([
      "models/gemini-3-pro-preview",
      `models/${MODEL}`,
      `models/${IMAGE_MODEL}`,
      "models/gemini-embedding-001",
    ]);
    expect(await client.models.get({ model: MODEL })).toMatchObject({ name: `models/${MODEL}` });
  });

  it.each([
    ["status=429; retry-after=3", 429, /RESOURCE_EXHAUSTED.*"retryDelay":"3s"/u],
    ["status=503", 503, /UNAVAILABLE/u],
    ["status=400; code=API_KEY_INVALID", 400, /API_KEY_INVALID/u],
  ])("throws an API error for the fault %s", async (fault, status, message) => {
    const client = await openClient({ faults: [{ fault }] });
    const failure: unknown = await client.models
      .generateContent({ model: MODEL, contents: "Hello" })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status, message: expect.stringMatching(message) as unknown });
  });

  it("gets the API's error message for a value out of range", async () => {
    const client = await openClient();
    const request = { model: MODEL, contents: "Hello", config: { temperature: 3 } };
    await expect(client.models.generateContent(request)).rejects.toThrow(/temperature must be in the range/u);
  });
});

describe("the official Gemini client, for embeddings", () => {
  const EMBEDDING_MODEL = "gemini-embedding-001";

  it("gets a vector for each content, of the requested length", async () => {
    const client = await openClient();
    const { embeddings } = await client.models.embedContent({
      model: EMBEDDING_MODEL,
      contents: ["the cat sat", "a dog ran"],
      config: { taskType: "RETRIEVAL_DOCUMENT", outputDimensionality: 768 },
    });
    expect(embeddings?.map(({ values }) => values?.length)).toEqual([768, 768]);
    const whole = await client.models.embedContent({ model: EMBEDDING_MODEL, contents: "the cat sat" });
    expect(whole.embeddings?.map(({ values }) => values?.length)).toEqual([3072]);
  });

  it("gets one vector from embedContent, the same as in a batch", async () => {
    const { url } = await openSimulator({});
    const post = async (method: string, body: object): Promise<unknown> => {
      const headers = { "content-type": "application/json", "x-goog-api-key": "any" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      return (await fetch(`${url}/v1beta/models/${EMBEDDING_MODEL}:${method}`, init)).json();
    };
    const content = { parts: [{ text: "the cat sat" }] };
    const one = (await post("embedContent", { content })) as { embedding: { values: number[] } };
    const batch = (await post("batchEmbedContents", {
      requests: [{ model: `models/${EMBEDDING_MODEL}`, content }],
    })) as object;
    expect(batch).toEqual({ embeddings: [one.embedding] });
  });

  it.each<[string, { contents?: string[]; model?: string }, number]>([
    ["more than 100 contents", { contents: Array<string>(101).fill("a") }, 400],
    ["an empty content", { contents: [""] }, 400],
    ["a model of completions", { model: MODEL }, 404],
  ])("is refused with %s", async (_, more, status) => {
    const client = await openClient();
    const asked = client.models.embedContent({ model: EMBEDDING_MODEL, contents: "a", ...more });
    await expect(asked).rejects.toMatchObject({ status });
  });

  it("is refused when it asks an embedding model for an answer", async () => {
    const client = await openClient();
    const asked = client.models.generateContent({ model: EMBEDDING_MODEL, contents: "Hi" });
    await expect(asked).rejects.toMatchObject({ status: 404 });
  });
});
