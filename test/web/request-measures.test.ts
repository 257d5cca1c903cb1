import { describe, expect, it } from "vitest";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { describeFinish, tokensPerSecond } from "../../web/requests/measures.ts";

describe("the tokens a second of a request", () => {
  it("are those since the first token of a stream, or of the whole request", () => {
    expect(tokensPerSecond({ completionTokens: 50n, durationMs: 1_500, firstContentMs: 500 })).toBe(50);
    expect(tokensPerSecond({ completionTokens: 50n, durationMs: 2_000 })).toBe(25);
  });

  it("are not known without tokens, nor of a response in one piece", () => {
    expect(tokensPerSecond({ completionTokens: 0n, durationMs: 2_000 })).toBeUndefined();
    expect(tokensPerSecond({ completionTokens: 9n, durationMs: 520, firstContentMs: 500 })).toBeUndefined();
  });
});

describe("the finish reason of a request", () => {
  it("is in words, and none without an answer", () => {
    expect(describeFinish({ finishReason: FinishReason.TOOL_CALLS })).toBe("tool calls");
    expect(describeFinish({ finishReason: FinishReason.UNSPECIFIED })).toBeUndefined();
  });
});
