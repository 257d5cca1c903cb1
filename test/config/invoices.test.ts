import { describe, expect, it } from "vitest";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { parseConfig } from "../../src/config/parse.ts";
import { costOf, type Pricing } from "../../src/core/cost.ts";
import { toTokenCounts } from "../../src/core/ledger.ts";
import { UsageCount } from "../../src/providers/anthropic/usage.ts";
import { toAnswer as readGeminiAnswer } from "../../src/providers/gemini/response.ts";
import { toAnswer as readResponse } from "../../src/providers/openai-responses/response.ts";
import { readUsage as readGemini } from "../../src/providers/gemini/usage.ts";
import { readUsage as readOpenAi } from "../../src/providers/openai/usage.ts";

const READERS: Readonly<Record<string, (usage: object) => Usage | undefined>> = {
  anthropic(usage) {
    const counted = new UsageCount();
    counted.update(usage);
    return counted.total();
  },
  gemini: readGemini,
  openai: readOpenAi,
  perplexity: readOpenAi,
  "gemini-answer": (answer) => readGeminiAnswer(answer).usage,
  "openai-responses": (answer) => readResponse({ status: "completed", ...answer }).usage,
};

/** What a provider counted, and its invoice: units × USD per million of them, which is micro-USD. */
interface Line {
  readonly of: string;
  readonly model: string;
  readonly usage: object;
  readonly microUsd: number;
  readonly request?: Partial<Pricing>;
  /** What reads the usage, or the answer that the fees are counted in. Default: by the model's name. */
  readonly reader?: keyof typeof READERS;
}

const text = { type: "message", content: [{ type: "output_text", text: "It is." }] };

