import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { toAnswerChunks, toAnswer } from "../../../src/providers/openai/response.ts";
import { readFixture } from "./fixture.ts";
import { folded, plainAnswer } from "./reading.ts";
import { failureOf } from "../../support/errors.ts";

const answer = (message: unknown, finish: unknown = "stop", rest: object = {}) => ({
  choices: [{ index: 0, message, finish_reason: finish, ...rest }],
});
const read = (json: unknown) => plainAnswer(toAnswer(json));
const choice = (message: object, finishReason = "STOP", nativeFinishReason = "stop") => ({
  choices: [
    {
      message: { role: "ROLE_ASSISTANT", ...message },
      finishReason: `FINISH_REASON_${finishReason}`,
      nativeFinishReason,
    },
  ],
  usage: undefined,
});

const refusalOf = (json: unknown): Failure => failureOf(() => toAnswer(json));

describe("a completion of a hostile server", () => {
  const choices = (count: number, parts: number): object => ({
    choices: Array.from({ length: count }, (_, index) => ({
      index,
      finish_reason: "stop",
      message: {
        content: Array.from({ length: parts }, () => [
          { type: "text", text: "a" },
          { type: "refusal", refusal: "b" },
        ]).flat(),
      },
    })),
  });

  it("has at most 128 choices, and 4,000 parts in all of them", () => {
    expect(toAnswer(choices(128, 1)).choices).toHaveLength(128);
    expect(refusalOf(choices(129, 1))).toMatchObject({
      code: "upstream_protocol",
      message: expect.stringContaining("128 choices") as string,
    });
    expect(refusalOf(choices(100, 21))).toMatchObject({
      code: "upstream_protocol",
      message: expect.stringContaining("4000 parts") as string,
    });
  });
});

