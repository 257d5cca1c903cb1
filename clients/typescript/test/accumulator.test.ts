import assert from "node:assert/strict";
import { test } from "node:test";
import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  CompletionAccumulator,
  CompletionChunkSchema,
  CompletionSchema,
  FinishReason,
  type PartDeltaSchema,
  PartSchema,
  Role,
  textDelta,
  type ToolCallSchema,
} from "@parley/client";

type Event = NonNullable<MessageInitShape<typeof CompletionChunkSchema>["event"]>;
type Content = NonNullable<MessageInitShape<typeof PartDeltaSchema>["content"]>;
type Part = MessageInitShape<typeof PartSchema>;
type Kind = NonNullable<Part["kind"]>;
type Input = NonNullable<MessageInitShape<typeof ToolCallSchema>["input"]>;

const CITATION = { source: { case: "url", value: "https://example.com" }, textRange: { start: 0, end: 2 } } as const;
const FINISH = {
  finishReason: FinishReason.STOP,
  nativeFinishReason: "end",
  stopSequence: ".",
  providerDetailsJson: { "gemini.safety_ratings": "[]" },
};

const bytes = (...values: number[]) => new Uint8Array(values);

const begin = (partIndex: number, kind: Kind, choiceIndex = 0): Event => ({
  case: "partStart",
  value: { choiceIndex, partIndex, part: { kind } },
});

const add = (partIndex: number, content: Content, choiceIndex = 0): Event => ({
  case: "partDelta",
  value: { choiceIndex, partIndex, content },
});

const call = (id: string, name: string, input: Input = { case: undefined }): Part => ({
  kind: { case: "toolCall", value: { id, name, input } },
});

function fold(events: readonly Event[]) {
  const accumulator = new CompletionAccumulator();
  const chunks = events.map((event) => create(CompletionChunkSchema, { event }));
  const before = chunks.map((chunk) => clone(CompletionChunkSchema, chunk));
  for (const chunk of chunks) accumulator.add(chunk);
  assert.deepEqual(chunks, before);
  return accumulator;
}

test("joins all kinds of parts and leaves the chunks as they are", () => {
  const { completion } = fold([
    { case: "start", value: { id: "chatcmpl-1", model: "m", createTime: { seconds: 1n } } },
    begin(0, { case: "reasoning", value: {} }),
    add(0, { case: "reasoning", value: "hm" }),
    add(0, { case: "reasoning", value: "m" }),
    { case: "partFinish", value: { partIndex: 0, signature: "s", providerDetailsJson: { "d.a": "1" } } },
    begin(1, { case: "text", value: "" }),
    { case: "partDelta", value: { partIndex: 1, content: { case: "text", value: "a" }, logprobs: [{ token: "a" }] } },
    { case: "partDelta", value: { partIndex: 1, content: { case: "text", value: "b" }, logprobs: [{ token: "b" }] } },
    add(1, { case: "citation", value: CITATION }),
    begin(2, { case: "toolCall", value: { id: "1", name: "f" } }),
    begin(3, { case: "toolCall", value: { id: "2", name: "g" } }),
    add(2, { case: "argumentsJson", value: "{" }),
    add(3, { case: "customInput", value: "x = " }),
    add(2, { case: "argumentsJson", value: "}" }),
    add(3, { case: "customInput", value: "1" }),
    begin(4, { case: "image", value: { mediaType: "image/png" } }),
    add(4, { case: "imageData", value: bytes(1, 2) }),
    add(4, { case: "imageData", value: bytes(3) }),
    begin(5, { case: "audio", value: {} }),
    add(5, { case: "audio", value: { source: { case: "data", value: bytes(1) }, mediaType: "audio/wav" } }),
    add(5, { case: "audio", value: { source: { case: "data", value: bytes(2) }, transcript: "la" } }),
    add(5, {
      case: "audio",
      value: {
        source: { case: "data", value: bytes(3) },
        transcript: "la",
        id: "audio_1",
        expireTime: { seconds: 2n },
      },
    }),
    begin(6, { case: "refusal", value: "" }),
    add(6, { case: "refusal", value: "No." }),
    begin(7, { case: "native", value: { dialect: "openai" } }),
    add(7, { case: "nativeJson", value: "{" }),
    add(7, { case: "nativeJson", value: "}" }),
    begin(8, { case: "toolCall", value: { id: "3", name: "without_arguments" } }),
    { case: "partFinish", value: { partIndex: 8 } },
    { case: "choiceFinish", value: FINISH },
    { case: "usage", value: { totalTokens: 3 } },
    { case: "report", value: { costMicroUsd: 1n } },
  ]);
  assertEqual(completion, {
    id: "chatcmpl-1",
    model: "m",
    createTime: { seconds: 1n },
    choices: [
      {
        ...FINISH,
        message: {
          role: Role.ASSISTANT,
          parts: [
            {
              kind: { case: "reasoning", value: { text: "hmm" } },
              signature: "s",
              providerDetailsJson: { "d.a": "1" },
            },
            {
              kind: { case: "text", value: "ab" },
              citations: [CITATION],
              logprobs: [{ token: "a" }, { token: "b" }],
            },
            call("1", "f", { case: "argumentsJson", value: "{}" }),
            call("2", "g", { case: "customInput", value: "x = 1" }),
            {
              kind: {
                case: "image",
                value: { mediaType: "image/png", source: { case: "data", value: bytes(1, 2, 3) } },
              },
            },
            {
              kind: {
                case: "audio",
                value: {
                  mediaType: "audio/wav",
                  source: { case: "data", value: bytes(1, 2, 3) },
                  transcript: "lala",
                  id: "audio_1",
                  expireTime: { seconds: 2n },
                },
              },
            },
            { kind: { case: "refusal", value: "No." } },
            { kind: { case: "native", value: { dialect: "openai", json: "{}" } } },
            call("3", "without_arguments"),
          ],
        },
      },
    ],
    usage: { totalTokens: 3 },
    report: { costMicroUsd: 1n },
  });
});