const SONNET = "claude-sonnet-4-5";
const LINES: readonly Line[] = [
  {
    of: "a short answer",
    model: "claude-haiku-4-5",
    usage: { input_tokens: 1_000, output_tokens: 500 },
    microUsd: 1_000 * 1 + 500 * 5,
  },
  {
    of: "a conversation that is read from a cache",
    model: "claude-opus-4-5",
    usage: { input_tokens: 100, cache_read_input_tokens: 90_000, cache_creation_input_tokens: 0, output_tokens: 800 },
    microUsd: 100 * 5 + 90_000 * 0.5 + 800 * 25,
  },
  {
    of: "writes to a cache for five minutes and an hour",
    model: "claude-opus-4-5",
    usage: {
      input_tokens: 12,
      cache_creation_input_tokens: 3_000,
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
      cache_read_input_tokens: 20_000,
      output_tokens: 40,
    },
    microUsd: 12 * 5 + 1_000 * 6.25 + 2_000 * 10 + 20_000 * 0.5 + 40 * 25,
  },
  {
    of: "writes for an hour that the provider does not tell apart",
    model: SONNET,
    usage: { input_tokens: 10, cache_creation_input_tokens: 3_000, output_tokens: 40 },
    request: { cacheWrite: "hour" },
    microUsd: 10 * 3 + 3_000 * 6 + 40 * 15,
  },
  {
    of: "a prompt of 200,000 tokens, most of them cached",
    model: SONNET,
    usage: { input_tokens: 20_000, cache_read_input_tokens: 180_000, output_tokens: 1_000 },
    microUsd: 20_000 * 3 + 180_000 * 0.3 + 1_000 * 15,
  },
  {
    of: "one token more",
    model: SONNET,
    usage: { input_tokens: 20_001, cache_read_input_tokens: 180_000, output_tokens: 1_000 },
    microUsd: 20_001 * 6 + 180_000 * 0.6 + 1_000 * 22.5,
  },
  {
    of: "three searches of the web",
    model: "claude-opus-4-5",
    usage: { input_tokens: 9_000, output_tokens: 300, server_tool_use: { web_search_requests: 3 } },
    microUsd: 9_000 * 5 + 300 * 25 + 3 * 10_000,
  },
  {
    of: "thinking, which is part of the output",
    model: SONNET,
    usage: { input_tokens: 50, output_tokens: 4_000, output_tokens_details: { thinking_tokens: 3_900 } },
    microUsd: 50 * 3 + 4_000 * 15,
  },
  {
    of: "thoughts, which are beside the answer",
    model: "gemini-3-pro-preview",
    usage: { promptTokenCount: 100, candidatesTokenCount: 200, thoughtsTokenCount: 1_800, totalTokenCount: 2_100 },
    microUsd: 100 * 2 + (200 + 1_800) * 12,
  },
  {
    of: "a prompt of half a million tokens",
    model: "gemini-3-pro-preview",
    usage: { promptTokenCount: 500_000, cachedContentTokenCount: 400_000, candidatesTokenCount: 1_000 },
    microUsd: 100_000 * 4 + 400_000 * 0.4 + 1_000 * 18,
  },
  {
    of: "a recording, half of it cached",
    model: "gemini-3-flash-preview",
    usage: {
      promptTokenCount: 3_000,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 1_000 },
        { modality: "AUDIO", tokenCount: 2_000 },
      ],
      cachedContentTokenCount: 1_500,
      cacheTokensDetails: [
        { modality: "TEXT", tokenCount: 500 },
        { modality: "AUDIO", tokenCount: 1_000 },
      ],
      candidatesTokenCount: 100,
    },
    microUsd: 500 * 0.5 + 1_000 * 1 + 500 * 0.05 + 1_000 * 0.1 + 100 * 3,
  },
  {
    of: "what the provider's own tools read",
    model: "gemini-3-flash-preview",
    usage: { promptTokenCount: 100, toolUsePromptTokenCount: 5_000, candidatesTokenCount: 50 },
    microUsd: 5_100 * 0.5 + 50 * 3,
  },
  {
    of: "a picture with a text",
    model: "gemini-3-pro-image-preview",
    usage: {
      promptTokenCount: 40,
      candidatesTokenCount: 1_150,
      candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1_120 }],
    },
    microUsd: 40 * 2 + 30 * 12 + 1_120 * 120,
  },
  {
    of: "embeddings",
    model: "text-embedding-3-small",
    usage: { prompt_tokens: 50_000, total_tokens: 50_000 },
    microUsd: 50_000 * 0.02,
  },
  {
    of: "a cached prompt and reasoning, which is part of the output",
    model: "gpt-5",
    usage: {
      prompt_tokens: 10_000,
      prompt_tokens_details: { cached_tokens: 8_000 },
      completion_tokens: 3_000,
      completion_tokens_details: { reasoning_tokens: 2_500 },
    },
    microUsd: 2_000 * 1.25 + 8_000 * 0.125 + 3_000 * 10,
  },
  {
    of: "speech both ways",
    model: "gpt-audio",
    usage: {
      prompt_tokens: 700,
      prompt_tokens_details: { audio_tokens: 600 },
      completion_tokens: 900,
      completion_tokens_details: { audio_tokens: 800 },
    },
    microUsd: 100 * 2.5 + 600 * 32 + 100 * 10 + 800 * 64,
  },
  {
    of: "a picture that is edited",
    model: "gpt-image-1",
    usage: { prompt_tokens: 400, prompt_tokens_details: { image_tokens: 350 }, completion_tokens: 4_160 },
    microUsd: 50 * 5 + 350 * 10 + 4_160 * 40,
  },
  {
    of: "a predicted answer, of which a part was rejected",
    model: "gpt-5-mini",
    usage: {
      prompt_tokens: 1_000,
      completion_tokens: 400,
      completion_tokens_details: { accepted_prediction_tokens: 300, rejected_prediction_tokens: 60 },
    },
    microUsd: 1_000 * 0.25 + 400 * 2,
  },
  {
    of: "a tier of service at twice the price",
    model: "o3",
    usage: { prompt_tokens: 1_000, completion_tokens: 500 },
    request: { priceFactor: 2 },
    microUsd: 2 * (1_000 * 2 + 500 * 8),
  },
  {
    of: "nothing but a total, from which the answer's tokens are found",
    model: "gpt-5",
    usage: { prompt_tokens: 600, total_tokens: 1_000 },
    microUsd: 600 * 1.25 + 400 * 10,
  },
  {
    of: "an answer of a host that bills requests, with its searches",
    model: "sonar-pro",
    usage: { prompt_tokens: 80, completion_tokens: 700, total_tokens: 780, num_search_queries: 3 },
    microUsd: 80 * 3 + 700 * 15 + 14_000,
  },
  {
    of: "no tokens of a host that bills requests",
    model: "sonar",
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    microUsd: 12_000,
  },
  {
    of: "searches of the web and of stored files",
    model: "gpt-5.1",
    reader: "openai-responses",
    usage: {
      output: [
        { type: "web_search_call", id: "ws_1", action: { type: "search" } },
        { type: "web_search_call", id: "ws_2", action: { type: "open_page" } },
        { type: "file_search_call", id: "fs_1", queries: ["a"] },
        { type: "file_search_call", id: "fs_2", queries: ["b"] },
        text,
      ],
      usage: { input_tokens: 9_000, input_tokens_details: { cached_tokens: 1_000 }, output_tokens: 300 },
    },
    microUsd: 8_000 * 1.25 + 1_000 * 0.125 + 300 * 10 + 1 * 10_000 + 2 * 2_500,
  },
  {
    of: "code in a container, at a fee that the file adds to the list price",
    model: "gpt-5-mini",
    reader: "openai-responses",
    usage: {
      output: [
        { type: "code_interpreter_call", id: "ci_1", container_id: "cntr_1" },
        { type: "code_interpreter_call", id: "ci_2", container_id: "cntr_1" },
        text,
      ],
      usage: { input_tokens: 2_000, output_tokens: 500 },
    },
    microUsd: 2_000 * 0.25 + 500 * 2 + 30_000,
  },
  {
    of: "three different queries of Google's search, at a fee for each",
    model: "gemini-3-flash-preview",
    reader: "gemini-answer",
    usage: grounded({ promptTokenCount: 30, candidatesTokenCount: 200 }),
    microUsd: 30 * 0.5 + 200 * 3 + 3 * 14_000,
  },
  {
    of: "the same at a fee for each request that searches",
    model: "gemini-2.5-pro",
    reader: "gemini-answer",
    usage: grounded({ promptTokenCount: 30, candidatesTokenCount: 200 }),
    microUsd: 30 * 1.25 + 200 * 10 + 35_000,
  },
  {
    of: "an answer of the same model without searches",
    model: "gemini-2.5-pro",
    usage: { promptTokenCount: 30, candidatesTokenCount: 200 },
    microUsd: 30 * 1.25 + 200 * 10,
  },
];

