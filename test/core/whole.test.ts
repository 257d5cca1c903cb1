import { create, equals, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Choice,
  ChoiceSchema,
  type CompletionChunk,
  CompletionChunkSchema,
  CompletionSchema,
  FinishReason,
} from "../../gen/parley/v1/completion_pb.js";
import {
  AudioSchema,
  CitationSchema,
  DocumentUnit,
  MessageSchema,
  PartSchema,
  Role,
  TokenLogprobSchema,
} from "../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../../src/core/answer-builder.ts";
import { ChoiceWriter, deltaChunk, finishChunk } from "../../src/core/chunks.ts";
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

const range = { start: fc.nat(99), end: fc.nat(99) };

const citation = fc
  .record(
    {
      source: fc.oneof(
        fc.record({ case: fc.constant("url" as const), value: fc.webUrl() }),
        fc.record({
          case: fc.constant("document" as const),
          value: fc.record({
            ...range,
            documentIndex: fc.nat(9),
            unit: fc.constantFrom(DocumentUnit.CHARACTERS, DocumentUnit.PAGES, DocumentUnit.BLOCKS),
          }),
        }),
      ),
      title: fc.string(),
      citedText: fc.string(),
      textRange: fc.record(range),
    },
    { requiredKeys: ["source", "title", "citedText"] },
  )
  .map((value) => create(CitationSchema, value));

const probabilities = fc.array(
  fc
    .record({ token: words, logprob: fc.double({ max: 0, noNaN: true, noDefaultInfinity: true }) })
    .map((value) => create(TokenLogprobSchema, value)),
  { minLength: 1, maxLength: 3 },
);

/** What an answer's part can be. */
const kind = fc.oneof(
  fc.record({ case: fc.constant("text" as const), value: fc.string({ maxLength: 12 }) }),
  fc.record({ case: fc.constant("refusal" as const), value: words }),
  fc.record({
    case: fc.constant("reasoning" as const),
    value: fc.oneof(fc.record({ text: fc.string() }), fc.record({ redacted: words })),
  }),
  fc.record({
    case: fc.constant("image" as const),
    value: fc.record({
      source: fc.record({ case: fc.constant("data" as const), value: bytes }),
      mediaType: fc.constantFrom("image/png", "image/jpeg"),
    }),
  }),
  fc.record({
    case: fc.constant("audio" as const),
    value: fc.record({
      source: fc.record({ case: fc.constant("data" as const), value: bytes }),
      id: words,
      transcript: fc.string(),
      mediaType: fc.constant("audio/wav"),
    }),
  }),
  fc.record({
    case: fc.constant("toolCall" as const),
    value: fc.record({
      id: words,
      name: words,
      input: fc.oneof(
        fc.record({ case: fc.constant("argumentsJson" as const), value: fc.json() }),
        fc.record({ case: fc.constant("customInput" as const), value: fc.string() }),
      ),
    }),
  }),
  fc.record({
    case: fc.constant("native" as const),
    value: fc.record({ dialect: fc.constantFrom("anthropic", "gemini", "openai"), json: fc.json() }),
  }),
);

const part = fc
  .record(
    {
      kind,
      signature: fc.oneof(fc.constant(""), words),
      citations: fc.array(citation, { maxLength: 2 }),
      logprobs: probabilities,
    },
    { requiredKeys: ["kind", "signature", "citations"] },
  )
  .map(({ logprobs: probable, ...value }) => {
    // Probabilities belong to a delta.
    const hasDelta = (value.kind.case === "text" || value.kind.case === "refusal") && value.kind.value !== "";
    return create(PartSchema, { ...value, ...(hasDelta && probable !== undefined && { logprobs: probable }) });
  });

const choice = fc
  .record({
    parts: fc.array(part, { maxLength: 6 }),
    finishReason: fc.constantFrom(
      FinishReason.STOP,
      FinishReason.LENGTH,
      FinishReason.TOOL_CALLS,
      FinishReason.CONTENT_FILTER,
    ),
    nativeFinishReason: fc.constantFrom("stop", "MAX_TOKENS", "end_turn", ""),
    stopSequence: fc.constantFrom("", "END"),
    providerDetailsJson: fc.constantFrom({}, { "gemini.safety_ratings": "[]" }),
  })
  .map(({ parts, ...ending }) =>
    create(ChoiceSchema, { ...ending, message: create(MessageSchema, { role: Role.ASSISTANT, parts }) }),
  );

