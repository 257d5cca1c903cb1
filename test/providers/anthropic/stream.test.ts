import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { AnswerStream, toAnswerChunks } from "../../../src/providers/anthropic/response.ts";
import { SseParser } from "../../../src/providers/wire/sse.ts";
import { checkGrammar } from "../grammar.ts";
import { type Said, summarize } from "./answers.ts";
import { readFixture } from "./fixtures.ts";
import { anyMessage, toSse } from "./messages.ts";

/** What a reader says to these bytes, given in pieces, and the failure it ends with. */
function readPieces(pieces: Iterable<Uint8Array>): { chunks: CompletionChunk[]; failure: unknown; complete: boolean } {
  const parser = new SseParser();
  const reader = new AnswerStream();
  const chunks: CompletionChunk[] = [];
  const readAll = (events: ReturnType<SseParser["push"]>): void => {
    for (const event of events) if (!reader.complete) reader.read(event, chunks);
  };
  let failure: unknown;
  try {
    for (const piece of pieces) readAll(parser.push(piece));
    readAll(parser.end());
    if (!reader.complete) reader.end(chunks);
  } catch (reason) {
    failure = reason;
  }
  return { chunks, failure, complete: reader.complete };
}

function* split(text: string, size: number): Generator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const readText = (text: string): ReturnType<typeof readPieces> => readPieces(split(text, Infinity));

const events = (...list: object[]): string => list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const START = { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } };
const open = (index: number, content_block: object): object => ({ type: "content_block_start", index, content_block });
const add = (index: number, delta: object): object => ({ type: "content_block_delta", index, delta });
const close = (index: number): object => ({ type: "content_block_stop", index });
const ended = (stop_reason: string): object => ({
  type: "message_delta",
  delta: { stop_reason },
  usage: { output_tokens: 9 },
});
const STOP = { type: "message_stop" };
const sayHi = [open(0, { type: "text", text: "" }), add(0, { type: "text_delta", text: "hi" })];

describe.each([
  ["whole", Infinity],
  ["in 7-byte pieces", 7],
  ["in 1-byte pieces (traps 1 and 2)", 1],
])("a stream that arrives %s", (_, size) => {
  const read = (number: string): ReturnType<typeof readPieces> =>
    readPieces(split(readFixture(number, "upstream-response.sse"), size));

  it.each<[string, string, Said]>([
    [
      "02",
      "text (traps 5 and 71)",
      {
        parts: ["text"],
        text: "こんにちは 👋🏽 world",
        finish: [FinishReason.STOP, "end_turn"],
        usage: {
          inputTokens: 14,
          outputTokens: 11,
          totalTokens: 25,
          unknownUnits: [],
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          reasoningOutputTokens: 0,
        },
      },
    ],
    [
      "04",
      "parallel calls (traps 70, 72, 73 and 74)",
      {
        parts: ["text", "toolCall", "toolCall", "toolCall"],
        text: "Checking.",
        calls: [
          ["toolu_A", "get_weather", '{"city": "Paris"}'],
          ["toolu_B", "get_weather", '{"city": "Rome"}'],
          ["toolu_C", "get_time", "{}"],
        ],
        finish: [FinishReason.TOOL_CALLS, "tool_use"],
        usage: {
          inputTokens: 410,
          outputTokens: 97,
          totalTokens: 507,
          unknownUnits: [],
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          reasoningOutputTokens: 0,
        },
      },
    ],
    [
      "07",
      "reasoning (trap 102)",
      {
        parts: ["reasoning", "reasoning", "text"],
        text: "4",
        reasoning: "2+2 is 4.",
        blocks: [{ text: "2+2 is 4.", signature: "EqQBsigFixture==" }, { redacted: "EmwKAhredactedFixture==" }],
        finish: [FinishReason.STOP, "end_turn"],
        usage: {
          inputTokens: 40,
          outputTokens: 31,
          totalTokens: 71,
          unknownUnits: [],
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          reasoningOutputTokens: 24,
        },
      },
    ],
    [
      "09",
      "a refusal (trap 35)",
      {
        parts: ["text", "refusal"],
        text: "I can",
        refusal: "This request may enable cyber harm.",
        finish: [FinishReason.CONTENT_FILTER, "refusal"],
        usage: {
          inputTokens: 20,
          outputTokens: 4,
          totalTokens: 24,
          unknownUnits: [],
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          reasoningOutputTokens: 0,
        },
      },
    ],
    [
      "17",
      "interleaved reasoning (traps 94 and 95)",
      {
        parts: ["reasoning", "text", "reasoning", "toolCall"],
        text: "Looking it up. ",
        reasoning: "Need data.",
        blocks: [{ text: "Need data.", signature: "EqQBsigA==" }, { signature: "EqQBsigB==" }],
        calls: [["toolu_01Paris", "get_weather", '{"city": "Paris"}']],
        finish: [FinishReason.TOOL_CALLS, "tool_use"],
        usage: {
          inputTokens: 380,
          outputTokens: 60,
          totalTokens: 440,
          unknownUnits: [],
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          reasoningOutputTokens: 25,
        },
      },
    ],
  ])("fixture %s: is read as %s", (number, _what, expected) => {
    const { chunks, failure, complete } = read(number);
    expect([failure, complete]).toEqual([undefined, true]);
    expect(summarize(chunks)).toEqual(expected);
  });

  it.each<[string, string, Said, Partial<Failure>]>([
    [
      "14",
      "an error as its first event (trap 18)",
      {},
      {
        code: "upstream_unavailable",
        detail: "upstream_overloaded",
        message: "The upstream provider is temporarily overloaded.",
      },
    ],
    [
      "15",
      "an error in its middle (trap 19)",
      { parts: ["text"], text: "Once upon" },
      {
        code: "upstream_unavailable",
        detail: "upstream_overloaded",
        message: "The upstream provider failed while generating the response.",
      },
    ],
    [
      "16",
      "an early end (traps 9 and 20)",
      { parts: ["text"], text: "Once upon" },
      { code: "upstream_protocol", message: "The upstream provider closed the stream before it was complete." },
    ],
  ])("fixture %s: fails at %s", (number, _what, said, failed) => {
    const { chunks, failure, complete } = read(number);
    expect(summarize(chunks)).toEqual(said);
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject(failed);
    expect(complete).toBe(false);
  });
});

