import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { failureOf } from "../../support/errors.ts";
import { fold } from "../../support/fold.ts";
import { toChunks } from "../../support/to-chunks.ts";
import { toAnswer, toAnswerChunks } from "../../../src/providers/anthropic/response.ts";
import { summarize } from "./answers.ts";
import { readFixtureJson } from "./fixtures.ts";
import { anyMessage } from "./messages.ts";

interface Expected {
  choices: [
    {
      message: {
        content: string;
        reasoning_content?: string;
        tool_calls?: { id: string; function: { name: string; arguments: string } }[];
        thinking_blocks?: { thinking: string; signature: string }[];
      };
      finish_reason: string;
      native_finish_reason: string;
    },
  ];
  usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    prompt_tokens_details: { cached_tokens: number; cache_write_tokens: number };
    completion_tokens_details: { reasoning_tokens: number };
  };
}

const FINISH = { stop: FinishReason.STOP, length: FinishReason.LENGTH, tool_calls: FinishReason.TOOL_CALLS };

const answerOf = (content: unknown[], more: object = {}): object => ({
  type: "message",
  content,
  stop_reason: "end_turn",
  ...more,
});

/** Whether reading `json` ends as it must: with one choice, or with a Failure. */
function outcomeOf(json: unknown): unknown {
  try {
    return toAnswer(json).choices.length === 1 ? "answered or refused" : "answered without a choice";
  } catch (reason) {
    return reason instanceof Failure ? "answered or refused" : reason;
  }
}

