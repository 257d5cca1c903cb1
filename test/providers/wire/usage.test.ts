import { toBinary, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { costOf } from "../../../src/core/cost.ts";
import { toTokenCounts } from "../../../src/core/ledger.ts";
import type { CostedUsage } from "../../../src/core/provider.ts";
import { type Usage, UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { UsageCount } from "../../../src/providers/anthropic/usage.ts";
import { readUsage as readConverse } from "../../../src/providers/bedrock-converse/usage.ts";
import { readUsage as readGemini } from "../../../src/providers/gemini/usage.ts";
import { readUsage as readResponses } from "../../../src/providers/openai-responses/usage.ts";
import { readUsage as readOpenAi } from "../../../src/providers/openai/usage.ts";

const MOST = 0x7fffffff;

function readAnthropic(usage: object): Usage | undefined {
  const count = new UsageCount();
  count.update(usage);
  return count.total();
}

describe("the usage of an answer", () => {
  it.each([
    ["anthropic", readAnthropic({ input_tokens: MOST, cache_read_input_tokens: MOST, output_tokens: 1e12 })],
    ["bedrock-converse", readConverse({ inputTokens: MOST, cacheReadInputTokens: MOST, outputTokens: 1e12 })],
    [
      "gemini",
      readGemini({
        promptTokenCount: MOST,
        toolUsePromptTokenCount: MOST,
        candidatesTokenCount: MOST,
        thoughtsTokenCount: 5,
      }),
    ],
    [
      "openai",
      readOpenAi({
        prompt_tokens: MOST,
        completion_tokens: MOST,
        total_tokens: MOST,
        prompt_tokens_details: { cached_tokens: 1e300 },
      }),
    ],
  ])("holds no sum that the contract cannot: %s", (_, usage) => {
    expect(usage).toMatchObject({ inputTokens: MOST, outputTokens: MOST, totalTokens: MOST });
    expect(toBinary(UsageSchema, usage!).length).toBeGreaterThan(0);
  });

  it.each([
    [
      "in US dollars, as OpenRouter",
      { cost: 0.0042, is_byok: false, cost_details: { upstream_inference_cost: 0.0042 } },
      4_200,
    ],
    [
      "with that of another host",
      { cost: 0.0001, is_byok: true, cost_details: { upstream_inference_cost: 0.0042 } },
      4_300,
    ],
    ["with that of another host, unless it is not known", { cost: 0.0001, is_byok: true, cost_details: null }, 100],
    [
      "as a sum, as Perplexity",
      { cost: { input_tokens_cost: 0.00002, request_cost: 0.006, total_cost: 0.00602 } },
      6_020,
    ],
    ["in ticks, as xAI", { cost_in_usd_ticks: 37_756_000 }, 3_776],
    ["rounded up", { cost: 0.0000114 }, 12],
    ["without the rounding errors of its decimals", { cost: 0.000123 }, 123],
    ["up to that of an entry", { cost: 1e300 }, 100_000_000_000],
    ["unless it is none", { cost: -1, cost_in_usd_ticks: "5" }, undefined],
    ["unless it is nothing", { cost: 0 }, undefined],
  ])("has the cost that its provider states %s", (_, stated, statedMicroUsd) => {
    const chat = readOpenAi({ prompt_tokens: 1, completion_tokens: 2, ...stated });
    const response = readResponses({ input_tokens: 1, output_tokens: 2, ...stated }, undefined, NO_WORK);
    expect([chat, response].map((each) => (each as CostedUsage).statedMicroUsd)).toEqual([
      statedMicroUsd,
      statedMicroUsd,
    ]);
    expect(toJson(UsageSchema, chat!)).toEqual({ inputTokens: 1, outputTokens: 2, totalTokens: 3 });
  });

  it("includes the summaries of a conversation that the provider made and counted apart", () => {
    const message = { type: "message", input_tokens: 23_000, output_tokens: 1_000 };
    const compaction = {
      type: "compaction",
      input_tokens: 170_000,
      cache_read_input_tokens: 9_000,
      cache_creation_input_tokens: 5_000,
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 4_000 },
      output_tokens: 3_500,
    };
    const advice = { type: "advisor_message", input_tokens: 7, output_tokens: 7 };
    const usage = {
      input_tokens: 23_000,
      output_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      iterations: [compaction, message, advice],
    };
    expect(readAnthropic(usage)).toMatchObject({
      inputTokens: 207_000,
      cachedInputTokens: 9_000,
      cacheWriteInputTokens: 5_000,
      cacheWriteHourInputTokens: 4_000,
      outputTokens: 4_500,
      unknownUnits: ["iterations.advisor_message"],
    });
  });

  it.each([
    [
      "anthropic",
      readAnthropic({
        input_tokens: 1,
        output_tokens: 2,
        cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_24h_input_tokens: 3 },
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 1, code_execution_seconds: 9 },
        service_tier: "standard",
        nothing: 0,
      }),
      ["cache_creation.ephemeral_24h_input_tokens", "server_tool_use.code_execution_seconds"],
    ],
    [
      "bedrock-converse",
      readConverse({
        inputTokens: 1,
        outputTokens: 2,
        totalTokens: 3,
        cacheReadInputTokenCount: 1,
        cacheDetails: [{ ttl: "5m", inputTokens: 1 }],
        serverToolUsage: { webSearchRequests: 2 },
      }),
      ["serverToolUsage.webSearchRequests"],
    ],
    [
      "gemini",
      readGemini({
        promptTokenCount: 1,
        candidatesTokenCount: 2,
        totalTokenCount: 3,
        searchCount: 4,
        trafficType: "a",
      }),
      ["searchCount"],
    ],
    [
      "openai",
      readOpenAi({
        prompt_tokens: 1,
        completion_tokens: 2,
        total_tokens: 3,
        prompt_tokens_details: { cached_tokens: 1, video_tokens: 1 },
        cost: 0.1,
        cost_details: { upstream: 0.1 },
        num_search_queries: 2,
        citation_tokens: 7,
        steps: [{ tokens: 5 }],
        inner: { deep: { units: 1 } },
        nothing: [],
      }),
      ["prompt_tokens_details.video_tokens", "citation_tokens", "steps", "inner.deep.units"],
    ],
    ["bounded", readOpenAi({ prompt_tokens: 1, ...manyUnits() }), Object.keys(manyUnits()).slice(0, 16)],
  ])("names the counts that have no price: %s", (_, usage, unknown) => {
    expect(usage?.unknownUnits).toEqual(unknown.map((name) => name.slice(0, 64)));
  });

  it.each([
    ["Perplexity", { num_search_queries: 3 }],
    ["OpenRouter", { server_tool_use: { web_search_requests: 3 } }],
  ])("counts the searches of %s", (_, counted) => {
    expect(readOpenAi({ prompt_tokens: 1, completion_tokens: 2, ...counted })).toMatchObject({
      webSearches: 3,
      unknownUnits: [],
    });
  });
});

