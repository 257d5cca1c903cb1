import {
  type Candidate,
  type ContentEmbedding,
  type CountTokensResponse,
  FinishReason,
  FunctionCallingConfigMode,
  type FunctionDeclaration,
  type GenerateContentParameters,
  type GenerateContentResponse,
  type GenerateContentResponseUsageMetadata,
  GoogleGenAI,
  HarmBlockThreshold,
  HarmCategory,
  MediaModality,
  type Part,
  ThinkingLevel,
} from "@google/genai";
import { describe, expect, it, vi } from "vitest";
import { readGeminiRequest } from "../../src/formats/gemini/request.ts";
import { toGeminiRequest } from "../../src/providers/gemini/request.ts";
import { flash } from "../providers/gemini/model.ts";
import { PIXEL } from "./support/png-reader.ts";
import { GEMINI_MODEL, openSimulator, post } from "./support/simulators.ts";

/*
 * The simulator reads and writes with the format. The official client's types say here what the dialect is, so that a mistake of the
 * format is not hidden by its use on both sides.
 */

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A request with most of what the contract has, as the official client types it. */
const REQUEST = {
  model: "gemini-any",
  contents: [
    {
      role: "user",
      parts: [
        { text: "What is this?" },
        { inlineData: { mimeType: "image/png", data: PIXEL } },
        { inlineData: { mimeType: "audio/wav", data: "UklGRg==" } },
        {
          fileData: { fileUri: "https://example.com/a.mp4", mimeType: "video/mp4" },
          videoMetadata: { startOffset: "1.5s", endOffset: "20s", fps: 2 },
        },
      ],
    },
    {
      role: "model",
      parts: [
        { text: "A picture. The weather follows.", thoughtSignature: "c2ln" },
        {
          functionCall: { id: "call_1", name: "get_weather", args: { city: "Oslo" } },
          thoughtSignature: "skip_thought_signature_validator",
        },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "call_1", name: "get_weather", response: { output: "No station" } } },
        { text: "And now?" },
      ],
    },
  ],
  config: {
    systemInstruction: { parts: [{ text: "Be brief." }] },
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    maxOutputTokens: 500,
    stopSequences: ["HALT"],
    seed: 7,
    presencePenalty: 0.2,
    frequencyPenalty: 0.1,
    responseMimeType: "application/json",
    responseJsonSchema: schema,
    thinkingConfig: { thinkingLevel: ThinkingLevel.LOW, includeThoughts: true },
    tools: [
      {
        functionDeclarations: [
          { name: "get_weather", description: "The weather.", parametersJsonSchema: schema },
          { name: "ping" },
        ],
      },
      { googleSearch: {} },
    ],
    toolConfig: {
      functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["get_weather"] },
    },
    safetySettings: [
      { category: HarmCategory.HARM_CATEGORY_HARASSMENT, threshold: HarmBlockThreshold.BLOCK_ONLY_HIGH },
    ],
  },
} satisfies GenerateContentParameters;

async function openClient(): Promise<GoogleGenAI> {
  const { url } = await openSimulator();
  return new GoogleGenAI({ apiKey: "any", vertexai: false, httpOptions: { baseUrl: url } });
}

describe("a request as the official client types it", () => {
  it("is the same after the format has read it and the dialect has written it, and answered by the simulator", async () => {
    const client = await openClient();
    const sent = vi.spyOn(globalThis, "fetch");
    const { functionCalls } = await client.models.generateContent(REQUEST);
    expect(functionCalls).toMatchObject([{ name: "get_weather" }]);
    const body = sent.mock.calls[0]?.[1]?.body as string;
    const { request, unrecognized } = readGeminiRequest(JSON.parse(body), REQUEST.model);
    expect(unrecognized).toEqual([]);
    const translated = toGeminiRequest(request, flash({}, { name: REQUEST.model }), { mode: "whole" });
    expect(JSON.parse(String(translated.body))).toEqual(JSON.parse(body));
  });

  it("may have a function whose name the contract cannot have", async () => {
    const client = await openClient();
    const { functionCalls } = await client.models.generateContent({
      ...REQUEST,
      contents: "weather.get(city='Oslo')",
      config: { tools: [{ functionDeclarations: [{ name: "weather.get", parametersJsonSchema: schema }] }] },
    });
    expect(functionCalls).toMatchObject([{ name: "weather.get", args: { city: "Oslo" } }]);
  });
});

/** What the service sends; the client's class has more of its own. */
type Response = Pick<GenerateContentResponse, "candidates" | "usageMetadata" | "modelVersion" | "responseId">;

/** Posts a request and returns all that the simulator writes. */
async function answerTo(method: string, body: object): Promise<string> {
  const response = await post(await openSimulator(), { dialect: "gemini", path: `${GEMINI_MODEL}:${method}`, body });
  expect(response.status).toBe(200);
  return response.text();
}

