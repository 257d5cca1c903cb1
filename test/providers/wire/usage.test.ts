import { toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type Usage, UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { UsageCount } from "../../../src/providers/anthropic/usage.ts";
import { readUsage as readGemini } from "../../../src/providers/gemini/usage.ts";
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
});
