import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type ChoiceSchema, CompletionSchema, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import type { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { omission } from "../../../src/core/provider-options.ts";
import { toChatCompletion } from "../../../src/formats/openai-chat/response.ts";
import { answerOf, comparable, type Scenario, scenariosWith } from "./scenarios.ts";
import { toAttemptMessage } from "../../../src/core/attempt.ts";
import { attemptOf } from "../../support/attempt.ts";

const answered = scenariosWith("upstream-response.json", "expected-openai.json").filter(
  (scenario) => scenario.json("expected-openai.json")["error"] === undefined,
);

describe("a whole answer is written as an OpenAI client expects it", () => {
  it("in more than a dozen scenarios", () => {
    expect(answered.length).toBeGreaterThan(12);
  });

  it.each(answered)("$name", (scenario: Scenario) => {
    const expected = scenario.json("expected-openai.json");
    const { choices, usage } = answerOf(scenario);
    const completion = create(CompletionSchema, {
      id: "chatcmpl-FIXTURE",
      createTime: { seconds: 1_780_000_000n },
      model: expected["model"] as string,
      choices,
      ...(usage !== undefined && { usage }),
      report: {},
    });
    expect(comparable(toChatCompletion(completion, (path) => path))).toEqual(comparable(expected));
  });
});

function written(
  choice: MessageInitShape<typeof ChoiceSchema>,
  usage?: MessageInitShape<typeof UsageSchema>,
): Record<string, unknown> {
  const completion = create(CompletionSchema, { id: "chatcmpl-1", choices: [choice], ...(usage && { usage }) });
  return JSON.parse(JSON.stringify(toChatCompletion(completion, (path) => path)));
}

const messageOf = (message: MessageInitShape<typeof ChoiceSchema>["message"]): unknown =>
  (written({ ...(message && { message }) })["choices"] as { message: unknown }[])[0]!.message;
const text = (value: string) => ({ kind: { case: "text" as const, value } });

describe("a message", () => {
  it.each([
    ["of nothing has empty content", {}, { role: "assistant", content: "", refusal: null }],
    ["of texts joins them", { parts: [text("a"), text("b")] }, { role: "assistant", content: "ab", refusal: null }],
    [
      "that refuses has no content",
      { parts: [{ kind: { case: "refusal" as const, value: "No." } }] },
      { role: "assistant", content: null, refusal: "No." },
    ],
    [
      "that calls tools has no content, and custom tools have their own shape",
      {
        parts: [
          { kind: { case: "toolCall" as const, value: { id: "c0", name: "f", arguments: "{}" } }, signature: "s" },
          { kind: { case: "toolCall" as const, value: { id: "c1", name: "g", arguments: "raw", custom: true } } },
        ],
      },
      {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [
          {
            id: "c0",
            type: "function",
            function: { name: "f", arguments: "{}" },
            extra_content: { google: { thought_signature: "s" } },
          },
          { id: "c1", type: "custom", custom: { name: "g", input: "raw" } },
        ],
      },
    ],
    [
      "with a picture's address has parts",
      {
        parts: [
          text("see"),
          { kind: { case: "image" as const, value: { source: { case: "url" as const, value: "https://a/b" } } } },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "https://a/b" } },
        ],
        refusal: null,
      },
    ],
    [
      "that speaks has its audio beside the content",
      {
        parts: [
          {
            kind: {
              case: "audio" as const,
              value: { id: "audio_1", data: Buffer.from("hi"), transcript: "Hi.", expireTime: { seconds: 9n } },
            },
          },
        ],
      },
      {
        role: "assistant",
        content: "",
        refusal: null,
        audio: { id: "audio_1", data: "aGk=", transcript: "Hi.", expires_at: 9 },
      },
    ],
    [
      "that cites has annotations",
      {
        parts: [
          text("b"),
          { ...text("a"), annotations: [{ url: "https://a", title: "A", startIndex: 0, endIndex: 1 }] },
        ],
      },
      {
        role: "assistant",
        content: "ba",
        refusal: null,
        annotations: [
          { type: "url_citation", url_citation: { url: "https://a", title: "A", start_index: 1, end_index: 2 } },
        ],
      },
    ],
    [
      "that reasoned has the text, and blocks only where there is state to send back",
      {
        parts: [
          { kind: { case: "reasoning" as const, value: { text: "h" } } },
          text("yes"),
          { kind: { case: "reasoning" as const, value: { text: "m" } }, signature: "s" },
        ],
      },
      {
        role: "assistant",
        content: "yes",
        refusal: null,
        reasoning_content: "hm",
        thinking_blocks: [{ index: 0, type: "thinking", thinking: "m", signature: "s", at: { text: 3, tools: 0 } }],
      },
    ],
  ])("%s", (_, message, expected) => {
    expect(messageOf(message)).toEqual(expected);
  });
});

