import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, isStepCount, Output, streamText, tool } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { RED_PIXEL } from "../support/red-pixel.ts";
import { EACH_DIALECT, startThreeDialects, type ThreeDialects } from "../support/three-dialects.ts";

let running: ThreeDialects;

beforeAll(async () => {
  running = await startThreeDialects();
});

afterAll(() => running.stop());

beforeEach(cleanEnvironment);

function parley(model: string) {
  const provider = createOpenAICompatible({
    name: "parley",
    baseURL: running.baseURL,
    apiKey: running.apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return provider(model);
}

/** A tool, with what it was called with. */
function weatherTool() {
  const calls: unknown[] = [];
  const tools = {
    get_weather: tool({
      description: "The weather in a town",
      inputSchema: z.strictObject({ town: z.string(), days: z.int().min(2).max(9) }),
      execute: (input) => {
        calls.push(input);
        return `Fog for ${input.days} days`;
      },
    }),
  };
  return { tools, calls };
}

const Tide = z.object({ harbour: z.string(), metres: z.number(), rising: z.boolean(), times: z.array(z.string()) });

describe.each(EACH_DIALECT)("the AI SDK and a model of the $dialect dialect", ({ model }) => {
  it("generates text with usage and a finish reason", async () => {
    const { text, finishReason, usage, response } = await generateText({
      model: parley(model),
      system: "Answer briefly.",
      prompt: "Tell me about tides",
    });
    expect(text).toContain("Tell me about tides");
    expect(text).toContain("Answer briefly.");
    expect(finishReason).toBe("stop");
    expect(response.modelId).toBe(model);
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.outputTokens).toBeGreaterThan(0);
    expect(usage.totalTokens).toBe(usage.inputTokens! + usage.outputTokens!);
  });

  it("streams the text and usage that a whole answer has", async () => {
    const prompt = "Tell me about tides";
    const whole = await generateText({ model: parley(model), prompt });
    const result = streamText({ model: parley(model), prompt });
    const deltas = await Array.fromAsync(result.textStream);
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.join("")).toBe(whole.text);
    expect(await result.finishReason).toBe("stop");
    expect(await result.usage).toMatchObject({
      inputTokens: whole.usage.inputTokens,
      outputTokens: whole.usage.outputTokens,
      totalTokens: whole.usage.totalTokens,
    });
  });

  it("calls a tool in the first step and answers with its result in the second", async () => {
    const { tools, calls } = weatherTool();
    const { steps, text } = await generateText({
      model: parley(model),
      prompt: "Use get_weather for Bergen",
      tools,
      stopWhen: isStepCount(5),
    });
    expect(steps.map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
    expect(calls).toEqual([{ town: expect.any(String), days: expect.any(Number) }]);
    expect(text).toMatch(/Fog for [2-9] days/);
  });

  it("does the same over streams", async () => {
    const { tools, calls } = weatherTool();
    const result = streamText({
      model: parley(model),
      prompt: "Use get_weather for Bergen",
      tools,
      stopWhen: isStepCount(5),
    });
    const kinds = new Set((await Array.fromAsync(result.stream)).map((part) => part.type));
    expect([...kinds]).toEqual(expect.arrayContaining(["tool-input-delta", "tool-call", "tool-result", "text-delta"]));
    expect(kinds).not.toContain("error");
    expect((await result.steps).map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
    expect(calls).toHaveLength(1);
    expect(await result.text).toMatch(/Fog for [2-9] days/);
  });

  it("makes the call that the tool choice demands", async () => {
    const { tools } = weatherTool();
    const { toolCalls } = await generateText({ model: parley(model), prompt: "Hello", tools, toolChoice: "required" });
    expect(toolCalls).toMatchObject([{ toolName: "get_weather", input: { town: expect.any(String) } }]);
  });

  it("gets an object that satisfies a schema", async () => {
    const output = Output.object({ schema: Tide });
    const result = await generateText({ model: parley(model), prompt: "The tide in Bergen", output });
    expect(Tide.parse(result.output)).toEqual(result.output);
  });

  it("streams an object that satisfies a schema in ever larger parts", async () => {
    const output = Output.object({ schema: Tide });
    const result = streamText({ model: parley(model), prompt: "The tide in Bergen", output });
    const parts = await Array.fromAsync(result.partialOutputStream);
    expect(parts.length).toBeGreaterThan(1);
    expect(Tide.parse(parts.at(-1))).toEqual(await result.output);
  });

  it("shows a picture to the model", async () => {
    const { text } = await generateText({
      model: parley(model),
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "file", mediaType: "image/png", data: RED_PIXEL },
          ],
        },
      ],
    });
    expect(text).toContain("Picture 1 of 1 is ");
  });

  it("throws APICallError with the status and whether it is retryable", async () => {
    const refused = (status: number, prompt: string) =>
      expect(generateText({ model: parley(model), prompt, maxRetries: 0 })).rejects.toSatisfy(
        (error) => APICallError.isInstance(error) && error.statusCode === status && error.isRetryable === status > 400,
      );
    await refused(400, "[[fault: status=400]] Hello");
    await refused(503, "[[fault: status=500]] Hello");
  });
});
