import { describe, expect, it } from "vitest";
import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { ToolCall } from "../../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { Answer } from "../../../src/core/provider.ts";
import type { Failure } from "../../../src/core/failure.ts";
import { toAnswer } from "../../../src/providers/gemini/response.ts";
import { readUsage } from "../../../src/providers/gemini/usage.ts";
import { jsonOf } from "./fixture.ts";
import { expectedGist, gistOf } from "./gist.ts";

const { STOP, LENGTH, TOOL_CALLS, CONTENT_FILTER, OTHER } = FinishReason;

const answer = (parts: readonly object[], finishReason = "STOP", more: object = {}): unknown => ({
  candidates: [{ content: { role: "model", parts }, finishReason, index: 0, ...more }],
});
const only = ({ choices }: Answer): Answer["choices"][number] => choices[0]!;

describe("the fixtures", () => {
  it.each([
    "20-gemini-text",
    "22-gemini-tool-call",
    "24-gemini-tool-results",
    "25-gemini-vision",
    "26-gemini-image-out",
    "29-gemini-max-tokens-no-content",
    "30-gemini-safety",
    "31-gemini-prompt-blocked",
  ])("%s is read as expected", (scenario) => {
    const read = toAnswer(jsonOf(scenario, "upstream-response.json"));
    expect(read.choices).toHaveLength(1);
    expect(gistOf(read)).toEqual(expectedGist(scenario, "expected-openai.json"));
  });

  it.each([
    ["35-gemini-malformed-function-call", "The upstream model produced an invalid tool call."],
    ["36-gemini-no-image", "The upstream model returned no usable output."],
  ])("%s is a failure (trap 80)", (scenario, message) => {
    expect(() => toAnswer(jsonOf(scenario, "upstream-response.json"))).toThrow(
      expect.objectContaining({ code: "upstream_protocol", message }) as Error,
    );
  });
});

describe("the end of an answer", () => {
  const text = [{ text: "a" }];
  const call = [{ functionCall: { name: "f" } }];

  it.each<[string, readonly object[], FinishReason]>([
    ["STOP", text, STOP],
    ["STOP", call, TOOL_CALLS],
    ["MAX_TOKENS", text, LENGTH],
    ["MAX_TOKENS", [], LENGTH],
    ["MAX_TOKENS", call, TOOL_CALLS],
    ["CONTINUATION", text, LENGTH],
    ["SAFETY", text, CONTENT_FILTER],
    ["SAFETY", call, CONTENT_FILTER],
    ["RECITATION", [], CONTENT_FILTER],
    ["BLOCKLIST", [], CONTENT_FILTER],
    ["PROHIBITED_CONTENT", [], CONTENT_FILTER],
    ["SPII", [], CONTENT_FILTER],
    ["IMAGE_SAFETY", [], CONTENT_FILTER],
    ["IMAGE_PROHIBITED_CONTENT", [], CONTENT_FILTER],
    ["IMAGE_RECITATION", [], CONTENT_FILTER],
    ["OTHER", text, OTHER],
    ["LANGUAGE", text, OTHER],
    ["NO_IMAGE", text, OTHER],
    ["IMAGE_OTHER", text, OTHER],
    ["FINISH_REASON_UNSPECIFIED", call, TOOL_CALLS],
    ["A_WORD_OF_NEXT_YEAR", text, OTHER],
  ])("trap 35, 76, 78, 89: %s after %j", (native, parts, finishReason) => {
    expect(only(toAnswer(answer(parts, native)))).toMatchObject({ finishReason, nativeFinishReason: native });
  });

  it.each<[string, readonly object[]]>([
    ["STOP", []],
    ["OTHER", [{ text: "hm", thought: true }]],
    ["NO_IMAGE", [{ text: "hm", thought: true }]],
    ["STOP", [{ functionCall: null, inlineData: null }]],
    ["STOP", [{ functionCall: { args: {} } }]],
    ["STOP", [{ text: "" }]],
    ["OTHER", []],
    ["LANGUAGE", []],
    ["IMAGE_OTHER", []],
    ["MALFORMED_RESPONSE", text],
    ["UNEXPECTED_TOOL_CALL", text],
    ["TOO_MANY_TOOL_CALLS", call],
    ["", text],
  ])("%s after %j is a failure, not a success", (native, parts) => {
    expect(() => toAnswer(answer(parts, native))).toThrow(
      expect.objectContaining({ code: "upstream_protocol" }) as Error,
    );
  });

  it("may come after reasoning alone, and after a part whose other kinds are null", () => {
    const thought = [{ text: "hm", thought: true }];
    expect(only(toAnswer(answer(thought, "STOP")))).toMatchObject({ finishReason: STOP });
    const parts = [{ text: "a", functionCall: null, inlineData: null }];
    expect(only(toAnswer(answer(parts, "STOP")))).toMatchObject({
      message: { parts: [{ kind: { value: "a" } }] },
    });
  });

  it("says whether the request may have caused it: the model's doing is, a missing reason is not", () => {
    const boundOf = (parts: readonly object[], native: string): unknown => {
      try {
        return toAnswer(answer(parts, native));
      } catch (reason) {
        return (reason as Failure).requestBound;
      }
    };
    expect(boundOf([], "STOP")).toBe(true);
    expect(boundOf(text, "MALFORMED_FUNCTION_CALL")).toBe(true);
    expect(boundOf([{ functionCall: {} }], "STOP")).toBe(true);
    expect(boundOf(text, "")).toBe(false);
  });

  it.each([{}, [], null, "text", 5, { candidates: {} }, { candidates: [5] }, { promptFeedback: {} }])(
    "%j has no end and is a failure",
    (json) => {
      expect(() => toAnswer(json)).toThrow(expect.objectContaining({ code: "upstream_protocol" }) as Error);
    },
  );

  it("trap 79: a blocked prompt is one refusal, in words of ours", () => {
    const { choices } = toAnswer({ promptFeedback: { blockReason: "see https://x.test" } });
    expect(choices).toMatchObject([
      {
        finishReason: CONTENT_FILTER,
        message: { parts: [{ kind: { case: "refusal", value: "The provider blocked the prompt." } }] },
      },
    ]);
  });
});

