import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  FinishReason,
  type PartDelta,
  PartDeltaSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { AudioSchema, CitationSchema, ImageSchema, TokenLogprobSchema } from "../../../gen/parley/v1/message_pb.js";
import { AttemptOutcome, OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import { ChoiceWriter, deltaChunk, finishChunk, toPart } from "../../../src/core/chunks.ts";
import { omission } from "../../../src/core/provider-options.ts";
import { toErrorEvent } from "../../../src/formats/openai-error.ts";
import { ChunkWriter } from "../../../src/formats/openai-chat/stream.ts";
import { anyStream } from "./any-stream.ts";
import { chunksOf, comparable, readEvents, REPORT, type Scenario, scenariosWith, startOf } from "./scenarios.ts";

const nameOf = (path: string): string => path;

function write(chunks: readonly CompletionChunk[], includeUsage = false): string {
  const writer = new ChunkWriter({ includeUsage, nameOf });
  return chunks.map((chunk) => writer.write([chunk])).join("");
}

const streamed = scenariosWith("upstream-response.sse", "expected-openai.sse");

describe("a stream is written as an OpenAI client expects it", () => {
  it("in a dozen scenarios", () => {
    expect(streamed.length).toBeGreaterThanOrEqual(12);
  });

  it.each(streamed)("$name", (scenario: Scenario) => {
    const expected = readEvents(scenario.text("expected-openai.sse")) as Record<string, unknown>[];
    const includeUsage = expected.some((event) => typeof event === "object" && "usage" in event);
    const { chunks, failure } = chunksOf(scenario);
    const start = startOf(expected[0]!["model"] as string);
    const text = write([start, ...chunks, ...(failure === undefined ? [REPORT] : [])], includeUsage);
    const events = readEvents(text + (failure === undefined ? "" : toErrorEvent(failure))) as Record<string, unknown>[];
    const isError = (event: object): boolean => typeof event === "object" && "error" in event;
    expect(comparable(events.filter((event) => !isError(event)))).toEqual(
      comparable(expected.filter((event) => !isError(event))),
    );
    // A stream that broke ends with an error alone: no other key, no finish, no [DONE].
    expect(events.map(isError)).toEqual(expected.map(isError));
    for (const event of events.filter(isError)) expect(Object.keys(event)).toEqual(["error"]);
  });
});

interface WrittenDelta {
  readonly role?: string;
  readonly content?: string;
  readonly refusal?: string;
  readonly reasoning_content?: string;
  readonly images?: readonly { readonly index: number }[];
  readonly thinking_blocks?: readonly unknown[];
  readonly tool_calls?: readonly (Record<string, unknown> & {
    readonly index: number;
    readonly function?: { readonly name?: string; readonly arguments: string };
    readonly custom?: { readonly name?: string; readonly input: string };
  })[];
}

interface WrittenChunk {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: WrittenDelta;
    readonly logprobs: unknown;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
}

/** The deltas of one choice. */
const deltasOf = (events: readonly WrittenChunk[], index: number): WrittenDelta[] =>
  events.flatMap(({ choices }) => choices.filter((choice) => choice.index === index).map(({ delta }) => delta));

function readStream(text: string): WrittenChunk[] {
  const events = readEvents(text);
  expect(events.pop()).toBe("[DONE]");
  expect(events).not.toContain("[DONE]");
  return events as WrittenChunk[];
}

describe("any stream", () => {
  it("says the role once per choice, before anything else of it, and its end once, after everything", () => {
    fc.assert(
      fc.property(anyStream, ({ chunks, choices }) => {
        const events = readStream(write(chunks));
        for (let index = 0; index < choices; index++) {
          const mine = events.flatMap((event) => event.choices.filter((choice) => choice.index === index));
          expect(mine[0]!.delta).toEqual({ role: "assistant", content: "" });
          expect(mine.filter(({ delta }) => delta.role !== undefined)).toHaveLength(1);
          expect(mine.filter((choice) => choice.finish_reason !== null)).toEqual([mine.at(-1)]);
          expect(mine.at(-1)!.delta).toEqual({});
          for (const { delta } of mine.slice(0, -1)) expect(Object.keys(delta)).not.toEqual([]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("never says an empty piece, but for the role's, or for the sake of its log probabilities", () => {
    fc.assert(
      fc.property(anyStream, ({ chunks, choices }) => {
        const events = readStream(write(chunks));
        for (let index = 0; index < choices; index++) {
          const mine = events.flatMap((event) => event.choices.filter((choice) => choice.index === index));
          for (const { delta, logprobs } of mine.slice(1)) {
            if (logprobs !== null) continue;
            for (const piece of [delta.content, delta.refusal, delta.reasoning_content]) expect(piece).not.toBe("");
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("names each tool call once, and counts calls and pictures from 0", () => {
    fc.assert(
      fc.property(anyStream, ({ chunks, choices }) => {
        const events = readStream(write(chunks));
        for (let index = 0; index < choices; index++) {
          const deltas = deltasOf(events, index);
          const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
          const begun = calls.filter((call) => "id" in call);
          expect(begun.map((call) => call.index)).toEqual(begun.map((_, at) => at));
          for (const call of calls) {
            const tool = call.function ?? call.custom!;
            expect("type" in call).toBe("id" in call);
            expect("name" in tool).toBe("id" in call);
            expect(typeof (call.function?.arguments ?? call.custom?.input)).toBe("string");
            expect(calls.indexOf(call)).toBeGreaterThanOrEqual(calls.indexOf(begun[call.index]!));
            const { type } = begun[call.index]!;
            expect(Object.keys(call)).toContain(type);
          }
          const pictures = deltas.flatMap((delta) => delta.images ?? []);
          expect(pictures.map((picture) => picture.index)).toEqual(pictures.map((_, at) => at));
          expect(deltas.filter((delta) => delta.thinking_blocks !== undefined).length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("has usage only for those who asked: null on every chunk, and a chunk of its own before the end", () => {
    fc.assert(
      fc.property(anyStream, ({ chunks, counted }) => {
        const silent = readStream(write(chunks));
        for (const event of silent) {
          expect(event).not.toHaveProperty("usage");
          expect(event.choices).toHaveLength(1);
        }
        const told = readStream(write(chunks, true));
        const own = counted ? told.splice(-1) : [];
        for (const event of told) expect(event.usage).toBeNull();
        for (const event of own)
          expect(event).toMatchObject({ choices: [], usage: { prompt_tokens: 1, total_tokens: 3 } });
        expect(told.map((event) => ({ ...event, usage: undefined }))).toEqual(silent);
      }),
      { numRuns: 200 },
    );
  });

  it("is the same however its chunks come in batches", () => {
    fc.assert(
      fc.property(anyStream, fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }), ({ chunks }, sizes) => {
        const writer = new ChunkWriter({ includeUsage: true, nameOf });
        let text = "";
        for (let at = 0, turn = 0; at < chunks.length; turn++) {
          const size = sizes[turn % sizes.length]!;
          text += writer.write(chunks.slice(at, at + size));
          at += size;
        }
        expect(text).toBe(write(chunks, true));
        expect(writer.ended).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it("has the whole text for a client that joins the pieces", () => {
    fc.assert(
      fc.property(anyStream, ({ chunks, choices }) => {
        const events = readStream(write(chunks));
        for (let index = 0; index < choices; index++) {
          const joined = (kind: PartDelta["content"]["case"]): string =>
            chunks
              .flatMap(({ event }) =>
                event.case === "partDelta" && event.value.choiceIndex === index ? [event.value.content] : [],
              )
              .map((content) => (content.case === kind ? (content.value as string) : ""))
              .join("");
          const deltas = deltasOf(events, index);
          expect(deltas.map((delta) => delta.content ?? "").join("")).toBe(joined("text"));
          expect(deltas.map((delta) => delta.reasoning_content ?? "").join("")).toBe(joined("reasoning"));
          expect(deltas.map((delta) => delta.refusal ?? "").join("")).toBe(joined("refusal"));
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("the framing of events", () => {
  it.each([
    "\u2028",
    "\u2029",
    "\r",
    "\n",
    "\r\n",
    "\n\n",
    "\0",
    "\n\ndata: [DONE]\n\n",
    "\ud800",
    '"}]}\n\n',
    "\u0085",
    "data: x",
  ])("is not broken by %j, wherever it stands", (text) => {
    const contents: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.text({ case: "text", value: text }, contents);
    writer.cite(create(CitationSchema, { source: { case: "url", value: text }, title: text }), contents);
    writer.sign("text", text, contents);
    writer.text({ case: "reasoning", value: text }, contents);
    writer.sign("reasoning", text, contents);
    writer.text({ case: "refusal", value: text }, contents);
    writer.arguments(writer.beginCall({ id: text, name: text }, text, contents), text, contents);
    const image = create(ImageSchema, { source: { case: "url", value: text } });
    writer.whole(toPart({ case: "image", value: image }, text), contents);
    writer.audio(create(AudioSchema, { id: text, transcript: text }), contents);
    writer.finish({ reason: FinishReason.STOP, native: text }, contents);
    const report = create(CompletionChunkSchema, {
      event: {
        case: "report",
        value: {
          omitted: [omission(text, OmissionReason.UNKNOWN)],
          attempts: [
            { model: text, outcome: AttemptOutcome.FAILED, failureReason: ErrorReason.INTERNAL, message: text },
          ],
        },
      },
    });
    const stream = write([startOf(text), ...contents, report], true);
    const events = readStream(stream);
    expect(events).toHaveLength(12);
    expect(stream).not.toMatch(/[\0\r]|\n\n\n|data: *\n/);
    expect(events[1]!.choices[0]!.delta.content).toBe(text);
  });
});

describe("a citation", () => {
  /** Annotations of a stream. */
  const annotationsOf = (run: (writer: ChoiceWriter, out: CompletionChunk[]) => void): unknown[] => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    run(writer, out);
    writer.finish({ reason: FinishReason.STOP, native: "stop" }, out);
    return deltasOf(readStream(write([startOf("a"), ...out, REPORT])), 0).flatMap(
      (delta) => (delta as { annotations?: unknown[] }).annotations ?? [],
    );
  };
  const page = (range?: { start: number; end: number }) =>
    create(CitationSchema, {
      source: { case: "url", value: "https://a" },
      title: "A",
      ...(range && { textRange: range }),
    });
  const at = (start: number, end: number) => ({
    type: "url_citation",
    url_citation: { url: "https://a", title: "A", start_index: start, end_index: end },
  });

  it("counts code points, after all texts before its part", () => {
    const annotations = annotationsOf((writer, out) => {
      writer.text({ case: "text", value: "a🎉" }, out);
      writer.text({ case: "reasoning", value: "🎉" }, out);
      // The first half of a character, then the second.
      writer.text({ case: "text", value: "\ud83c" }, out);
      writer.text({ case: "text", value: "\udf89b" }, out);
      writer.cite(page({ start: 1, end: 2 }), out);
    });
    expect(annotations).toEqual([at(3, 4)]);
  });

  it("without a range is of its part so far", () => {
    const annotations = annotationsOf((writer, out) => {
      writer.text({ case: "text", value: "one 🎉" }, out);
      writer.sign("text", "s", out);
      writer.text({ case: "text", value: "🎉 two" }, out);
      writer.cite(page(), out);
      writer.text({ case: "text", value: ", three" }, out);
    });
    expect(annotations).toEqual([at(5, 10)]);
  });

  it("of a document is left out, which the format cannot say", () => {
    const annotations = annotationsOf((writer, out) => {
      writer.text({ case: "text", value: "one" }, out);
      writer.cite(create(CitationSchema, { source: { case: "document", value: { documentIndex: 0 } } }), out);
      writer.cite(create(CitationSchema, { title: "A" }), out);
    });
    expect(annotations).toEqual([]);
  });
});

it.each([
  ["text", { content: [{ token: "hi" }], refusal: null }],
  ["refusal", { content: null, refusal: [{ token: "hi" }] }],
] as const)("log probabilities of a %s are in their own list", (kind, expected) => {
  const token = create(TokenLogprobSchema, { token: "hi", logprob: -0.5 });
  const events = readStream(
    write([startOf("a"), deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: kind, value: "hi" }, [token]), REPORT]),
  );
  expect(events[1]!.choices[0]!.logprobs).toMatchObject(expected);
});

it("a delta without content is not written, and begins no choice twice", () => {
  const empty = create(CompletionChunkSchema, { event: { case: "partDelta", value: create(PartDeltaSchema) } });
  const events = readStream(
    write([startOf("a"), empty, empty, finishChunk(0, { reason: FinishReason.STOP, native: "" }), REPORT]),
  );
  expect(events.map((event) => event.choices[0]!.delta)).toEqual([{ role: "assistant", content: "" }, {}]);
});

it("an ID is escaped in every event", () => {
  const start = create(CompletionChunkSchema, {
    event: { case: "start", value: { id: 'a"},\n\\b', createTime: { seconds: 1n } } },
  });
  const delta = deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: "Hi" });
  const events = readStream(
    write([start, delta, finishChunk(0, { reason: FinishReason.STOP, native: "stop" }), REPORT], true),
  );
  expect(events.map(({ id }) => id)).toEqual(events.map(() => 'a"},\n\\b'));
});

it("nothing is written before there is something to say", () => {
  const writer = new ChunkWriter({ includeUsage: false, nameOf });
  expect(writer.write([startOf("a")])).toBe("");
  expect(writer.write([finishChunk(0, { reason: FinishReason.STOP, native: "stop" })])).toBe("");
  expect(writer.ended).toBe(false);
});