describe("a whole answer", () => {
  it.each(["01", "03", "05", "06", "08", "10", "18", "19"])("fixture %s: says what the caller gets", (number) => {
    const { choices, usage } = toAnswer(readFixtureJson(number, "upstream-response.json"));
    const expected = readFixtureJson(number, "expected-openai.json") as unknown as Expected;
    const [{ message, finish_reason, native_finish_reason }] = expected.choices;
    expect(choices).toMatchObject([
      {
        index: 0,
        finishReason: FINISH[finish_reason as keyof typeof FINISH],
        nativeFinishReason: native_finish_reason,
      },
    ]);
    const said = summarize(toAnswerChunks(readFixtureJson(number, "upstream-response.json")));
    expect(said.text).toBe(message.content);
    expect(said.calls ?? []).toEqual(
      (message.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => [id, name, args]),
    );
    expect(said.blocks ?? []).toEqual(
      (message.thinking_blocks ?? []).map(({ thinking, signature }) => ({ text: thinking, signature })),
    );
    expect(usage).toMatchObject({
      inputTokens: expected.usage.prompt_tokens,
      outputTokens: expected.usage.completion_tokens,
      totalTokens: expected.usage.total_tokens,
      cachedInputTokens: expected.usage.prompt_tokens_details.cached_tokens,
      cacheWriteInputTokens: expected.usage.prompt_tokens_details.cache_write_tokens,
      reasoningOutputTokens: expected.usage.completion_tokens_details.reasoning_tokens,
    });
  });

  it.each([
    ["end_turn", FinishReason.STOP],
    ["stop_sequence", FinishReason.STOP],
    ["pause_turn", FinishReason.PAUSE],
    ["compaction", FinishReason.OTHER],
    ["novelty", FinishReason.OTHER],
    ["constructor", FinishReason.OTHER],
    ["max_tokens", FinishReason.LENGTH],
    ["model_context_window_exceeded", FinishReason.LENGTH],
    ["refusal", FinishReason.CONTENT_FILTER],
  ])("that ended with %s has finish reason %i", (stop_reason, finishReason) => {
    expect(toAnswer(answerOf([], { stop_reason })).choices).toMatchObject([
      { finishReason, nativeFinishReason: stop_reason },
    ]);
  });

  it("names the stop sequence that ended it", () => {
    const stopped = answerOf([], { stop_reason: "stop_sequence", stop_sequence: "END" });
    expect(toAnswer(stopped).choices).toMatchObject([{ stopSequence: "END" }]);
    expect(toAnswer(answerOf([])).choices).toMatchObject([{ stopSequence: "" }]);
  });

  it("with calls ended for them, whatever the provider says (trap 76)", () => {
    const call = { type: "tool_use", id: "c", name: "f", input: {} };
    expect(toAnswer(answerOf([call])).choices).toMatchObject([{ finishReason: FinishReason.TOOL_CALLS }]);
    expect(toAnswer(answerOf([call], { stop_reason: "max_tokens" })).choices).toMatchObject([
      { finishReason: FinishReason.LENGTH },
    ]);
  });

  it("without content is an answer with one choice (trap 78)", () => {
    expect(toAnswer(answerOf([])).choices).toMatchObject([{ message: { parts: [] }, finishReason: FinishReason.STOP }]);
  });

  it("that refuses says why (trap 35)", () => {
    const refused = answerOf([], { stop_reason: "refusal", stop_details: { explanation: "No." } });
    expect(toAnswer(refused).choices).toMatchObject([
      { message: { parts: [{ kind: { case: "refusal", value: "No." } }] }, finishReason: FinishReason.CONTENT_FILTER },
    ]);
  });

  it("keeps the places of interleaved reasoning (trap 95)", () => {
    const blocks = [
      { type: "tool_use", id: "c", name: "f", input: {} },
      { type: "text", text: "🙂!" },
      { type: "thinking", thinking: "", signature: "s" },
    ];
    expect(toAnswer(answerOf(blocks)).choices[0]?.message?.parts).toMatchObject([
      { kind: { case: "toolCall", value: { id: "c" } } },
      { kind: { case: "text", value: "🙂!" } },
      { kind: { case: "reasoning", value: { text: "" } }, signature: "s" },
    ]);
  });

  it("trap 22: with an error in place of an answer fails by the error's type", () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(() => toAnswer(error)).toThrow(
      expect.objectContaining({ code: "upstream_unavailable", detail: "upstream_overloaded" }),
    );
  });

  it("with an error beside its content may be billed, with an error alone it costs nothing", () => {
    const error = { type: "api_error", message: "Internal server error" };
    const refusedOf = (json: object) => failureOf(() => toAnswer(json)).refused;
    expect(refusedOf({ type: "error", error })).toBe(true);
    expect(refusedOf(answerOf([], { error }))).toBe(true);
    const broken = answerOf([{ type: "text", text: "hi" }], { error, usage: { input_tokens: 7, output_tokens: 3 } });
    expect(failureOf(() => toAnswer(broken))).toMatchObject({
      refused: false,
      usage: { inputTokens: 7, outputTokens: 3 },
    });
  });

  it("is one in spite of an error that is null", () => {
    expect(toAnswer(answerOf([{ type: "text", text: "hi" }], { error: null })).choices).toHaveLength(1);
  });

  it("of reasoning alone is one", () => {
    const [choice] = toAnswer(answerOf([{ type: "thinking", thinking: "hm", signature: "s" }])).choices;
    expect(choice).toMatchObject({
      finishReason: FinishReason.STOP,
      message: { parts: [{ kind: { case: "reasoning", value: { text: "hm" } }, signature: "s" }] },
    });
  });

  it("with a call that has no name fails, perhaps by the request's doing", () => {
    expect(() => toAnswer(answerOf([{ type: "tool_use", id: "c", input: {} }]))).toThrow(
      expect.objectContaining({ code: "upstream_protocol", requestBound: true }),
    );
  });

  it.each([null, 3, "text", [], {}, { content: [] }, { stop_reason: "end_turn" }, answerOf([], { stop_reason: null })])(
    "is none when it is %j",
    (json) => {
      expect(() => toAnswer(json)).toThrow(expect.objectContaining({ code: "upstream_protocol" }));
    },
  );

  it("is read, or refused with a Failure, whatever its fields hold", () => {
    const field = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom("text", "thinking", "tool_use", "end_turn"));
    const wild = fc.dictionary(
      fc.constantFrom("type", "text", "thinking", "signature", "data", "id", "name", "input"),
      field,
    );
    fc.assert(
      fc.property(
        fc.record({
          content: fc.array(fc.oneof(wild, field)),
          stop_reason: field,
          usage: wild,
          error: fc.option(wild, { nil: undefined }),
        }),
        (json) => {
          expect(outcomeOf(json)).toBe("answered or refused");
        },
      ),
      { numRuns: 100 },
    );
  });

  it("is the same taken apart and put together again", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const answer = toAnswer(message);
        expect(fold(toChunks(answer))).toEqual(answer);
        expect(summarize(toAnswerChunks(message)).text ?? "").toBe(
          message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
        );
      }),
      { numRuns: 50 },
    );
  });
});
