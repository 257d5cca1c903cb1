import { Agent, type AgentInputItem, Runner, tool } from "@openai/agents-core";
import { imageGenerationTool, OpenAIProvider } from "@openai/agents-openai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { Lighthouse } from "../support/lighthouse.ts";
import { RED_PIXEL } from "../support/red-pixel.ts";
import {
  createSpentKey,
  EACH_DIALECT,
  MODELS,
  startThreeDialects,
  type ThreeDialects,
} from "../support/three-dialects.ts";

const TIDES = "Tell me about tides";

let running: ThreeDialects;
let spentKey: string;

beforeAll(async () => {
  running = await startThreeDialects();
  spentKey = await createSpentKey(running.product);
});

afterAll(() => running.stop());

beforeEach(cleanEnvironment);

interface Api {
  readonly useResponses: boolean;
}

function runner({ useResponses }: Api, apiKey = running.apiKey): Runner {
  const modelProvider = new OpenAIProvider({ baseURL: running.baseURL, apiKey, useResponses });
  // Traces are sent to OpenAI otherwise.
  return new Runner({ modelProvider, tracingDisabled: true });
}

const getWeather = tool({
  name: "get_weather",
  description: "The weather in a town",
  parameters: z.object({ town: z.string(), days: z.int() }),
  execute: ({ town, days }) => `Fog for ${days} days in ${town}`,
});

const APIS = [
  { api: "the Responses API", useResponses: true },
  { api: "chat completions", useResponses: false },
] as const;

const CASES = APIS.flatMap((api) => EACH_DIALECT.map((dialect) => ({ ...api, ...dialect })));

describe.each(CASES)("the Agents SDK over $api and a model of the $dialect dialect", ({ model, useResponses }) => {
  it("answers, and streams the same answer", async () => {
    const agent = new Agent({ name: "Keeper", model });
    const whole = await runner({ useResponses }).run(agent, TIDES);
    expect(whole.finalOutput).toContain(TIDES);
    const stream = await runner({ useResponses }).run(agent, TIDES, { stream: true });
    const pieces = await Array.fromAsync(stream.toTextStream());
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toBe(whole.finalOutput);
  });

  it("calls a tool and answers with its result", async () => {
    const agent = new Agent({ name: "Keeper", model, tools: [getWeather] });
    const { finalOutput } = await runner({ useResponses }).run(agent, "Use get_weather(town='Bergen', days=3), please");
    expect(finalOutput).toContain("Fog for 3 days in Bergen");
  });

  it("gets an output of a type", async () => {
    const agent = new Agent({ name: "Keeper", model, outputType: Lighthouse });
    const { finalOutput } = await runner({ useResponses }).run(agent, "Describe a lighthouse");
    expect(Lighthouse.parse(finalOutput)).toEqual(finalOutput);
  });

  it("shows a picture to the model", async () => {
    const question: AgentInputItem = {
      role: "user",
      content: [
        { type: "input_text", text: "What is this?" },
        { type: "input_image", image: `data:image/png;base64,${RED_PIXEL}` },
      ],
    };
    const { finalOutput } = await runner({ useResponses }).run(new Agent({ name: "Keeper", model }), [question]);
    expect(finalOutput).toContain("Picture 1 of 1 is ");
  });
});

describe.each(APIS)("the Agents SDK over $api", ({ useResponses }) => {
  it("throws the errors of the openai client", async () => {
    const run = (model: string, question: string, apiKey?: string): Promise<unknown> =>
      runner({ useResponses }, apiKey).run(new Agent({ name: "Keeper", model }), question);
    const { anthropic: model } = MODELS;
    await expect(run(model, "[[fault: status=400]] Hello")).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(run(model, "Hello", "sk_parley_wrong")).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(run("gamma-9", "Hello")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(run(model, "Hello", spentKey)).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  });
});

it("gets a picture over the Responses API", async () => {
  const agent = new Agent({ name: "Painter", model: "beta-3-pro-image-preview", tools: [imageGenerationTool()] });
  const { output } = await runner({ useResponses: true }).run(agent, "Draw a lighthouse");
  expect(output).toContainEqual(
    expect.objectContaining({ type: "hosted_tool_call", output: expect.stringMatching(/^iVBORw0KGgo/) as string }),
  );
});