/** An answer with queries of which two are billed once and one is not (ai.google.dev, "Grounding with Google Search"). */
function grounded(usageMetadata: object): object {
  const candidate = {
    content: { parts: [{ text: "It is." }] },
    finishReason: "STOP",
    groundingMetadata: { webSearchQueries: ["a", "", "b", "a", "c"] },
  };
  return { candidates: [candidate], usageMetadata };
}

/** Fees that no list has: for a thousand, from the price lists of the hosts, November 2026. */
const FEES: Readonly<Record<string, object>> = {
  "gpt-5-mini": { code_execution: 30 },
  "gemini-3-flash-preview": { web_search: 14 },
  "gemini-2.5-pro": { searched_request: 35 },
};

const PROVIDERS = { anthropic: /^claude/, gemini: /^gemini/, perplexity: /^sonar/, openai: /./ };
const dialectOf = (model: string): string => Object.entries(PROVIDERS).find(([, name]) => name.test(model))![0];

const models = Object.fromEntries(
  LINES.map(({ model }) => {
    const isEmbedding = model.includes("embedding");
    const modalities = { input: ["text"], output: [isEmbedding ? "embedding" : "text"] };
    const price = FEES[model];
    return [model, { provider: dialectOf(model), upstream_model: model, modalities, ...(price && { price }) }];
  }),
);
const providers = Object.fromEntries(
  Object.keys(PROVIDERS).map((name) => [
    name,
    { ...(name === "perplexity" ? { preset: name } : { dialect: name }), api_keys: ["${KEY}"] },
  ]),
);
const config = parseConfig({
  file: "parley.yaml",
  text: JSON.stringify({ providers, models }),
  env: { KEY: "k".repeat(40) },
});

describe("the invoice at list prices, worked out by hand, is the cost of", () => {
  it.each(LINES)("$of ($model)", ({ model, usage, microUsd, request, reader }) => {
    const { price } = config.models.find(({ id }) => id === model)!;
    const counted = toTokenCounts(READERS[reader ?? dialectOf(model)]!(usage)!);
    expect(costOf(counted, price!, { priceFactor: 1, cacheWrite: "minutes", ...request })).toBe(Math.round(microUsd));
  });
});