const usage = fc
  .record(
    {
      inputTokens: count,
      outputTokens: count,
      totalTokens: count,
      cachedInputTokens: count,
      reasoningOutputTokens: count,
    },
    { requiredKeys: ["inputTokens", "outputTokens", "totalTokens"] },
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
    const cutUp = (chunks: readonly CompletionChunk[], size: number): CompletionChunk[] =>
      chunks.flatMap((chunk) => {
        const { event } = chunk;
        if (event.case !== "partDelta" || typeof event.value.content.value !== "string") return [chunk];
        const { choiceIndex, partIndex, content, logprobs } = event.value;
        return Array.from({ length: Math.ceil(content.value.length / size) }, (_, at) => {
          const piece = { case: content.case, value: content.value.slice(at * size, (at + 1) * size) };
          return deltaChunk({ choiceIndex, partIndex }, piece, at === 0 ? logprobs : []);
        });
      });
    fc.assert(
      fc.property(answer, fc.integer({ min: 1, max: 9 }), (given, size) => {
        expectSame(fold(cutUp(toChunks(given), size)), given);
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
    const { choices } = fold([finishChunk(0, { reason: FinishReason.STOP, native })]);
    expect(choices[0]!.nativeFinishReason).toBe(expected);
  });
});

describe("chunks put together", () => {
  const write = (run: (writer: ChoiceWriter, out: CompletionChunk[]) => void): CompletionChunk[] => {
    const out: CompletionChunk[] = [];
    run(new ChoiceWriter(0), out);
    return out;
  };
  const piece = (data: string, more: { transcript?: string; expireTime?: Timestamp } = {}) =>
    create(AudioSchema, { id: "audio_1", source: { case: "data", value: Buffer.from(data) }, ...more });
  const speech = (): CompletionChunk[] =>
    write((writer, out) => {
      writer.audio(piece("one", { transcript: "Hel" }), out);
      writer.audio(piece("two", { transcript: "lo", expireTime: timestampFromMs(9000) }), out);
    });

  it("join speech, with its transcript and its end", () => {
    const { choices } = fold(speech());
    expect(choices[0]!.message!.parts).toMatchObject([
      {
        kind: {
          value: {
            id: "audio_1",
            source: { case: "data", value: Buffer.from("onetwo") },
            transcript: "Hello",
            expireTime: { seconds: 9n },
          },
        },
      },
    ]);
  });

  it("stay as they were", () => {
    const chunks = [
      ...speech(),
      ...write((writer, out) => {
        writer.text({ case: "reasoning", value: "h" }, out);
        writer.text({ case: "reasoning", value: "m" }, out);
        writer.sign("reasoning", "s", out);
      }),
    ];
    const before = chunks.map((chunk) => toJson(CompletionChunkSchema, chunk));
    fold(chunks);
    expect(chunks.map((chunk) => toJson(CompletionChunkSchema, chunk))).toEqual(before);
  });

  it("are one part until another kind or a signature comes", () => {
    const { choices } = fold(
      write((writer, out) => {
        writer.text({ case: "reasoning", value: "h" }, out);
        writer.text({ case: "reasoning", value: "m" }, out);
        writer.sign("reasoning", "s", out);
        writer.text({ case: "reasoning", value: "more" }, out);
        writer.text({ case: "text", value: "Hi" }, out);
      }),
    );
    expect(choices[0]!.message!.parts).toMatchObject([
      { kind: { value: { text: "hm" } }, signature: "s" },
      { kind: { value: { text: "more" } }, signature: "" },
      { kind: { case: "text", value: "Hi" } },
    ]);
  });

  it("are no more parts than a message may have", () => {
    const kinds = ["text", "reasoning"] as const;
    const say = (parts: number) =>
      write((writer, out) => {
        for (let at = 0; at < parts; at++) writer.text({ case: kinds[at % 2]!, value: "x" }, out);
      });
    expect(fold(say(4000)).choices[0]!.message!.parts).toHaveLength(4000);
    expect(() => say(4001)).toThrow("more than 4000 parts");
  });

  it("are not too complex for what parses their arguments and native blocks", () => {
    const say = (pieces: readonly string[], native = "") =>
      write((writer, out) => {
        const call = writer.beginCall({ id: "c", name: "f" }, "", out);
        for (const json of pieces) writer.arguments(call, json, out);
        writer.endCall(call, out);
        if (native !== "") writer.native({ dialect: "anthropic", json: native }, out);
      });
    const half = "[{},".repeat(33_333);
    expect(() => say([half, half])).not.toThrow();
    expect(() => say([half, half, ",,,"])).toThrow("too complex");
    expect(() => say([half], `[[[${half}]]]`)).toThrow("too complex");
  });

  it("join the arguments of each tool call, whatever comes between them", () => {
    const { choices } = fold(
      write((writer, out) => {
        const first = writer.beginCall({ id: "c0", name: "f" }, "", out);
        const second = writer.beginCall({ id: "c1", name: "g", custom: true }, "", out);
        writer.arguments(first, '{"a"', out);
        writer.arguments(second, "any text", out);
        writer.arguments(first, ":1}", out);
        writer.finish({ reason: FinishReason.TOOL_CALLS, native: "tool_calls" }, out);
      }),
    );
    expect(choices[0]!.message!.parts.map(({ kind: { value } }) => value)).toMatchObject([
      { id: "c0", name: "f", input: { case: "argumentsJson", value: '{"a":1}' } },
      { id: "c1", name: "g", input: { case: "customInput", value: "any text" } },
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