const NO_WORK = { webSearches: 0, fileSearches: 0, containers: 0, drew: false };

/** How each dialect counts a prompt, a cached part of it, and an answer. */
const DIALECTS: readonly [string, (prompt: unknown, cached: unknown, answer: unknown) => Usage | undefined][] = [
  [
    "anthropic",
    (input, cached, output) =>
      readAnthropic({ input_tokens: input, cache_read_input_tokens: cached, output_tokens: output }),
  ],
  [
    "bedrock-converse",
    (input, cached, output) => readConverse({ inputTokens: input, cacheReadInputTokens: cached, outputTokens: output }),
  ],
  [
    "gemini",
    (input, cached, output) =>
      readGemini({ promptTokenCount: input, cachedContentTokenCount: cached, candidatesTokenCount: output }),
  ],
  [
    "openai",
    (input, cached, output) =>
      readOpenAi({ prompt_tokens: input, prompt_tokens_details: { cached_tokens: cached }, completion_tokens: output }),
  ],
  [
    "openai-responses",
    (input, cached, output) =>
      readResponses(
        { input_tokens: input, input_tokens_details: { cached_tokens: cached }, output_tokens: output },
        undefined,
        NO_WORK,
      ),
  ],
];

describe.each(DIALECTS)("an odd count of %s", (_, read) => {
  it("is read when it is a text of digits, and a fraction is cut", () => {
    expect(read("9", 0, "3")).toMatchObject({ inputTokens: 9, outputTokens: 3 });
    expect(read(9.9, 0, 3.1)).toMatchObject({ inputTokens: 9, outputTokens: 3 });
  });

  it("that is missing leaves the others, and none is no usage", () => {
    expect(read(undefined, undefined, 3)).toMatchObject({ inputTokens: 0, outputTokens: 3 });
    expect(read(9, null, undefined)).toMatchObject({ inputTokens: 9, outputTokens: 0 });
    expect(read({}, 5, "-3")).toBeUndefined();
  });

  it("never makes a cost that is negative or no number", () => {
    const odd = [undefined, null, -1, -1e300, 1e300, 0.5, "7", "-7", "NaN", "1e9", "9".repeat(40), true, [], {}, MOST];
    const price = {
      input: 3,
      cachedInput: 0.3,
      cacheWrite: 4,
      cacheWriteHour: 6,
      output: 15,
      audioInput: 3,
      cachedAudioInput: 1,
      imageInput: 3,
      cachedImageInput: 1,
      imageOutput: 15,
      audioOutput: 15,
      fees: { requests: 0, searchedRequests: 0, webSearches: 0, fileSearches: 0, codeExecutions: 0 },
    };
    for (const prompt of odd)
      for (const cached of odd)
        for (const answer of odd) {
          const usage = read(prompt, cached, answer);
          if (usage === undefined) continue;
          const cost = costOf(toTokenCounts(usage), price);
          expect(Number.isSafeInteger(cost) && cost >= 0, JSON.stringify([prompt, cached, answer, cost])).toBe(true);
        }
  });
});

function manyUnits(): Record<string, number> {
  return Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`${"unit".repeat(20)}${index}`, 1]));
}