describe("a stream", () => {
  it("gives the same chunks however it is split", () => {
    fc.assert(
      fc.property(anyMessage, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (message, sizes) => {
        const bytes = Buffer.from(toSse(message));
        const pieces: Uint8Array[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length]!;
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        expect(readPieces(pieces)).toEqual(readPieces([bytes]));
      }),
      { numRuns: 50 },
    );
  });

  it("says what the whole answer says", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const { chunks, failure } = readText(toSse(message));
        expect(failure).toBeUndefined();
        expect(summarize(chunks)).toEqual(summarize(toAnswerChunks(message)));
      }),
      { numRuns: 100 },
    );
  });

  it("follows the grammar: no empty chunk, one finish, and the usage behind it (traps 71, 82 and 89)", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const { chunks } = readText(toSse(message));
        const kinds = chunks.map(({ event }) => event.case);
        expect(() => checkGrammar(chunks)).not.toThrow();
        expect(kinds.filter((kind) => !kind?.startsWith("part"))).toEqual(["choiceFinish", "usage"]);
        expect(kinds.slice(-2)).toEqual(["choiceFinish", "usage"]);
        const contents = chunks.map(({ event }) =>
          event.case === "partDelta" ? event.value.content.value : event.case,
        );
        expect(contents).not.toContain("");
        expect(contents).not.toContain(undefined);
      }),
      { numRuns: 50 },
    );
  });

  it("ignores events and deltas of unknown kinds", () => {
    const strange = [
      { type: "novelty" },
      [1],
      3,
      null,
      { type: "content_block_start" },
      add(7, { type: "text_novelty", text: "x" }),
      add(7, { type: "input_json_delta", partial_json: "{" }),
      add(7, { type: "signature_delta", signature: "s" }),
      close(9),
    ] as object[];
    const { chunks, failure } = readText(events(START, ...strange, ...sayHi, close(0), ended("end_turn"), STOP));
    expect(failure).toBeUndefined();
    expect(summarize(chunks)).toMatchObject({ text: "hi", finish: [FinishReason.STOP, "end_turn"] });
  });

  it("is complete at its end event and reads nothing behind it (trap 10)", () => {
    const { chunks, failure } = readText(
      `${events(START, ...sayHi, ended("end_turn"), STOP, ...sayHi)}data: [DONE]\n\n`,
    );
    expect([failure, summarize(chunks).text]).toEqual([undefined, "hi"]);
  });

  it("finishes without its end event when it has given its reason", () => {
    for (const tail of ["", "data: [DONE]\n\n", 'data: {"type":"mess']) {
      const { chunks, failure } = readText(events(START, ...sayHi, ended("end_turn")) + tail);
      expect(failure).toBeUndefined();
      expect(summarize(chunks).finish).toEqual([FinishReason.STOP, "end_turn"]);
    }
  });

  it("is nearly at its end when it has given its reason", () => {
    const reader = new AnswerStream();
    const finishedAfter = (event: object): boolean => {
      reader.read({ event: "", data: JSON.stringify(event) }, []);
      return reader.finished;
    };
    expect([START, ...sayHi, ended("end_turn")].map(finishedAfter)).toEqual([false, false, false, true]);
  });

  it("does not finish without a reason (trap 20)", () => {
    const { failure } = readText(events(START, ...sayHi, close(0), STOP));
    expect(failure).toMatchObject({ code: "upstream_protocol" });
  });

  it("fails at an event that is no JSON when others follow", () => {
    const { chunks, failure } = readText(`data: {"type":\n\n${events(START, ...sayHi)}`);
    expect(chunks).toEqual([]);
    expect(failure).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider's answer could not be read.",
    });
  });

  it("takes the last cumulative usage, and null for unchanged (trap 81)", () => {
    const usages = [
      { output_tokens: 5 },
      { input_tokens: null, cache_read_input_tokens: 7, output_tokens: 6 },
      { output_tokens: "9" },
    ];
    const deltas = usages.map((usage) => ({ type: "message_delta", delta: {}, usage }));
    const { chunks } = readText(
      events(START, ...sayHi, ...deltas, { type: "message_delta", delta: { stop_reason: "end_turn" } }, STOP),
    );
    expect(summarize(chunks).usage).toMatchObject({
      inputTokens: 8,
      cachedInputTokens: 7,
      outputTokens: 9,
      totalTokens: 17,
      unknownUnits: [],
    });
  });

  it("does not take the placeholder at its start for a count of its answer", () => {
    const uncounted = { type: "message_delta", delta: { stop_reason: "end_turn" } };
    const { chunks } = readText(events(START, ...sayHi, close(0), uncounted, STOP));
    expect(summarize(chunks).usage).toMatchObject({ inputTokens: 1, outputTokens: 0 });
  });

  it.each([
    ["its beginning", [], true],
    ["an empty text", [open(0, { type: "text", text: "" })], true],
    ["reasoning that is not shown", [open(0, { type: "thinking", thinking: "", signature: "" })], false],
    ["a search", [open(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} })], false],
    ["content", sayHi, false],
  ])("may be billed once the model has begun: a failure after %s", (_, before, refused) => {
    const error = { type: "error", error: { type: "api_error", message: "Internal server error" } };
    const { failure } = readText(events(START, ...before, error));
    expect(failure).toMatchObject({ code: "upstream_unavailable", transient: true, refused });
  });

  it("says no usage when there was none", () => {
    expect(
      summarize(readText(events(...sayHi, { ...ended("end_turn"), usage: null }, STOP)).chunks),
    ).not.toHaveProperty("usage");
  });

  it("trap 72: gives arguments that came with the start of a call, or none, as JSON", () => {
    const call = (index: number, input: unknown): object =>
      open(index, { type: "tool_use", id: `c${index}`, name: "f", input });
    const calls = [call(0, { a: 1 }), close(0), call(1, {}), close(1), call(2, undefined)];
    expect(summarize(readText(events(START, ...calls, ended("tool_use"), STOP)).chunks).calls).toEqual([
      ["c0", "f", '{"a":1}'],
      ["c1", "f", "{}"],
      ["c2", "f", "{}"],
    ]);
  });

  it("trap 77: passes cut arguments on as they are, and calls the answer cut", () => {
    const cut = [
      open(0, { type: "tool_use", id: "c", name: "f", input: {} }),
      add(0, { type: "input_json_delta", partial_json: '{"a' }),
      close(0),
    ];
    expect(summarize(readText(events(START, ...cut, ended("max_tokens"), STOP)).chunks)).toMatchObject({
      calls: [["c", "f", '{"a']],
      finish: [FinishReason.LENGTH, "max_tokens"],
    });
  });

  it("mints an ID for a call without one", () => {
    const { chunks } = readText(events(START, open(0, { type: "tool_use", name: "f" }), ended("tool_use"), STOP));
    expect(summarize(chunks).calls).toMatchObject([
      [expect.stringMatching(/^call_[0-9a-f]{32}$/) as string, "f", "{}"],
    ]);
  });
});
