import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, ChoiceSchema } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { deltaChunk } from "../../src/core/chunks.ts";
import { MAX_ANSWER_BYTES } from "../../src/core/answer-builder.ts";
import type { Answer, Emit } from "../../src/core/provider.ts";
import { MAX_PARTS } from "../../src/core/validate.ts";
import {
  AnswerStream as AnthropicStream,
  toAnswer as toAnthropicAnswer,
} from "../../src/providers/anthropic/response.ts";
import { AnswerStream as GeminiStream } from "../../src/providers/gemini/response.ts";
import { AnswerStream as OpenAiStream } from "../../src/providers/openai/response.ts";
import {
  AnswerStream as ResponseStream,
  toAnswer as toResponseAnswer,
} from "../../src/providers/openai-responses/response.ts";
import { MAX_RESPONSE_BYTES, type Upstream, type UpstreamResponse } from "../../src/providers/transport/http.ts";
import { type DialectCall, fetchStream, type StreamReader } from "../../src/providers/wire/response.ts";

const MIB = 1024 * 1024;

/** The failure of a stream of these events, which emit nothing. */
function failureOf(reader: StreamReader, events: readonly object[]): Failure | undefined {
  const out: CompletionChunk[] = [];
  try {
    for (const event of events) reader.read({ event: "", data: JSON.stringify(event) }, out);
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
  expect(out).toEqual([]);
  return undefined;
}

const events = (count: number, of: (index: number) => object): object[] =>
  Array.from({ length: count }, (_, i) => of(i));

const unnamedCall = (index: number): object => ({
  choices: [{ index: index % 128, delta: { tool_calls: [{ index, id: `call_${index}` }] } }],
});
const openBlock = (index: number): object => ({
  type: "content_block_start",
  index,
  content_block: { type: "server_tool_use" },
});

const begunItem = (index: number): object => ({
  type: "response.output_item.added",
  output_index: index,
  item: { type: "web_search_call" },
});

describe("what a stream announces and does not complete", () => {
  it.each([
    ["calls without a name", () => new OpenAiStream(), unnamedCall],
    ["blocks without an end", () => new AnthropicStream(), openBlock],
    ["items without an end", () => new ResponseStream(), begunItem],
  ])("has as many %s as an answer has parts, at most", (_, reader, of) => {
    expect(failureOf(reader(), events(MAX_PARTS, of))).toBeUndefined();
    expect(failureOf(reader(), events(MAX_PARTS + 1, of))).toMatchObject({ code: "upstream_protocol" });
  });

  it("is read up to the size of a whole response", async () => {
    const { upstream, sent } = endless(`data: ${"x".repeat(MIB)}\n\n`);
    const silent: StreamReader = { complete: false, read: () => undefined, end: () => undefined };
    const reading = fetchStream(upstream, call(), { reader: silent, whole: () => [], emit: () => undefined });
    await expect(reading).rejects.toMatchObject({ code: "upstream_protocol" });
    expect(sent()).toBe(MAX_RESPONSE_BYTES / MIB + 1);
  });
});

/** Some 16,000 values, of which an event may have 100,000. */
const MANY = Array.from({ length: 8_000 }, () => []);
const MOST = Array.from({ length: 24_000 }, () => []);
const LOGPROBS = Array.from({ length: 3_000 }, () => ({ token: "", logprob: 0 }));

/** Bytes of V8's heap that a reader keeps of these events. */
function keptBytes(reader: StreamReader, read: readonly object[]): number {
  const { heapUsed } = collected();
  for (const event of read) if (isBeyond(reader, event)) break;
  const kept = collected().heapUsed - heapUsed;
  // The reader is in use until here.
  expect(reader.complete).toBe(false);
  return kept;
}

/** Reads an event. Returns whether it exceeds a limit of the reader. */
function isBeyond(reader: StreamReader, event: object): boolean {
  try {
    reader.read({ event: "", data: JSON.stringify(event) }, []);
    return false;
  } catch (reason) {
    if (reason instanceof Failure && reason.code === "upstream_protocol") return true;
    throw reason;
  }
}

function collected(): NodeJS.MemoryUsage {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage();
}

describe("values of a stream that are kept until an end", () => {
  it.each<[string, () => StreamReader, (index: number) => object]>([
    [
      "unknown fields of calls",
      () => new OpenAiStream(),
      (index) => ({
        choices: [{ index: 0, delta: { tool_calls: [{ index, id: `${index}`, function: { name: "f" }, x: MANY }] } }],
      }),
    ],
    [
      "unknown fields of choices",
      () => new OpenAiStream(),
      (index) => ({ choices: [{ index: index % 128, delta: { content: "a" }, [`f${index >> 7}`]: MANY }] }),
    ],
    [
      "log probabilities without content",
      () => new OpenAiStream(),
      (index) => ({
        choices: [{ index: index % 128, delta: {}, logprobs: { content: LOGPROBS } }],
      }),
    ],
    [
      "unknown fields of candidates",
      () => new GeminiStream(),
      (index) => ({
        candidates: [{ index: index % 128, content: { parts: [{ text: "a" }] }, [`f${index >> 7}`]: MANY }],
      }),
    ],
    [
      "details of candidates",
      () => new GeminiStream(),
      (index) => ({ candidates: [{ index: index % 128, groundingMetadata: MANY, safetyRatings: MANY }] }),
    ],
    [
      "blocks without an end",
      () => new AnthropicStream(),
      (index) => ({ ...openBlock(index), content_block: { type: "x", x: MANY } }),
    ],
    [
      "texts with sources, without an end",
      () => new AnthropicStream(),
      (index) => ({ ...openBlock(index), content_block: { type: "text", citations: [{ x: MANY }] } }),
    ],
    [
      "arguments without an end",
      () => new AnthropicStream(),
      (index) => ({ ...openBlock(index), content_block: { type: "tool_use", name: "f", input: { x: MANY } } }),
    ],
    [
      "unknown fields of messages",
      () => new AnthropicStream(),
      (index) => ({ type: "message_start", message: { [`f${index}`]: MOST, usage: { [`f${index}`]: MOST } } }),
    ],
  ])("take little memory: %s", (_, reader, of) => {
    expect(keptBytes(reader(), events(300, of))).toBeLessThan(40 * MIB);
  });
});

/** Characters of an unknown field. */
const FIELD = 200_000;

const unknown = (fields: number): object =>
  Object.fromEntries(Array.from({ length: fields }, (_, index) => [`f${index}`, "x".repeat(FIELD)]));

describe("unknown fields of an answer", () => {
  it.each<[string, () => Answer]>([
    [
      "anthropic",
      () =>
        toAnthropicAnswer({
          ...unknown(1),
          stop_reason: "end_turn",
          content: Array.from({ length: 8 }, () => ({ ...unknown(1), type: "text", text: "a" })),
        }),
    ],
    [
      "openai-responses",
      () =>
        toResponseAnswer({
          ...unknown(1),
          status: "completed",
          output: Array.from({ length: 8 }, () => ({
            ...unknown(1),
            type: "function_call",
            name: "f",
            arguments: "{}",
          })),
        }),
    ],
  ])("have 1 MiB together, in its parts and beside them: %s", (_, read) => {
    const text = read()
      .choices.map((choice) => toJsonString(ChoiceSchema, choice))
      .join("");
    const kept = text.split("x".repeat(FIELD)).length - 1;
    expect(kept).toBe(5);
  });
});

describe("a stream of content without an end", () => {
  it("fails beyond the largest answer, after what was read of it", async () => {
    const { upstream, sent } = endless(`data: ${"x".repeat(MIB - "data: \n\n".length)}\n\n`);
    let emitted = 0;
    const talking: StreamReader = {
      complete: false,
      read: ({ data }, out) => void out.push(deltaChunk(PLACE, { case: "text", value: data })),
      end: () => undefined,
    };
    const emit: Emit = (batch) => {
      emitted += batch.length;
      return undefined;
    };
    const reading = fetchStream(upstream, call(), { reader: talking, whole: () => [], emit });
    await expect(reading).rejects.toMatchObject({ code: "upstream_protocol" });
    expect(sent()).toBe(MAX_ANSWER_BYTES / MIB + 1);
    expect(emitted).toBe(MAX_ANSWER_BYTES / MIB);
  });
});

const PLACE = { choiceIndex: 0, partIndex: 0 };

const call = (): DialectCall => ({
  path: "/",
  headers: {},
  body: "",
  signal: new AbortController().signal,
  idleMs: 1000,
  toFailure: unexpected,
});

const unexpected = (): Failure => new Failure("internal", "unexpected");

/** An upstream that sends the same bytes again and again, for a while. */
function endless(text: string): { readonly upstream: Upstream; readonly sent: () => number } {
  const bytes = Buffer.from(text);
  let sent = 0;
  const response: UpstreamResponse = {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    async read() {
      sent += 1;
      return sent > 200 ? undefined : [bytes];
    },
    body: async () => [],
    pause: (until) => until,
    complete: () => undefined,
    abandon: () => false,
  };
  return { upstream: { post: async () => response, close: async () => undefined }, sent: () => sent };
}
