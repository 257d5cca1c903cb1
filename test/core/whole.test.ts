import { create, equals, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Choice,
  ChoiceSchema,
  type CompletionChunk,
  CompletionChunkSchema,
  CompletionSchema,
  FinishReason,
  LogprobsSchema,
  UsageSchema,
} from "../../gen/parley/v1/completion_pb.js";
import {
  AudioSchema,
  ContentPartSchema,
  ImageSchema,
  MessageSchema,
  ReasoningBlockSchema,
  Role,
} from "../../gen/parley/v1/message_pb.js";
import { AnswerBuilder, deltaChunk, finishChunk } from "../../src/core/chunks.ts";
import type { Answer } from "../../src/core/provider.ts";
import { toChunks } from "../support/to-chunks.ts";

function fold(chunks: readonly CompletionChunk[]): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  return builder.build();
}

/** Answers as one message, to compare and to show. */
const asMessage = ({ choices, usage }: Answer) =>
  create(CompletionSchema, { choices, ...(usage !== undefined && { usage }) });

function expectSame(one: Answer, other: Answer): void {
  // The JSON is for the eye: it shows a difference better.
  expect(toJson(CompletionSchema, asMessage(one))).toEqual(toJson(CompletionSchema, asMessage(other)));
  expect(equals(CompletionSchema, asMessage(one), asMessage(other))).toBe(true);
}

const words = fc.string({ minLength: 1, unit: "grapheme", maxLength: 12 });
const count = fc.nat(2_000_000);
const bytes = fc.uint8Array({ maxLength: 20 });

const textPart = words.map((value) => create(ContentPartSchema, { content: { case: "text", value } }));
const imagePart = fc
  .record({ data: bytes, mediaType: fc.constantFrom("image/png", "image/jpeg"), signature: fc.string() })
  .map(({ data, mediaType, signature }) =>
    create(ContentPartSchema, {
      content: {
        case: "image",
        value: create(ImageSchema, { source: { case: "data", value: data }, mediaType, signature }),
      },
    }),
  );
const audioPart = fc
  .record({ data: bytes, id: words, transcript: fc.string(), format: fc.constant("wav") })
  .map((value) => create(ContentPartSchema, { content: { case: "audio", value: create(AudioSchema, value) } }));

/** Parts that a model can say: text, or speech, after itself is one part. */
const content = fc
  .array(fc.oneof(textPart, imagePart, audioPart), { maxLength: 5 })
  .map((parts) =>
    parts.filter(({ content: { case: kind } }, index) => kind === "image" || kind !== parts[index - 1]?.content.case),
  );

const signedBlock = fc.oneof(
  fc.record({ text: fc.string(), signature: words, textOffset: fc.nat(9), toolCallOffset: fc.nat(3) }),
  fc.record({ redacted: words }),
);
/** Blocks with their state, and at the end, perhaps, reasoning that has none. */
const reasoning = fc
  .tuple(fc.array(signedBlock, { maxLength: 3 }), fc.option(fc.record({ text: words })))
  .map(([signed, plain]) =>
    [...signed, ...(plain === null ? [] : [plain])].map((block) => create(ReasoningBlockSchema, block)),
  );

const toolCall = fc.record({
  id: words,
  name: words,
  arguments: fc.json(),
  signature: fc.oneof(fc.constant(""), words),
  custom: fc.boolean(),
});

const annotation = fc.record({ url: fc.webUrl(), title: fc.string(), startIndex: fc.nat(99), endIndex: fc.nat(99) });
const tokens = fc.array(
  fc.record({ token: words, logprob: fc.double({ max: 0, noNaN: true, noDefaultInfinity: true }) }),
  {
    minLength: 1,
    maxLength: 3,
  },
);

const choice = fc
  .record(
    {
      content,
      reasoning,
      toolCalls: fc.array(toolCall, { maxLength: 3 }),
      refusal: words,
      signature: words,
      annotations: fc.array(annotation, { maxLength: 2 }),
      finishReason: fc.constantFrom(
        FinishReason.STOP,
        FinishReason.LENGTH,
        FinishReason.TOOL_CALLS,
        FinishReason.CONTENT_FILTER,
      ),
      nativeFinishReason: fc.constantFrom("stop", "MAX_TOKENS", "end_turn", ""),
      tokens,
    },
    { requiredKeys: ["finishReason", "nativeFinishReason"] },
  )
  .map(({ finishReason, nativeFinishReason, tokens: probable, ...message }) => {
    const out = create(ChoiceSchema, {
      finishReason,
      nativeFinishReason,
      message: create(MessageSchema, { role: Role.ASSISTANT, ...message }),
    });
    // Probabilities belong to something that was said.
    if (probable !== undefined && (message.content ?? []).length > 0) {
      out.logprobs = create(LogprobsSchema, { content: probable });
    }
    return out;
  });

const usage = fc
  .record(
    { promptTokens: count, completionTokens: count, totalTokens: count, cachedTokens: count, reasoningTokens: count },
    { requiredKeys: ["promptTokens", "completionTokens", "totalTokens"] },
  )
  .map((counts) => create(UsageSchema, counts));

const answer: fc.Arbitrary<Answer> = fc
  .record({ choices: fc.array(choice, { minLength: 1, maxLength: 3 }), usage: fc.option(usage, { nil: undefined }) })
  .map(({ choices, usage: counted }) => ({
    choices: choices.map((each, index): Choice => Object.assign(each, { index })),
    usage: counted,
  }));

