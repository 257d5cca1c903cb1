import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { costOf } from "../../src/core/cost.ts";
import type { Price } from "../../src/core/model.ts";
import { NO_FEES, toPrice } from "../support/prices.ts";
import { toTokenCounts } from "../../src/core/ledger.ts";

/** US dollars per million tokens, as prices are written. */
const usd = (perMillion: number): number => perMillion * 1_000_000;
const PRICE: Price = {
  input: usd(5),
  output: usd(25),
  cachedInput: usd(0.5),
  cacheWrite: usd(6.25),
  cacheWriteHour: usd(10),
  audioInput: usd(40),
  imageInput: usd(7),
  cachedAudioInput: usd(4),
  cachedImageInput: usd(0.7),
  imageOutput: usd(120),
  audioOutput: usd(80),
  fees: {
    requests: 0,
    searchedRequests: usd(300),
    webSearches: usd(10_000),
    fileSearches: usd(2_500),
    codeExecutions: undefined,
  },
};

describe("a completion costs", () => {
  it.each([
    ["nothing without tokens", {}, 0],
    ["input and output at their prices", { inputTokens: 100, outputTokens: 10 }, 500 + 250],
    ["less for cached input", { inputTokens: 100, cachedInputTokens: 80 }, 20 * 5 + 40],
    ["more for pictures", { outputTokens: 1_300, imageOutputTokens: 1_290 }, 250 + 1_290 * 120],
    ["the same with reasoning, which is in the output already", { outputTokens: 10, reasoningOutputTokens: 9 }, 250],
    ["more for input that is written to a cache", { inputTokens: 100, cacheWriteInputTokens: 80 }, 20 * 5 + 500],
    [
      "each kind of input once",
      { inputTokens: 100, cachedInputTokens: 50, cacheWriteInputTokens: 40 },
      25 + 250 + 10 * 5,
    ],
    ["more for speech that is heard", { inputTokens: 100, audioInputTokens: 80 }, 20 * 5 + 80 * 40],
    ["more for speech that is made", { outputTokens: 100, audioOutputTokens: 80 }, 20 * 25 + 80 * 80],
    [
      "more for an hour in a cache",
      { inputTokens: 100, cacheWriteInputTokens: 80, cacheWriteHourInputTokens: 40 },
      20 * 5 + 40 * 6.25 + 40 * 10,
    ],
    ["more for pictures that are seen", { inputTokens: 100, imageInputTokens: 80 }, 20 * 5 + 80 * 7],
    [
      "cached speech once, and the rest of the speech at its own price",
      { inputTokens: 100, cachedInputTokens: 60, audioInputTokens: 70, cachedAudioInputTokens: 50 },
      20 * 5 + 10 * 0.5 + 50 * 4 + 20 * 40,
    ],
    [
      "cached pictures once, and the rest of the pictures at their own price",
      { inputTokens: 100, cachedInputTokens: 60, imageInputTokens: 70, cachedImageInputTokens: 50 },
      20 * 5 + 10 * 0.5 + 50 * 0.7 + 20 * 7,
    ],
    ["a fee for each search, and one for searching", { inputTokens: 100, webSearches: 3 }, 500 + 30_000 + 300],
    ["a fee for each search of files", { inputTokens: 100, fileSearches: 2 }, 500 + 5_000],
    ["nothing for what has no price", { inputTokens: 100, codeExecutions: 2 }, 500],
    [
      "each token once when counts contradict each other",
      {
        inputTokens: 10,
        cachedInputTokens: 8,
        cachedAudioInputTokens: 9,
        cachedImageInputTokens: 9,
        cacheWriteInputTokens: 9,
        cacheWriteHourInputTokens: 9,
        audioInputTokens: 99,
        imageInputTokens: 99,
      },
      8 * 4 + 2 * 10,
    ],
    ["no less than nothing when more is written than read", { inputTokens: 10, cacheWriteInputTokens: 99 }, 63],
    ["no less than nothing when more is cached than read", { inputTokens: 10, cachedInputTokens: 99 }, 5],
    ["no less than nothing when more is pictures than all", { outputTokens: 1, imageOutputTokens: 9 }, 120],
    ["half a micro-dollar rounded up", { inputTokens: 1, cachedInputTokens: 1 }, 1],
    [
      "less than half a micro-dollar rounded up, because a caller may repeat it",
      { inputTokens: 2, cachedInputTokens: 2, cachedImageInputTokens: 2 },
      2,
    ],
  ])("%s", (_, usage, costMicroUsd) => {
    expect(costOf(toTokenCounts(create(UsageSchema, usage)), PRICE)).toBe(costMicroUsd);
  });

  it("what the ledger stores: no more of a kind than of all", () => {
    const counts = { inputTokens: 10, cachedInputTokens: 50, outputTokens: 5, imageOutputTokens: 99 };
    expect(toTokenCounts(create(UsageSchema, counts))).toMatchObject({ cached: 10, image: 5 });
  });

  it("a micro-dollar at least when it is not free, so that no number of calls is", () => {
    const cheap = toPrice({ input: 20_000, output: 0, cachedInput: 0, imageOutput: 0 });
    const tokens = (prompt: number) => ({ prompt, completion: 9, cached: 0, reasoning: 0, image: 0 });
    expect([0, 1, 24, 75].map((prompt) => costOf(tokens(prompt), cheap))).toEqual([0, 1, 1, 2]);
  });

  it("more for a cache that lasts an hour, and for a dearer tier of service", () => {
    const tokens = toTokenCounts(
      create(UsageSchema, { inputTokens: 100, cacheWriteInputTokens: 80, outputTokens: 10 }),
    );
    expect(costOf(tokens, PRICE, { cacheWrite: "hour", priceFactor: 1 })).toBe(20 * 5 + 80 * 10 + 250);
    expect(costOf(tokens, PRICE, { cacheWrite: "minutes", priceFactor: 2 })).toBe(2 * (20 * 5 + 500 + 250));
    // What the provider counted goes before what was asked for. A fee is the same in every tier.
    const counted = { ...tokens, cacheWriteHour: 0, webSearches: 1 };
    expect(costOf(counted, PRICE, { cacheWrite: "hour", priceFactor: 2 })).toBe(2 * (20 * 5 + 500 + 250) + 10_300);
  });

  it("a fee for each request, which is none of the tokens", () => {
    const price = {
      ...toPrice({ input: 0, cachedInput: 0, output: 0, imageOutput: 0 }),
      fees: { ...NO_FEES, requests: usd(12_000) },
    };
    expect(costOf(toTokenCounts(create(UsageSchema)), price, { cacheWrite: "none", priceFactor: 2 })).toBe(12_000);
  });

  describe("with prices for prompts above 100 and 1,000 tokens", () => {
    const times = (factor: number): Price =>
      ({
        ...Object.fromEntries(Object.entries(PRICE).map(([kind, price]) => [kind, factor * (price as number)])),
        fees: PRICE.fees,
      }) as Price;
    const tiers = [
      { ...times(2), abovePromptTokens: 100 },
      { ...times(3), abovePromptTokens: 1_000 },
    ];
    it.each([
      [100, 1],
      [101, 2],
      [1_000, 2],
      [1_001, 3],
    ])("for a prompt of %i tokens, cached ones included, %i times as much", (inputTokens, factor) => {
      const usage = create(UsageSchema, { inputTokens, cachedInputTokens: 60, outputTokens: 10 });
      const cost = costOf(toTokenCounts(usage), PRICE);
      expect(costOf(toTokenCounts(usage), { ...PRICE, tiers })).toBe(factor * cost);
    });
  });

  it("exactly what whole numbers say, for four million tokens each way at the highest price", () => {
    const tokens = fc.integer({ min: 0, max: 4_000_000 });
    const price = fc.integer({ min: 0, max: usd(1_000) });
    fc.assert(
      fc.property(tokens, tokens, tokens, tokens, fc.tuple(price, price, price, price), (...drawn) => {
        const [inputTokens, outputTokens, cachedInputTokens, imageOutputTokens, prices] = drawn;
        const [input, output, cachedInput, image] = prices;
        const usage = create(UsageSchema, { inputTokens, outputTokens, cachedInputTokens, imageOutputTokens });
        const cached = BigInt(Math.min(cachedInputTokens, inputTokens));
        const pictures = BigInt(Math.min(imageOutputTokens, outputTokens));
        const millionths =
          (BigInt(inputTokens) - cached) * BigInt(input) +
          cached * BigInt(cachedInput) +
          (BigInt(outputTokens) - pictures) * BigInt(output) +
          pictures * BigInt(image);
        const roundedUp = Number((millionths + 999_999n) / 1_000_000n);
        expect(costOf(toTokenCounts(usage), toPrice({ input, output, cachedInput, imageOutput: image }))).toBe(
          roundedUp,
        );
      }),
      { numRuns: 2_000 },
    );
  });
});