describe("a whole completion", () => {
  it("gives text, finish and usage with all its details", () => {
    const json = {
      ...answer({ role: "assistant", content: "Hi", refusal: null }, "stop", { logprobs: null }),
      usage: {
        prompt_tokens: 9,
        completion_tokens: 8,
        total_tokens: 17,
        prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2, audio_tokens: 3, image_tokens: 4 },
        completion_tokens_details: {
          reasoning_tokens: 5,
          audio_tokens: 6,
          image_tokens: 7,
          accepted_prediction_tokens: 8,
          rejected_prediction_tokens: 0,
        },
      },
    };
    expect(read(json)).toEqual({
      ...choice({ parts: [{ text: "Hi" }] }),
      usage: {
        inputTokens: 9,
        outputTokens: 8,
        totalTokens: 17,
        cachedInputTokens: 1,
        cacheWriteInputTokens: 2,
        audioInputTokens: 3,
        imageInputTokens: 4,
        reasoningOutputTokens: 5,
        audioOutputTokens: 6,
        imageOutputTokens: 7,
        acceptedPredictionTokens: 8,
        rejectedPredictionTokens: 0,
      },
    });
  });

  it.each<[string, unknown, unknown]>([
    ["counts nothing", {}, undefined],
    ["counts in words", { prompt_tokens: "nine" }, undefined],
    ["counts in digits that are text", { prompt_tokens: "9" }, { inputTokens: 9, totalTokens: 9 }],
    ["counts the prompt only", { prompt_tokens: 9 }, { inputTokens: 9, totalTokens: 9 }],
    [
      "names cached tokens differently",
      { prompt_tokens: 9, prompt_cache_hit_tokens: 4 },
      { inputTokens: 9, totalTokens: 9, cachedInputTokens: 4 },
    ],
    [
      "counts reasoning beside the completion",
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { inputTokens: 10, outputTokens: 25, totalTokens: 35, reasoningOutputTokens: 20 },
    ],
    [
      "counts cached tokens beside the prompt",
      { prompt_tokens: 5, completion_tokens: 10, total_tokens: 15, prompt_tokens_details: { cached_tokens: 900 } },
      { inputTokens: 905, outputTokens: 10, totalTokens: 915, cachedInputTokens: 900 },
    ],
    [
      "counts tokens of caches beside the prompt and in the total",
      {
        prompt_tokens: 30,
        completion_tokens: 10,
        total_tokens: 65,
        prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 5 },
      },
      { inputTokens: 55, outputTokens: 10, totalTokens: 65, cachedInputTokens: 20, cacheWriteInputTokens: 5 },
    ],
    [
      "counts reasoning only in the total",
      { prompt_tokens: 20, completion_tokens: 424, total_tokens: 1016 },
      { inputTokens: 20, outputTokens: 996, totalTokens: 1016 },
    ],
    [
      "counts reasoning beside the completion, without a total",
      { prompt_tokens: 21, completion_tokens: 0, completion_tokens_details: { reasoning_tokens: 60 } },
      { inputTokens: 21, outputTokens: 60, totalTokens: 81, reasoningOutputTokens: 60 },
    ],
  ])("trap 81: is understood where the upstream %s", (_, usage, expected) => {
    expect(read({ ...answer({ content: "a" }), usage })).toMatchObject({ usage: expected });
  });

  it("trap 72: gives tool calls, with an empty object for no arguments", () => {
    const tool_calls = [
      { id: "a", type: "function", function: { name: "f", arguments: "" } },
      { id: "a", type: "function", function: { name: "g", arguments: '{"n":9007199254740993}' } },
      { id: "b", type: "custom", custom: { name: "sql", input: "select 1" } },
    ];
    expect(read(answer({ content: null, tool_calls }))).toEqual(
      choice(
        {
          parts: [
            { toolCall: { id: "a", name: "f", argumentsJson: "{}" } },
            { toolCall: { id: "a", name: "g", argumentsJson: '{"n":9007199254740993}' } },
            { toolCall: { id: "b", name: "sql", customInput: "select 1" } },
          ],
        },
        "TOOL_CALLS",
      ),
    );
  });

  it("gives the call of the form before tool calls", () => {
    const json = answer({ function_call: { name: "f", arguments: "{}" } }, "function_call");
    expect(read(json)).toMatchObject({
      choices: [{ finishReason: "FINISH_REASON_TOOL_CALLS", message: { parts: [{ toolCall: { name: "f" } }] } }],
    });
  });

  it("gives text, pictures and reasoning from a content array, in their order", () => {
    const content = [
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "see" },
      {
        type: "image_url",
        image_url: { url: "data:image/webp;charset=x;base64,iVBORw==" },
        extra_content: { google: { thought_signature: "s" } },
      },
      { type: "text", text: "done" },
      { type: "unknown" },
      null,
    ];
    expect(read(answer({ content }))).toEqual(
      choice({
        parts: [
          { reasoning: { text: "hm" } },
          { text: "see" },
          { image: { data: "iVBORw==", mediaType: "image/webp" }, signature: "s" },
          { text: "done" },
        ],
      }),
    );
  });

  it.each([
    ["data:image/png;base64,iVBORw==", { data: "iVBORw==", mediaType: "image/png" }],
    ["DATA:IMAGE/PNG;BASE64,iVBORw==", { data: "iVBORw==", mediaType: "image/png" }],
    ["data:;base64,iVBORw==", { data: "iVBORw==", mediaType: "image/png" }],
    ["https://example.com/a.png", { url: "https://example.com/a.png" }],
  ])("gives the picture %s from the list of pictures", (url, image) => {
    expect(read(answer({ content: "a", images: [{ image_url: { url } }, { image_url: url }] }))).toEqual(
      choice({ parts: [{ text: "a" }, { image }, { image }] }),
    );
  });

  it.each(["data:image/png;base64,", "data:image/png,raw", "ftp://x/y", "iVBORw==", ""])(
    "leaves out the picture %j that cannot be read",
    (url) => {
      expect(read(answer({ content: "a", images: [{ image_url: { url } }] }))).toEqual(
        choice({ parts: [{ text: "a" }] }),
      );
    },
  );

  it("gives speech, refusal, citations and state", () => {
    const message = {
      content: "a",
      refusal: "no",
      audio: { id: "au", data: "AAA=", transcript: "a", expires_at: 7 },
      annotations: [
        { type: "url_citation", url_citation: { url: "https://e.org", title: "E", start_index: 1, end_index: 2 } },
        { type: "other" },
      ],
      extra_content: { google: { thought_signature: "s" } },
    };
    expect(read(answer(message))).toEqual(
      choice({
        parts: [
          {
            text: "a",
            citations: [
              { url: "https://e.org", title: "E", textRange: { start: 1, end: 2 } },
              { native: { dialect: "openai", json: '{"type":"other"}' } },
            ],
            signature: "s",
          },
          { refusal: "no" },
          { audio: { id: "au", data: "AAA=", transcript: "a", expireTime: "1970-01-01T00:00:07Z" } },
        ],
      }),
    );
  });

  it("gives every choice by its index", () => {
    const json = {
      choices: [1, 0].map((index) => ({ index, message: { content: `c${index}` }, finish_reason: "stop" })),
    };
    expect(toAnswer(json).choices.map(({ index, message }) => [index, message?.parts[0]?.kind.value])).toEqual([
      [0, "c0"],
      [1, "c1"],
    ]);
  });

  it("is the same as chunks", () => {
    const json = answer({
      content: "a",
      reasoning: "b",
      tool_calls: [{ id: "c", function: { name: "f", arguments: "{}" } }],
    });
    expect(folded(toAnswerChunks(json))).toEqual(read(json));
  });

  it.each([
    ["length", "LENGTH"],
    ["content_filter", "CONTENT_FILTER"],
  ])("trap 78: may be empty for the reason %s", (word, reason) => {
    expect(read(answer({ content: null }, word))).toEqual(choice({}, reason, word));
  });
});

