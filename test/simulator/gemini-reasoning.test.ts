import { GoogleGenAI, ThinkingLevel, type Content, type GenerateContentResponse } from "@google/genai";
import { describe, expect, it } from "vitest";
import { openSimulator, post } from "./support/simulators.ts";

const GEMINI = "gemini-3-flash-preview";
const WEATHER_SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function openGemini(): Promise<GoogleGenAI> {
  const { url } = await openSimulator();
  return new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: url } });
}

function joinParts(responses: readonly GenerateContentResponse[], isThought: boolean | undefined): string {
  return responses
    .flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
    .map((part) => (part.thought === isThought ? (part.text ?? "") : ""))
    .join("");
}

describe("reasoning in the Gemini dialect", () => {
  it.each([
    ["a level", { thinkingLevel: ThinkingLevel.LOW, includeThoughts: true }],
    ["a budget", { thinkingBudget: 7, includeThoughts: true }],
  ])("is returned as thoughts for %s, whole and streamed alike", async (_, thinkingConfig) => {
    const client = await openGemini();
    const request = { model: GEMINI, contents: "What is a tide?", config: { thinkingConfig } };
    const whole = await client.models.generateContent(request);
    const chunks: GenerateContentResponse[] = [];
    for await (const chunk of await client.models.generateContentStream(request)) chunks.push(chunk);
    expect(joinParts([whole], true)).toMatch(/What is/u);
    expect(joinParts(chunks, true)).toBe(joinParts([whole], true));
    expect(joinParts(chunks, undefined)).toBe(whole.text);
    expect(chunks.at(-1)?.usageMetadata).toEqual(whole.usageMetadata);
    const signatures = chunks.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts?.[0]?.thoughtSignature ?? []);
    expect(signatures).toEqual([whole.candidates?.[0]?.content?.parts?.at(-1)?.thoughtSignature]);
  });

  it("counts separately from the answer's tokens, shown or hidden", async () => {
    const client = await openGemini();
    const think = async (thinkingConfig: object | undefined): Promise<GenerateContentResponse> =>
      client.models.generateContent({
        model: GEMINI,
        contents: "What is a tide?",
        config: thinkingConfig ? { thinkingConfig } : {},
      });
    const plain = (await think(undefined)).usageMetadata;
    const hidden = await think({ thinkingLevel: "HIGH" });
    expect(joinParts([hidden], true)).toBe("");
    const { candidatesTokenCount, thoughtsTokenCount = 0, totalTokenCount } = hidden.usageMetadata ?? {};
    expect(thoughtsTokenCount).toBeGreaterThan(5);
    expect(candidatesTokenCount).toBe(plain?.candidatesTokenCount);
    expect(totalTokenCount).toBe((plain?.totalTokenCount ?? 0) + thoughtsTokenCount);
  });

  it.each([
    ["its own signature", (given: string | undefined) => given, "Sunny"],
    ["the sentinel that skips the check", () => "skip_thought_signature_validator", "Sunny"],
    ["no signature", () => undefined, "missing a thought_signature"],
    [
      "another call's signature",
      () => Buffer.from("simulated other").toString("base64"),
      "Corrupted thought signature",
    ],
  ])("validates a call that is sent back with %s", async (_, sign, message) => {
    const client = await openGemini();
    const question: Content = { role: "user", parts: [{ text: "Use get_weather" }] };
    const config = {
      thinkingConfig: { thinkingLevel: ThinkingLevel.LOW },
      tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: WEATHER_SCHEMA }] }],
    };
    const first = await client.models.generateContent({ model: GEMINI, contents: [question], config });
    const part = first.candidates?.[0]?.content?.parts?.find(({ functionCall }) => functionCall);
    const functionResponse = { id: part?.functionCall?.id ?? "", name: "get_weather", response: { output: "Sunny" } };
    const second = client.models.generateContent({
      model: GEMINI,
      contents: [
        question,
        {
          role: "model",
          parts: [{ functionCall: part?.functionCall ?? {}, thoughtSignature: sign(part?.thoughtSignature)! }],
        },
        { role: "user", parts: [{ functionResponse }] },
      ],
      config,
    });
    const outcome = await second.then(
      (response) => response.text,
      (reason: unknown) => String(reason),
    );
    expect(outcome).toContain(message);
  });

  it.each([
    ["a level and a budget", { thinkingLevel: "LOW", thinkingBudget: 100 }, "only set only one"],
    ["an unknown level", { thinkingLevel: "SOME" }, "thinking_level"],
    ["a budget of 0 for a model that always thinks", { thinkingBudget: 0 }, "only works in thinking mode"],
    ["a negative budget", { thinkingBudget: -2 }, "budget -2 is invalid"],
  ])("rejects %s", async (_, thinkingConfig, message) => {
    const simulator = await openSimulator();
    const body = { contents: [{ role: "user", parts: [{ text: "Hi" }] }], generationConfig: { thinkingConfig } };
    const response = await post(simulator, { dialect: "gemini", body });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(message);
  });
});