describe("the parts of an answer", () => {
  const message = (...parts: object[]): NonNullable<Answer["choices"][number]["message"]> =>
    only(toAnswer(answer(parts))).message!;

  const callsOf = (...parts: object[]): ToolCall[] =>
    message(...parts).parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : []));
  const picture = { inlineData: { mimeType: "image/png", data: "AAAA" } };

  it("several pictures keep their places among the text", () => {
    const { parts } = message({ text: "a" }, picture, { text: "b" }, { text: "c" }, picture);
    expect(parts.map(({ kind }) => kind.case)).toEqual(["text", "image", "text", "image"]);
  });

  it("trap 83: drafts of pictures are left out, and so is what is no picture", () => {
    const draft = { ...picture, thought: true };
    const sound = { inlineData: { mimeType: "audio/pcm", data: "AAAA" } };
    expect(message(draft, sound, { text: "a" }).parts).toHaveLength(1);
  });

  it("trap 72 and 87: arguments are JSON text, never empty", () => {
    const args = [undefined, {}, null, "", { a: [1] }, '{"b":1}', 5];
    const calls = args.map((value) => ({ functionCall: { name: "f", args: value } }));
    expect(callsOf(...calls).map((call) => call.input.value)).toEqual([
      "{}",
      "{}",
      "{}",
      "{}",
      '{"a":[1]}',
      '{"b":1}',
      "{}",
    ]);
  });

  it("trap 44: IDs that clients cannot take, or that come twice, are replaced by ones of ours", () => {
    const ids = ["a", "a", "b/c", "x".repeat(41), ""];
    const [first, ...rest] = callsOf(...ids.map((id) => ({ functionCall: { id, name: "f" } })));
    expect(first?.id).toBe("a");
    for (const { id } of rest) expect(id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(new Set(rest.map(({ id }) => id)).size).toBe(4);
  });

  it("a call without a name is a failure", () => {
    expect(() => message({ functionCall: {} })).toThrow("The upstream model produced an invalid tool call.");
  });

  it("trap 100 and 102: a signature belongs to its part, and one on an empty text to the text before", () => {
    const signed = (text: string): object => ({ text, thoughtSignature: `s${text}` });
    const read = (...parts: object[]): unknown[] =>
      message(...parts).parts.map(({ kind, signature }) => [kind.case === "text" ? kind.value : kind.case, signature]);
    expect(read(signed("1"), signed("2"))).toEqual([
      ["1", "s1"],
      ["2", "s2"],
    ]);
    expect(read({ text: "1" }, { text: "2" }, signed(""))).toEqual([["12", "s"]]);
    expect(read(signed("1"), { ...picture, thoughtSignature: "sp" }, signed("2"))).toEqual([
      ["1", "s1"],
      ["image", "sp"],
      ["2", "s2"],
    ]);
    const call = { functionCall: { id: "x", name: "f" }, thoughtSignature: "sc" };
    expect(read(call, signed(""))).toEqual([
      ["toolCall", "sc"],
      ["", "s"],
    ]);
    expect(read(signed(""), { text: "1" })).toEqual([["1", "s"]]);
  });

  it("log probabilities go with the text", () => {
    const chosen = { token: "a", logProbability: -0.1 };
    const logprobsResult = { chosenCandidates: [chosen], topCandidates: [{ candidates: [chosen, { token: "b" }] }] };
    const thought = { text: "hm", thought: true };
    const { message: said } = only(toAnswer(answer([thought, { text: "a" }], "STOP", { logprobsResult })));
    expect(said?.parts.map(({ logprobs }) => logprobs)).toMatchObject([
      [],
      [
        {
          token: "a",
          logprob: -0.1,
          top: [
            { token: "a", logprob: -0.1 },
            { token: "b", logprob: 0 },
          ],
        },
      ],
    ]);
  });

  it("several candidates are several choices, by index", () => {
    const candidate = (index: unknown, text: string): object => ({
      index,
      finishReason: "STOP",
      content: { parts: [{ text }] },
    });
    const { choices } = toAnswer({ candidates: [candidate(1, "b"), candidate(undefined, "a")] });
    expect(choices).toMatchObject([{ index: 0 }, { index: 1 }]);
  });
});

