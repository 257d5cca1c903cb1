import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  type AIMessageChunk,
  HumanMessage,
  SystemMessage,
  type ToolMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { RED_PIXEL } from "../support/red-pixel.ts";
import {
  createSpentKey,
  EACH_DIALECT,
  MODELS,
  startThreeDialects,
  type ThreeDialects,
} from "../support/three-dialects.ts";

/** ChatGoogleGenerativeAI sends pictures only to models whose names begin like Google's. */
const SEEING_MODEL = "gemini-3-alias";

let running: ThreeDialects;
let spentKey: string;

beforeAll(async () => {
  running = await startThreeDialects({ aliases: [SEEING_MODEL] });
  spentKey = await createSpentKey(running.product);
});

afterAll(() => running.stop());

beforeEach(cleanEnvironment);

/** What all classes of chat models have in common; the last one is optional in LangChain's own type. */
type ChatModel = BaseChatModel & Required<Pick<BaseChatModel, "bindTools">>;

interface Asked {
  readonly model: string;
  readonly apiKey?: string;
}

/** LangChain's classes of chat models, each of which speaks a format. */
const CLASSES = {
  ChatOpenAI: ({ model, apiKey = running.apiKey }: Asked): ChatModel =>
    new ChatOpenAI({ model, apiKey, configuration: { baseURL: running.baseURL }, maxRetries: 0 }),
  ChatAnthropic: ({ model, apiKey = running.apiKey }: Asked): ChatModel =>
    new ChatAnthropic({ model, apiKey, anthropicApiUrl: running.product.url, maxRetries: 0 }),
  ChatGoogleGenerativeAI: ({ model, apiKey = running.apiKey }: Asked): ChatModel =>
    new ChatGoogleGenerativeAI({
      // It takes one `models/` away, and its client adds none to a name with a slash.
      model: model.includes("/") ? `models/models/${model}` : model,
      apiKey,
      baseUrl: running.product.url,
      maxRetries: 0,
    }),
};

const EACH_CLASS = Object.entries(CLASSES).map(([name, connect]) => ({ name, connect }));

const EACH_CLASS_AND_DIALECT = EACH_CLASS.flatMap((one) => EACH_DIALECT.map((dialect) => ({ ...one, ...dialect })));

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

describe.each(EACH_CLASS_AND_DIALECT)(
  "LangChain's $name and a model of the $dialect dialect",
  ({ name, connect, model }) => {
    it("invokes it, with usage and metadata", async () => {
      const message = await connect({ model }).invoke([
        new SystemMessage("Be brief."),
        new HumanMessage("Tell me about tides"),
      ]);
      expect(message.text).toContain("Tell me about tides");
      expect(message.text).toContain("Be brief.");
      const usage = usageOf(message);
      expect(usage.input_tokens).toBeGreaterThan(0);
      expect(usage.output_tokens).toBeGreaterThan(0);
      expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
    });

    it("streams the same text, with usage", async () => {
      const whole = await connect({ model }).invoke("Tell me about tides");
      const chunks = await Array.fromAsync(await connect({ model }).stream("Tell me about tides"));
      const folded = chunks.reduce((all, chunk) => all.concat(chunk));
      expect(chunks.length).toBeGreaterThan(2);
      expect(folded.text).toBe(whole.text);
      const [streamed, counted] = [usageOf(folded), usageOf(whole)];
      // ChatAnthropic adds the counts at the end of a stream to the estimate at its beginning.
      const tolerance = name === "ChatAnthropic" ? 1 : 0;
      expect(Math.abs(streamed.output_tokens - counted.output_tokens)).toBeLessThanOrEqual(tolerance);
      expect(Math.abs(streamed.input_tokens - counted.input_tokens)).toBeLessThanOrEqual(tolerance);
    });

    it("calls a bound tool and answers with its result", async () => {
      const bound = connect({ model }).bindTools([getWeather]);
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
      const bound = connect({ model }).bindTools([getWeather], { tool_choice: "get_weather" });
      const chunks = await Array.fromAsync(await bound.stream("Bergen, please"));
      const folded = chunks.reduce((all: AIMessageChunk, chunk) => all.concat(chunk));
      expect(folded.tool_calls).toMatchObject([{ name: "get_weather", args: { town: expect.any(String) } }]);
      expect(getWeather.schema.parse(folded.tool_calls![0]!.args)).toEqual(folded.tool_calls![0]!.args);
    });

    it.each(["jsonSchema", "functionCalling"] as const)("gets structured output by way of %s", async (method) => {
      const structured = connect({ model }).withStructuredOutput(Tide, { name: "tide", method });
      const tide = await structured.invoke("The tide in Bergen");
      expect(Tide.parse(tide)).toEqual(tide);
    });

    it("shows a picture to the model", async () => {
      const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${RED_PIXEL}` } };
      const question = new HumanMessage({ content: [{ type: "text", text: "What is this?" }, picture] });
      const seeing = name === "ChatGoogleGenerativeAI" ? SEEING_MODEL : model;
      expect((await connect({ model: seeing }).invoke([question])).text).toContain("Picture 1 of 1 is ");
    });
  },
);

/** Names of the vendors' classes by status. They are compared by name: `@langchain/anthropic` has a copy of its own. */
const VENDOR_ERRORS: Readonly<Record<number, string>> = {
  400: "BadRequestError",
  401: "AuthenticationError",
  404: "NotFoundError",
  429: "RateLimitError",
};

describe.each(EACH_CLASS)("errors of LangChain's $name", ({ name, connect }) => {
  it.each([
    { status: 400, what: "a rejected request", question: "[[fault: status=400]] Hello", asked: () => ({}) },
    { status: 401, what: "a wrong key", asked: () => ({ apiKey: "sk_parley_wrong" }) },
    { status: 404, what: "an unknown model", asked: () => ({ model: "gamma-9" }) },
    { status: 429, what: "a spent budget", asked: () => ({ apiKey: spentKey }) },
  ])("are those of the vendor's client for $what", async ({ status, question = "Hello", asked }) => {
    const error: unknown = await connect({ model: MODELS.anthropic, ...asked() })
      .invoke(question)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status });
    const expected = name === "ChatGoogleGenerativeAI" ? "GoogleGenerativeAIFetchError" : VENDOR_ERRORS[status];
    expect((error as object).constructor.name).toBe(expected);
  });
});
