import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type ChoiceSchema, CompletionSchema, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { ModelSchema, ModelStage } from "../../../gen/parley/v1/model_pb.js";
import { OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import type { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { omission } from "../../../src/core/provider-options.ts";
import { toChatCompletion } from "../../../src/formats/openai-chat/response.ts";
import { toModelObject } from "../../../src/formats/openai-chat/models.ts";
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
const argumentsJson = (value: string) => ({ case: "argumentsJson" as const, value });
const customInput = (value: string) => ({ case: "customInput" as const, value });
const page = (more: object = {}) => ({ source: { case: "url" as const, value: "https://a" }, title: "A", ...more });
const citing = (content: string, annotations: readonly (readonly [number, number])[]): object => ({
  role: "assistant",
  content,
  refusal: null,
  ...(annotations.length > 0 && {
    annotations: annotations.map(([start, end]) => ({
      type: "url_citation",
      url_citation: { url: "https://a", title: "A", start_index: start, end_index: end },
    })),
  }),
});

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
          {
            kind: { case: "toolCall" as const, value: { id: "c0", name: "f", input: argumentsJson("{}") } },
            signature: "s",
          },
          { kind: { case: "toolCall" as const, value: { id: "c1", name: "g", input: customInput("raw") } } },
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
              value: {
                id: "audio_1",
                source: { case: "data" as const, value: Buffer.from("hi") },
                transcript: "Hi.",
                expireTime: { seconds: 9n },
              },
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
      { parts: [text("b"), { ...text("a"), citations: [page({ textRange: { start: 0, end: 1 } })] }] },
      citing("ba", [[1, 2]]),
    ],
    [
      "that cites has annotations that count code points",
      {
        parts: [
          text("🎉"),
          {
            ...text("🎉a🎉b"),
            citations: [page({ textRange: { start: 1, end: 3 } }), page({ textRange: { start: 3, end: 4 } })],
          },
        ],
      },
      citing("🎉🎉a🎉b", [
        [2, 4],
        [4, 5],
      ]),
    ],
    [
      "that cites without a range cites with the whole part",
      { parts: [text("🎉"), { ...text("a🎉"), citations: [page()] }, text("after")] },
      citing("🎉a🎉after", [[1, 3]]),
    ],
    [
      "that cites a document has no annotations, which the format has only for pages",
      {
        parts: [
          {
            ...text("a"),
            citations: [{ source: { case: "document" as const, value: { documentIndex: 0, end: 1 } }, title: "A" }],
          },
        ],
      },
      citing("a", []),
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
      message: { parts: [{ ...text("a"), logprobs: [{ token: "a", logprob: -0.5, bytes: Buffer.from("a"), top }] }] },
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

it("log probabilities of all parts are in two lists: of texts, and of refusals", () => {
  const probable = (token: string) => [{ token, logprob: -1 }];
  const refusal = { kind: { case: "refusal" as const, value: "c" }, logprobs: probable("c") };
  const parts = [{ ...text("a"), logprobs: probable("a") }, refusal, { ...text("b"), logprobs: probable("b") }];
  expect(written({ message: { parts } })["choices"]).toMatchObject([
    { logprobs: { content: [{ token: "a" }, { token: "b" }], refusal: [{ token: "c" }] } },
  ]);
});

describe("usage", () => {
  it("is left out when nothing was counted", () => {
    expect(written({ message: {} })).not.toHaveProperty("usage");
  });

  it("has the details that were counted, cached and reasoning tokens always", () => {
    const few = written({ message: {} }, { inputTokens: 3, outputTokens: 2, totalTokens: 5 });
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
        cachedInputTokens: 1,
        cacheWriteInputTokens: 2,
        audioInputTokens: 3,
        imageInputTokens: 4,
        reasoningOutputTokens: 5,
        audioOutputTokens: 6,
        imageOutputTokens: 7,
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

const number = (value: number) => ({ kind: { case: "numberValue" as const, value } });
const word = (value: string) => ({ kind: { case: "stringValue" as const, value } });

it("the parley object says how the answer came about", () => {
  const completion = create(CompletionSchema, {
    report: {
      attempts: [
        attemptOf({ model: "a", outcome: "skipped", reason: "circuit breaker open", startMs: 3 }),
        attemptOf({ model: "b", upstreamStatus: 200, startMs: 4, durationMs: 12 }),
      ].map(toAttemptMessage),
      omitted: [omission("seed", OmissionReason.UNSUPPORTED)],
      clamped: [
        { field: "temperature", requested: number(1.5), sent: number(1) },
        { field: "reasoning.effort", requested: word("REASONING_EFFORT_XHIGH"), sent: word("REASONING_EFFORT_HIGH") },
        { field: "messages[0].parts[0].cache_mark.ttl", requested: word("600s"), sent: word("3600s") },
        { field: "tools[0].cache_mark.ttl", requested: word("7200s"), sent: word("300s") },
      ],
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
      clamped: [
        { field: "temperature", requested: 1.5, sent: 1 },
        { field: "reasoning.effort", requested: "xhigh", sent: "high" },
        { field: "messages[0].parts[0].cache_mark.ttl", requested: "10m", sent: "1h" },
        { field: "tools[0].cache_mark.ttl", requested: "2h", sent: "5m" },
      ],
      cost_usd: 0.00125,
    },
  });
});

it.each([
  [ModelStage.PREVIEW, true],
  [ModelStage.STABLE, false],
  [ModelStage.DEPRECATED, false],
  [ModelStage.UNSPECIFIED, false],
])("a model of the stage %s is a preview: %s", (stage, preview) => {
  expect(toModelObject(create(ModelSchema, { id: "a", stage }))).toMatchObject({ id: "a", preview });
});