describe("an answer as the official client types it", () => {
  const asked = { contents: [{ role: "user", parts: [{ text: "Write 2 words" }] }] };
  const thinking = { ...asked, generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" } } };
  const text = expect.any(String) as string;
  const head = {
    modelVersion: "gemini-3-flash-preview",
    responseId: expect.stringMatching(/^[0-9a-f]{22}$/u) as string,
  };
  const counted = (candidatesTokenCount: number, thoughtsTokenCount = 0) =>
    ({
      promptTokenCount: 7,
      candidatesTokenCount,
      totalTokenCount: 7 + candidatesTokenCount + thoughtsTokenCount,
      ...(thoughtsTokenCount > 0 && { thoughtsTokenCount }),
    }) satisfies GenerateContentResponseUsageMetadata;
  const candidate = (part: Part, end: Pick<Candidate, "finishReason"> = {}) =>
    ({ content: { role: "model", parts: [part] }, index: 0, ...end }) satisfies Candidate;
  const STOP = { finishReason: FinishReason.STOP };

  it("is all that the simulator writes", async () => {
    const written = { candidates: [candidate({ text }, STOP)], usageMetadata: counted(2), ...head } satisfies Response;
    expect(JSON.parse(await answerTo("generateContent", asked))).toEqual(written);
  });

  it("is all that the simulator writes of thoughts and of calls", async () => {
    const declaration = { name: "get_weather", parametersJsonSchema: schema } satisfies FunctionDeclaration;
    const body = {
      ...thinking,
      contents: [{ role: "user", parts: [{ text: "get_weather(city='Oslo') ping(now=true)" }] }],
      tools: [{ functionDeclarations: [declaration, { name: "ping" }] }],
    };
    const { candidates } = JSON.parse(await answerTo("generateContent", body)) as Response;
    const id = expect.stringMatching(/^[0-9a-f]{24}$/u) as string;
    const parts = [
      { text, thought: true },
      { functionCall: { id, name: "get_weather", args: { city: "Oslo" } }, thoughtSignature: text },
      { functionCall: { id, name: "ping", args: { now: true } } },
    ] satisfies Part[];
    expect(candidates).toEqual([{ content: { role: "model", parts }, index: 0, ...STOP } satisfies Candidate]);
  });

  it("is all that the simulator writes of a picture", async () => {
    const simulator = await openSimulator();
    const response = await post(simulator, {
      dialect: "gemini",
      path: "/v1beta/models/gemini-3-pro-image-preview:generateContent",
      body: { ...asked, generationConfig: { responseModalities: ["IMAGE"] } },
    });
    const { candidates, usageMetadata } = (await response.json()) as Response;
    const part = { inlineData: { mimeType: "image/png", data: text }, thoughtSignature: text } satisfies Part;
    expect(candidates).toEqual([candidate(part, STOP)]);
    expect(usageMetadata).toEqual({
      ...counted(1120),
      candidatesTokensDetails: [{ modality: MediaModality.IMAGE, tokenCount: 1120 }],
    } satisfies GenerateContentResponseUsageMetadata);
  });

  it("is all that the simulator writes as a stream, of events or as an array", async () => {
    const events = await answerTo("streamGenerateContent?alt=sse", thinking);
    const objects = [...events.matchAll(/data: (.*)\r\n\r\n/gu)].map(([, json]) => JSON.parse(json!) as Response);
    expect(events.replaceAll(/data: .*\r\n\r\n/gu, "")).toBe("");
    const array = await answerTo("streamGenerateContent", thinking);
    expect(JSON.parse(array)).toEqual(objects);
    const thoughts = objects.filter(({ candidates }) => candidates?.[0]?.content?.parts?.[0]?.thought === true);
    expect(thoughts.length).toBeGreaterThan(5);
    expect(objects).toEqual([
      ...thoughts.map((_, index): Response => {
        return { candidates: [candidate({ text, thought: true })], usageMetadata: counted(0, index + 1), ...head };
      }),
      { candidates: [candidate({ text })], usageMetadata: counted(1, thoughts.length), ...head },
      { candidates: [candidate({ text })], usageMetadata: counted(2, thoughts.length), ...head },
      {
        candidates: [candidate({ text: "", thoughtSignature: text })],
        usageMetadata: counted(2, thoughts.length),
        ...head,
      },
      { candidates: [candidate({ text: "" }, STOP)], usageMetadata: counted(2, thoughts.length), ...head },
    ] satisfies Response[]);
  });

  it("is all that the simulator writes of embeddings and of counts", async () => {
    const simulator = await openSimulator();
    const embed = async (method: string, body: object): Promise<unknown> => {
      const path = `/v1beta/models/gemini-embedding-001:${method}`;
      return (await post(simulator, { dialect: "gemini", path, body })).json();
    };
    const one = { content: { parts: [{ text: "the sea" }] }, outputDimensionality: 2 };
    const written = { values: [expect.any(Number) as number, expect.any(Number) as number] } satisfies ContentEmbedding;
    expect(await embed("embedContent", one)).toEqual({ embedding: written });
    const requests = [{ ...one, model: "models/gemini-embedding-001" }];
    expect(await embed("batchEmbedContents", { requests })).toEqual({ embeddings: [written] });
    const count = { totalTokens: 7 } satisfies Pick<CountTokensResponse, "totalTokens">;
    expect(JSON.parse(await answerTo("countTokens", asked))).toEqual(count);
    const whole = { generateContentRequest: { ...asked, model: "models/gemini-3-flash-preview" } };
    expect(JSON.parse(await answerTo("countTokens", whole))).toEqual(count);
  });
});