describe("a choice", () => {
  it.each([
    [FinishReason.STOP, "stop"],
    [FinishReason.LENGTH, "length"],
    [FinishReason.TOOL_CALLS, "tool_calls"],
    [FinishReason.CONTENT_FILTER, "content_filter"],
    [FinishReason.UNSPECIFIED, "stop"],
    [77 as FinishReason, "stop"],
  ])("that ended with %s says %s", (finishReason, word) => {
    const { choices } = written({ message: {}, finishReason });
    expect(choices).toMatchObject([{ finish_reason: word, logprobs: null }]);
  });

  it("has its log probabilities, with bytes as numbers", () => {
    const top = [{ token: "b", logprob: -1 }];
    const { choices } = written({
      message: {},
      logprobs: { content: [{ token: "a", logprob: -0.5, bytes: Buffer.from("a"), top }] },
    });
    expect(choices).toMatchObject([
      {
        logprobs: {
          content: [
            { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [{ token: "b", logprob: -1, bytes: null }] },
          ],
          refusal: null,
        },
      },
    ]);
  });
});

describe("usage", () => {
  it("is left out when nothing was counted", () => {
    expect(written({ message: {} })).not.toHaveProperty("usage");
  });

  it("has the details that were counted, cached and reasoning tokens always", () => {
    const few = written({ message: {} }, { promptTokens: 3, completionTokens: 2, totalTokens: 5 });
    expect(few["usage"]).toEqual({
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
    const all = written(
      { message: {} },
      {
        cachedTokens: 1,
        cacheWriteTokens: 2,
        promptAudioTokens: 3,
        promptImageTokens: 4,
        reasoningTokens: 5,
        completionAudioTokens: 6,
        completionImageTokens: 7,
        acceptedPredictionTokens: 8,
        rejectedPredictionTokens: 9,
      },
    );
    expect(all["usage"]).toMatchObject({
      prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2, audio_tokens: 3, image_tokens: 4 },
      completion_tokens_details: {
        reasoning_tokens: 5,
        audio_tokens: 6,
        image_tokens: 7,
        accepted_prediction_tokens: 8,
        rejected_prediction_tokens: 9,
      },
    });
  });
});

it("the parley object says how the answer came about", () => {
  const completion = create(CompletionSchema, {
    report: {
      attempts: [
        attemptOf({ model: "a", outcome: "skipped", reason: "circuit breaker open", startMs: 3 }),
        attemptOf({ model: "b", upstreamStatus: 200, startMs: 4, durationMs: 12 }),
      ].map(toAttemptMessage),
      omitted: [omission("seed", OmissionReason.UNSUPPORTED)],
      clamped: [{ field: "temperature", requested: 1.5, sent: 1 }],
      costMicroUsd: 1_250n,
    },
  });
  expect(JSON.parse(JSON.stringify(toChatCompletion(completion, (path) => path)))).toMatchObject({
    parley: {
      attempts: [
        {
          model: "a",
          outcome: "skipped",
          upstream_status: null,
          reason: "circuit breaker open",
          start_ms: 3,
          duration_ms: 0,
        },
        { model: "b", outcome: "served", upstream_status: 200, reason: "", start_ms: 4, duration_ms: 12 },
      ],
      omitted: ["seed"],
      clamped: [{ field: "temperature", requested: 1.5, sent: 1 }],
      cost_usd: 0.00125,
    },
  });
});