test("orders choices by index and skips content that does not fit", () => {
  const accumulator = fold([
    begin(0, { case: "text", value: "" }, 1),
    begin(0, { case: "text", value: "" }, 0),
    add(0, { case: "text", value: "second" }, 1),
    add(0, { case: "text", value: "first" }, 0),
    add(0, { case: "argumentsJson", value: "{}" }, 0),
    add(7, { case: "text", value: "nowhere" }, 0),
    { case: undefined },
  ]);
  const part = (value: string) => ({ role: Role.ASSISTANT, parts: [{ kind: { case: "text", value } as const }] });
  assert.equal(accumulator.isComplete, false);
  assertEqual(accumulator.completion, { choices: [{ message: part("first") }, { index: 1, message: part("second") }] });
});

test("keeps a part of an unknown kind as it came, to be sent back", () => {
  const part = create(PartSchema);
  part.$unknown = [{ no: 99, wireType: 0, data: new Uint8Array([1]) }];
  const { completion } = fold([
    { case: "partStart", value: { part } },
    { case: "partDelta", value: {} },
    { case: "partFinish", value: {} },
  ]);
  assert.deepEqual(completion.choices[0]?.message?.parts, [part]);
});

test("the completion so far can be read between pieces", () => {
  const accumulator = fold([begin(0, { case: "image", value: { mediaType: "image/png" } })]);
  const piece = create(CompletionChunkSchema, { event: add(0, { case: "imageData", value: bytes(2) }) });
  for (const expected of [bytes(2), bytes(2, 2)]) {
    accumulator.add(piece);
    const kind = accumulator.completion.choices[0]!.message!.parts[0]!.kind;
    assert.deepEqual(kind.case === "image" && kind.value.source.value, expected);
  }
});

test("textDelta is the text that a chunk adds to the first choice", () => {
  const texts = [
    begin(0, { case: "text", value: "" }),
    add(0, { case: "text", value: "b" }),
    add(0, { case: "text", value: "c" }, 1),
    add(0, { case: "reasoning", value: "d" }),
    { case: "usage", value: {} } as const,
  ].map((event) => textDelta(create(CompletionChunkSchema, { event })));
  assert.deepEqual(texts, ["", "b", "", "", ""]);
});

function assertEqual(completion: unknown, expected: MessageInitShape<typeof CompletionSchema>): void {
  assert.deepEqual(completion, create(CompletionSchema, expected));
}
