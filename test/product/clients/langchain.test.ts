import {
  type AIMessageChunk,
  HumanMessage,
  SystemMessage,
  type ToolMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { EACH_DIALECT, startThreeDialects, type ThreeDialects } from "../support/three-dialects.ts";

let running: ThreeDialects;

beforeAll(async () => {
  running = await startThreeDialects();
});

afterAll(() => running.stop());

beforeEach(cleanEnvironment);

function chat(model: string, fields: ChatOpenAIFields = {}): ChatOpenAI {
  const configuration = { baseURL: running.baseURL };
  return new ChatOpenAI({ model, apiKey: running.apiKey, configuration, maxRetries: 0, ...fields });
}

const getWeather = tool(({ days }) => `Fog for ${days} days`, {
  name: "get_weather",
  description: "The weather in a town",
  schema: z.strictObject({ town: z.string(), days: z.int().min(2).max(9) }),
});

/** What a message says about its tokens; its type leaves open what that is. */
function usageOf(message: { usage_metadata?: unknown }): UsageMetadata {
  if (message.usage_metadata === undefined) throw new Error("the message has no usage");
  return message.usage_metadata as UsageMetadata;
}

const Tide = z.object({ harbour: z.string(), metres: z.number(), times: z.array(z.string()) });

describe.each(EACH_DIALECT)("LangChain and a model of the $dialect dialect", ({ model }) => {
  it("invokes it, with usage and metadata", async () => {
    const message = await chat(model).invoke([new SystemMessage("Be brief."), new HumanMessage("Tell me about tides")]);
    expect(message.text).toContain("Tell me about tides");
    expect(message.text).toContain("Be brief.");
    expect(message.response_metadata).toMatchObject({ model_name: model, finish_reason: "stop" });
    const usage = usageOf(message);
    expect(usage.input_tokens).toBeGreaterThan(0);
    expect(usage.output_tokens).toBeGreaterThan(0);
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
  });

  it("streams the same text, with usage", async () => {
    const whole = await chat(model).invoke("Tell me about tides");
    const chunks = await Array.fromAsync(await chat(model).stream("Tell me about tides"));
    const folded = chunks.reduce((all, chunk) => all.concat(chunk));
    expect(chunks.length).toBeGreaterThan(2);
    expect(folded.text).toBe(whole.text);
    expect(usageOf(folded)).toEqual(usageOf(whole));
  });

  it("calls a bound tool and answers with its result", async () => {
    const bound = chat(model).bindTools([getWeather]);
    const question = new HumanMessage("Use get_weather for Bergen");
    const asking = await bound.invoke([question]);
    const [call] = asking.tool_calls ?? [];
    expect(asking.invalid_tool_calls).toEqual([]);
    expect(asking.tool_calls).toHaveLength(1);
    const result: ToolMessage = await getWeather.invoke(call!);
    const answer = await bound.invoke([question, asking, result]);
    expect(answer.text).toMatch(/Fog for [2-9] days/);
  });

  it("puts a streamed call together", async () => {
    const bound = chat(model).bindTools([getWeather], { tool_choice: "get_weather" });
    const chunks = await Array.fromAsync(await bound.stream("Bergen, please"));
    const folded = chunks.reduce((all: AIMessageChunk, chunk) => all.concat(chunk));
    expect(folded.tool_calls).toMatchObject([{ name: "get_weather", args: { town: expect.any(String) } }]);
    expect(getWeather.schema.parse(folded.tool_calls![0]!.args)).toEqual(folded.tool_calls![0]!.args);
  });

  it.each(["jsonSchema", "functionCalling"] as const)("gets structured output by way of %s", async (method) => {
    const structured = chat(model).withStructuredOutput(Tide, { name: "tide", method });
    const tide = await structured.invoke("The tide in Bergen");
    expect(Tide.parse(tide)).toEqual(tide);
  });

  it("throws the client's own error", async () => {
    const call = chat(model).invoke("[[fault: status=400]] Hello");
    await expect(call).rejects.toMatchObject({ status: 400, type: "invalid_request_error" });
  });
});