describe("usage (trap 81)", () => {
  it.each([undefined, null, {}, { promptTokenCount: "many" }, []])("of %j is none", (metadata) => {
    expect(readUsage(metadata)).toBeUndefined();
  });

  it.each<[string, unknown, Partial<Usage>]>([
    [
      "only a prompt",
      { promptTokenCount: 9 },
      { inputTokens: 9, outputTokens: 0, totalTokens: 9, cachedInputTokens: 0 },
    ],
    [
      "thoughts, tools and cache",
      {
        promptTokenCount: 9,
        toolUsePromptTokenCount: 5,
        cachedContentTokenCount: 4,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 2,
      },
      { inputTokens: 14, outputTokens: 5, totalTokens: 19, cachedInputTokens: 4, reasoningOutputTokens: 2 },
    ],
    [
      "modalities",
      {
        promptTokenCount: 9,
        promptTokensDetails: [
          { modality: "IMAGE", tokenCount: 3 },
          { modality: "AUDIO", tokenCount: 2 },
        ],
        cachedContentTokenCount: 4,
        cacheTokensDetails: [
          { modality: "AUDIO", tokenCount: 1 },
          { modality: "IMAGE", tokenCount: 2 },
        ],
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1 }],
      },
      {
        imageInputTokens: 3,
        audioInputTokens: 2,
        imageOutputTokens: 1,
        cachedAudioInputTokens: 1,
        cachedImageInputTokens: 2,
      },
    ],
    [
      "a modality in several entries",
      {
        promptTokenCount: 20,
        promptTokensDetails: [
          { modality: "AUDIO", tokenCount: 1 },
          { modality: "TEXT", tokenCount: 4 },
          { modality: "AUDIO", tokenCount: 15 },
        ],
        candidatesTokensDetails: [{ modality: "IMAGE" }, { modality: "IMAGE", tokenCount: 9 }],
      },
      { audioInputTokens: 16, imageOutputTokens: 9 },
    ],
  ])("of %s", (_, metadata, usage) => {
    expect(readUsage(metadata)).toMatchObject(usage);
  });
});