describe("what is no completion", () => {
  it("trap 22: is the failure that fixture 42 reports", () => {
    expect(refusalOf(readFixture("42-openai-compat-200-error-body").json("upstream-response.json"))).toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider failed.",
      upstreamStatus: 200,
      transient: true,
    });
  });

  it.each<[string, unknown, string]>([
    ["a rate limit", { error: { code: 429 }, choices: [] }, "upstream_rate_limited"],
    ["an error in an array", [{ error: { code: 401 } }], "upstream_refused_us"],
    ["an error beside an answer", { ...answer({ content: "a" }), error: { message: "x" } }, "upstream_unavailable"],
    ["an error in the choice", answer({ content: "a" }, "stop", { error: { code: 502 } }), "upstream_unavailable"],
    ["a broken answer", answer({ content: "a" }, "error"), "upstream_unavailable"],
    ["no choices", { choices: [] }, "upstream_protocol"],
    ["nothing", {}, "upstream_protocol"],
    ["null", null, "upstream_protocol"],
    ["text", "hello", "upstream_protocol"],
    ["an answer without an end", answer({ content: "a" }, null), "upstream_protocol"],
    ["an empty answer", answer({ content: "" }), "upstream_protocol"],
    ["an answer without a message", answer(null), "upstream_protocol"],
  ])("is a failure: %s", (_, json, code) => {
    expect(refusalOf(json).code).toBe(code);
  });

  it.each<[string, unknown, boolean]>([
    ["an error alone", { error: { code: 502 }, choices: [] }, true],
    ["an error beside an answer", { ...answer({ content: "a" }), error: { code: 502 } }, false],
    ["an error in a choice with content", answer({ content: "a" }, "error", { error: { code: 502 } }), false],
    ["an error with a count", { error: { code: 502 }, usage: { prompt_tokens: 7, completion_tokens: 3 } }, false],
    [
      "an error in an empty choice with a count",
      {
        ...answer({ content: "" }, "error", { error: { code: 502 } }),
        usage: { prompt_tokens: 7, completion_tokens: 3 },
      },
      false,
    ],
  ])("costs nothing only where nothing was generated: %s", (_, json, refused) => {
    expect(refusalOf(json).refused).toBe(refused);
  });

  it("is booked by the count that an answer has beside its error", () => {
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
    const json = { ...answer({ content: "a" }), error: { code: 502 }, usage };
    expect(refusalOf(json)).toMatchObject({ refused: false, usage: { inputTokens: 7, outputTokens: 3 } });
  });
});
