import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UsageSchema } from "../../gen/parley/v1/completion_pb.js";
import { costOf } from "../../src/core/cost.ts";
import { toTokenCounts } from "../../src/core/ledger.ts";

/** US dollars per million tokens, as prices are written. */
const usd = (perMillion: number): number => perMillion * 1_000_000;
const PRICE = { input: usd(5), output: usd(25), cachedInput: usd(0.5), image: usd(120) };

describe("a completion costs", () => {
  it.each([
    ["nothing without tokens", {}, 0],
    ["input and output at their prices", { promptTokens: 100, completionTokens: 10 }, 500 + 250],
    ["less for cached input", { promptTokens: 100, cachedTokens: 80 }, 20 * 5 + 40],
    ["more for pictures", { completionTokens: 1_300, completionImageTokens: 1_290 }, 250 + 1_290 * 120],
    ["the same with reasoning, which is in the output already", { completionTokens: 10, reasoningTokens: 9 }, 250],
    ["no less than nothing when more is cached than read", { promptTokens: 10, cachedTokens: 99 }, 5],
    ["no less than nothing when more is pictures than all", { completionTokens: 1, completionImageTokens: 9 }, 120],
    ["half a micro-dollar rounded up", { promptTokens: 1, cachedTokens: 1 }, 1],
  ])("%s", (_, usage, costMicroUsd) => {
    expect(costOf(toTokenCounts(create(UsageSchema, usage)), PRICE)).toBe(costMicroUsd);
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
        expect(costOf(toTokenCounts(usage), { input, output, cachedInput, image })).toBe(exact);
      }),
      { numRuns: 2_000 },
    );
  });
});
