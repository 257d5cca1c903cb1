import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { costOf } from "../../src/core/cost.ts";
import type { Price } from "../../src/core/model.ts";
import { toPrice } from "../support/prices.ts";
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
  image: usd(120),
  audioOutput: usd(80),
};

describe("a completion costs", () => {
  it.each([
    ["nothing without tokens", {}, 0],
    ["input and output at their prices", { promptTokens: 100, completionTokens: 10 }, 500 + 250],
    ["less for cached input", { promptTokens: 100, cachedTokens: 80 }, 20 * 5 + 40],
    ["more for pictures", { completionTokens: 1_300, completionImageTokens: 1_290 }, 250 + 1_290 * 120],
    ["the same with reasoning, which is in the output already", { completionTokens: 10, reasoningTokens: 9 }, 250],
    ["more for input that is written to a cache", { promptTokens: 100, cacheWriteTokens: 80 }, 20 * 5 + 500],
    ["each kind of input once", { promptTokens: 100, cachedTokens: 50, cacheWriteTokens: 40 }, 25 + 250 + 10 * 5],
    ["more for speech that is heard", { promptTokens: 100, promptAudioTokens: 80 }, 20 * 5 + 80 * 40],
    ["more for speech that is made", { completionTokens: 100, completionAudioTokens: 80 }, 20 * 25 + 80 * 80],
    ["no less than nothing when more is written than read", { promptTokens: 10, cacheWriteTokens: 99 }, 63],
    ["no less than nothing when more is cached than read", { promptTokens: 10, cachedTokens: 99 }, 5],
    ["no less than nothing when more is pictures than all", { completionTokens: 1, completionImageTokens: 9 }, 120],
    ["half a micro-dollar rounded up", { promptTokens: 1, cachedTokens: 1 }, 1],
  ])("%s", (_, usage, costMicroUsd) => {
    expect(costOf(toTokenCounts(create(UsageSchema, usage)), PRICE)).toBe(costMicroUsd);
  });

  it("more for a cache that lasts an hour, and for a dearer tier of service", () => {
    const tokens = toTokenCounts(
      create(UsageSchema, { promptTokens: 100, cacheWriteTokens: 80, completionTokens: 10 }),
    );
    expect(costOf(tokens, PRICE, { cacheWrite: "hour", priceFactor: 1 })).toBe(20 * 5 + 80 * 10 + 250);
    expect(costOf(tokens, PRICE, { cacheWrite: "minutes", priceFactor: 2 })).toBe(2 * (20 * 5 + 500 + 250));
  });

  it("exactly what whole numbers say, for four million tokens each way at the highest price", () => {
    const tokens = fc.integer({ min: 0, max: 4_000_000 });
    const price = fc.integer({ min: 0, max: usd(1_000) });
    fc.assert(
      fc.property(tokens, tokens, tokens, tokens, fc.tuple(price, price, price, price), (...drawn) => {
        const [promptTokens, completionTokens, cachedTokens, completionImageTokens, prices] = drawn;
        const [input, output, cachedInput, image] = prices;
        const usage = create(UsageSchema, { promptTokens, completionTokens, cachedTokens, completionImageTokens });
        const cached = BigInt(Math.min(cachedTokens, promptTokens));
        const pictures = BigInt(Math.min(completionImageTokens, completionTokens));
        const millionths =
          (BigInt(promptTokens) - cached) * BigInt(input) +
          cached * BigInt(cachedInput) +
          (BigInt(completionTokens) - pictures) * BigInt(output) +
          pictures * BigInt(image);
        const exact = Number((millionths + 500_000n) / 1_000_000n);
        expect(costOf(toTokenCounts(usage), toPrice({ input, output, cachedInput, image }))).toBe(exact);
      }),
      { numRuns: 2_000 },
    );
  });
});