describe("a whole answer", () => {
  it("said in chunks and put together again is the same answer", () => {
    fc.assert(
      fc.property(answer, (given) => expectSame(fold(toChunks(given)), given)),
      { numRuns: 500 },
    );
  });

  it("stays as it is while it is said in chunks", () => {
    fc.assert(
      fc.property(answer, (given) => {
        const before = toJson(CompletionSchema, asMessage(given));
        fold(toChunks(given));
        expect(toJson(CompletionSchema, asMessage(given))).toEqual(before);
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on how the chunks of its choices are interleaved", () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(99)), (given, order) => {
        const queues = given.choices.map((each) => toChunks({ choices: [each], usage: undefined }));
        const mixed: CompletionChunk[] = [];
        for (let turn = 0; queues.some((queue) => queue.length > 0); turn++) {
          const open = queues.filter((queue) => queue.length > 0);
          mixed.push(open[(order[turn % order.length] ?? 0) % open.length]!.shift()!);
        }
        expectSame(fold(mixed), { choices: given.choices, usage: undefined });
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on how its text is cut, wherever that is", () => {
    const text = fc.array(fc.tuple(fc.constantFrom("text", "reasoning", "refusal"), words), {
      minLength: 1,
      maxLength: 6,
    });
    const cutUp = (chunks: readonly CompletionChunk[], size: number): CompletionChunk[] =>
      chunks.flatMap((chunk) => {
        const { event } = chunk;
        const value = event.case === "delta" ? event.value.content.value : undefined;
        if (event.case !== "delta" || typeof value !== "string") return [chunk];
        return Array.from({ length: Math.ceil(value.length / size) }, (_, at) =>
          deltaChunk(0, {
            case: event.value.content.case,
            value: value.slice(at * size, (at + 1) * size),
          } as typeof event.value.content),
        );
      });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), (pieces, size) => {
        const chunks = pieces.map(([kind, value]) => deltaChunk(0, { case: kind, value }));
        chunks.push(finishChunk(0, FinishReason.STOP, "stop"));
        expectSame(fold(cutUp(chunks, size)), fold(chunks));
      }),
      { numRuns: 300 },
    );
  });
});

describe("the provider's word for an end", () => {
  it.each([
    ["end_turn", "end_turn"],
    ["MAX_TOKENS", "MAX_TOKENS"],
    ["sk-live-1234", ""],
    ["because of this:", ""],
    ["a".repeat(65), ""],
  ])("is passed on when it is a word: %s", (native, expected) => {
    const { choices } = fold([finishChunk(0, FinishReason.STOP, native)]);
    expect(choices[0]!.nativeFinishReason).toBe(expected);
  });
});

describe("chunks put together", () => {
  const audio = (data: string, more: { transcript?: string; expiresAt?: bigint } = {}): CompletionChunk =>
    deltaChunk(0, { case: "audio", value: create(AudioSchema, { id: "audio_1", data: Buffer.from(data), ...more }) });

  it("join speech, with its transcript and its end", () => {
    const { choices } = fold([audio("one", { transcript: "Hel" }), audio("two", { transcript: "lo", expiresAt: 9n })]);
    expect(choices[0]!.message!.content[0]!.content.value).toMatchObject({
      id: "audio_1",
      data: Buffer.from("onetwo"),
      transcript: "Hello",
      expiresAt: 9n,
    });
  });

  it("stay as they were", () => {
    const chunks = [
      audio("one"),
      audio("two"),
      deltaChunk(0, { case: "reasoningBlock", value: create(ReasoningBlockSchema, { text: "hm" }) }),
      deltaChunk(0, { case: "reasoning", value: "m" }),
    ];
    const before = chunks.map((chunk) => toJson(CompletionChunkSchema, chunk));
    fold(chunks);
    expect(chunks.map((chunk) => toJson(CompletionChunkSchema, chunk))).toEqual(before);
  });

  it("replace streamed reasoning by the block that repeats it", () => {
    const { choices } = fold([
      deltaChunk(0, { case: "reasoning", value: "h" }),
      deltaChunk(0, { case: "reasoning", value: "m" }),
      deltaChunk(0, { case: "reasoningBlock", value: create(ReasoningBlockSchema, { text: "hm", signature: "s" }) }),
      deltaChunk(0, { case: "reasoning", value: "more" }),
    ]);
    expect(choices[0]!.message!.reasoning).toMatchObject([{ text: "hm", signature: "s" }, { text: "more" }]);
  });

  it("join the pieces of each tool call, whatever comes between them", () => {
    const piece = (index: number, more: { id?: string; name?: string; arguments?: string }): CompletionChunk =>
      create(CompletionChunkSchema, {
        event: { case: "delta", value: { content: { case: "toolCall", value: { index, ...more } } } },
      });
    const { choices } = fold([
      piece(0, { id: "c0", name: "f" }),
      piece(0, { arguments: '{"a"' }),
      piece(1, { id: "c1", name: "g", arguments: "{}" }),
      piece(0, { arguments: ":1}" }),
    ]);
    expect(choices[0]!.message!.toolCalls).toMatchObject([
      { id: "c0", name: "f", arguments: '{"a":1}' },
      { id: "c1", name: "g", arguments: "{}" },
    ]);
  });

  it("take an end without a reason for an ordinary one", () => {
    const given = {
      choices: [create(ChoiceSchema, { message: create(MessageSchema, { role: Role.ASSISTANT }) })],
      usage: undefined,
    };
    expect(fold(toChunks(given)).choices[0]!.finishReason).toBe(FinishReason.STOP);
  });
});
