import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Citation, CitationSchema, DocumentUnit, type Part } from "../../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { ChoiceWriter, type Ending, toPart, usageChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import { readMessagesRequest } from "../../../src/formats/anthropic/request.ts";
import { readState } from "../../../src/formats/anthropic/state.ts";
import { MessageWriter } from "../../../src/formats/anthropic/stream.ts";
import { eventsOf, FORM, type Json, messageOf, partsOf, REPORT, START, streamOf, wholeOf } from "./stream-support.ts";
import { anyCharacter } from "../../support/any-character.ts";

const STOP: Ending = { reason: FinishReason.STOP, native: "end_turn" };

/** The chunks of a choice that `write` writes. */
function chunksOf(write: (writer: ChoiceWriter, out: CompletionChunk[]) => void, ending = STOP): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  write(writer, out);
  writer.finish(ending, out);
  return out;
}

const TEXT = chunksOf((writer, out) => {
  writer.text({ case: "text", value: "Hel" }, out);
  writer.text({ case: "text", value: "lo\n" }, out);
});

const types = (stream: string): unknown[] => eventsOf(stream).map(({ type }) => type);

describe("the input of a call", () => {
  const chunksWith = (text: string): CompletionChunk[] =>
    chunksOf((writer, out) => {
      writer.arguments(writer.beginCall({ id: "t1", name: "f" }, "", out), text, out);
    });

  it.each(['{"id":12345678901234567890,"price":1.50}', '{"a":[1e400,-0]}'])(
    "has the numbers of %s as the model wrote them, whole and streamed",
    (text) => {
      expect(JSON.stringify(wholeOf(chunksWith(text)))).toContain(`"input":${text}`);
      expect(inputOf(streamOf(chunksWith(text)))).toBe(text);
    },
  );

  it("is an object also for a large number", () => {
    const { content } = wholeOf(chunksWith("12345678901234567890"));
    expect(content).toMatchObject([{ input: { arguments: "12345678901234567890" } }]);
  });
});

/** The input of the call in a stream. */
function inputOf(stream: string): string {
  const deltas = eventsOf(stream).map(({ delta }) => delta as { readonly partial_json?: string } | undefined);
  return deltas.map((delta) => delta?.partial_json ?? "").join("");
}

describe("a stream", () => {
  it("has the vendor's events in their order", () => {
    expect(types(streamOf(TEXT))).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
  });

  it("begins with the estimated input, and ends with what the provider counted", () => {
    const counted = create(UsageSchema, {
      inputTokens: 16,
      outputTokens: 3,
      totalTokens: 19,
      cachedInputTokens: 4,
      cacheWriteInputTokens: 2,
      reasoningOutputTokens: 1,
    });
    const events = eventsOf(streamOf([...TEXT, usageChunk(counted)]));
    expect(events[0]).toMatchObject({ message: { usage: { input_tokens: 25 } } });
    expect(events.at(-2)!["usage"]).toEqual({
      input_tokens: 10,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 4,
      output_tokens: 3,
      output_tokens_details: { thinking_tokens: 1 },
    });
  });

  it("has the lifetimes of cache writes, and searches, where the provider has them", () => {
    const counts = { inputTokens: 16, outputTokens: 3, cacheWriteInputTokens: 5, cacheWriteHourInputTokens: 2 };
    const counted = create(UsageSchema, { ...counts, webSearches: 1 });
    expect(eventsOf(streamOf([...TEXT, usageChunk(counted)])).at(-2)).toMatchObject({
      usage: {
        input_tokens: 11,
        cache_creation_input_tokens: 5,
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 2 },
        server_tool_use: { web_search_requests: 1 },
      },
    });
  });

  it("keeps the estimate where the provider does not count", () => {
    expect(eventsOf(streamOf(TEXT)).at(-2)).toMatchObject({ usage: { input_tokens: 25, output_tokens: 0 } });
  });

  it("has the report in its last event", () => {
    expect(eventsOf(streamOf(TEXT)).at(-1)).toEqual({
      type: "message_stop",
      parley: { attempts: [], omitted: [], clamped: [] },
    });
  });

  it("of an answer without content has no block", () => {
    expect(messageOf(streamOf(chunksOf(() => undefined)))).toMatchObject({ content: [], stop_reason: "end_turn" });
  });

  it("is over when the report is written", () => {
    const writer = new MessageWriter(FORM);
    writer.write([START, ...TEXT]);
    expect(writer.ended).toBe(false);
    writer.write([REPORT]);
    expect(writer.ended).toBe(true);
  });

  it("is kept alive by pings", () => {
    expect(eventsOf(new MessageWriter(FORM).keepAlive)).toEqual([{ type: "ping" }]);
  });

  it("that breaks off ends with an error, and not with the end of the message", () => {
    const failure = new Failure("upstream_unavailable", "The provider failed.");
    expect(eventsOf(new MessageWriter(FORM).fail(failure))).toEqual([
      {
        type: "error",
        error: { type: "overloaded_error", message: "The provider failed." },
        request_id: "req_1",
      },
    ]);
  });

  it("leaves out other choices", () => {
    const out: CompletionChunk[] = [];
    const second = new ChoiceWriter(1);
    second.text({ case: "text", value: "Other" }, out);
    second.finish({ reason: FinishReason.LENGTH, native: "" }, out);
    expect(messageOf(streamOf([...TEXT, ...out]))).toMatchObject({
      content: [{ type: "text", text: "Hello\n" }],
      stop_reason: "end_turn",
    });
  });
});

describe("blocks", () => {
  it("of calls that overlap come one after the other", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    const first = writer.beginCall({ id: "a", name: "f" }, "", out);
    const second = writer.beginCall({ id: "b", name: "g" }, "", out);
    writer.arguments(second, `{"y":`, out);
    writer.arguments(first, `{"x":1}`, out);
    writer.text({ case: "text", value: "Calling" }, out);
    writer.arguments(second, "2}", out);
    writer.finish({ reason: FinishReason.TOOL_CALLS, native: "tool_calls" }, out);
    expect(messageOf(streamOf(out))).toMatchObject({
      content: [
        { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
        { type: "tool_use", id: "b", name: "g", input: { y: 2 } },
        { type: "text", text: "Calling" },
      ],
      stop_reason: "tool_use",
    });
  });

  it("of a call without arguments get an empty object", () => {
    const chunks = chunksOf((writer, out) => writer.endCall(writer.beginCall({ id: "a", name: "f" }, "", out), out));
    const deltas = eventsOf(streamOf(chunks)).filter(({ type }) => type === "content_block_delta");
    expect(deltas.map(({ delta }) => delta)).toEqual([{ type: "input_json_delta", partial_json: "{}" }]);
  });

  it("of a call whose arguments came at once have one delta with all of them", () => {
    const chunks = chunksOf((writer, out) => {
      const at = writer.beginCall({ id: "a", name: "f" }, "", out);
      writer.arguments(at, `{"x":12345678901234567890}`, out);
      writer.endCall(at, out);
    });
    const deltas = eventsOf(streamOf(chunks)).filter(({ type }) => type === "content_block_delta");
    expect(deltas.map(({ delta }) => delta)).toEqual([
      { type: "input_json_delta", partial_json: `{"x":12345678901234567890}` },
    ]);
  });

  it("of reasoning have the signature once, whole, at their end", () => {
    const chunks = chunksOf((writer, out) => {
      writer.text({ case: "reasoning", value: "Hm" }, out);
      writer.text({ case: "reasoning", value: "m" }, out);
      writer.sign("reasoning", "sig", out);
      writer.whole(
        toPart({ case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: "", redacted: "zzz" } }),
        out,
      );
    });
    const stream = streamOf(chunks);
    expect(messageOf(stream)["content"]).toEqual([
      { type: "thinking", thinking: "Hmm", signature: "sig" },
      { type: "redacted_thinking", data: "zzz" },
    ]);
    expect(
      eventsOf(stream).filter(({ delta }) => (delta as Json | undefined)?.["type"] === "signature_delta"),
    ).toHaveLength(1);
  });

  it("of reasoning have no text for a caller that wants none, and none without a signature", () => {
    const signed = chunksOf((writer, out) => {
      writer.text({ case: "reasoning", value: "Hm" }, out);
      writer.sign("reasoning", "sig", out);
    });
    const block = { type: "thinking", thinking: "", signature: "sig" };
    expect(messageOf(streamOf(signed, { hidesThinking: true }))["content"]).toEqual([block]);
    expect(wholeOf(signed, { hidesThinking: true })["content"]).toEqual([block]);
    const plain = chunksOf((writer, out) => writer.text({ case: "reasoning", value: "Hm" }, out));
    expect(messageOf(streamOf(plain, { hidesThinking: true }))["content"]).toEqual([]);
    expect(wholeOf(plain, { hidesThinking: true })["content"]).toEqual([]);
  });

  it("of a server tool's call have their input in a delta, and its result is whole", () => {
    const call = { type: "server_tool_use", id: "s", name: "web_search", input: { query: "x" } };
    const result = { type: "web_search_tool_result", tool_use_id: "s", content: [{ type: "web_search_result" }] };
    const chunks = chunksOf((writer, out) => {
      writer.native({ dialect: "anthropic", json: JSON.stringify(call) }, out);
      writer.native({ dialect: "anthropic", json: JSON.stringify(result) }, out);
      writer.native({ dialect: "gemini", json: `{"executableCode":{}}` }, out);
    });
    const stream = streamOf(chunks);
    expect(messageOf(stream)["content"]).toEqual([call, result]);
    expect(wholeOf(chunks)["content"]).toEqual([call, result]);
    expect(eventsOf(stream)[1]).toMatchObject({ content_block: { input: {} } });
  });

  it("with the state of another dialect stand beside their call and after their text", () => {
    const chunks = chunksOf((writer, out) => {
      writer.sign("text", "t", out);
      writer.text({ case: "text", value: "Calling" }, out);
      writer.sign("text", "u", out);
      writer.endCall(writer.beginCall({ id: "a", name: "f" }, "c", out), out);
      writer.endCall(writer.beginCall({ id: "b", name: "f" }, "", out), out, { signature: "d" });
    });
    const content = messageOf(streamOf(chunks))["content"] as Json[];
    const states = content.map(({ type, signature }) => (type === "thinking" ? readState(String(signature)) : type));
    expect(states).toEqual([
      { toolCall: undefined, signature: "t" },
      "text",
      { toolCall: undefined, signature: "u" },
      { toolCall: "a", signature: "c" },
      "tool_use",
      "tool_use",
      { toolCall: "b", signature: "d" },
    ]);
  });

  it("do not exist for pictures", () => {
    const image = {
      $typeName: "parley.v1.Image",
      source: { case: "url", value: "https://x" },
      mediaType: "",
      detail: 0,
    } as const;
    const chunks = chunksOf((writer, out) => {
      writer.whole(toPart({ case: "image", value: image }), out);
      writer.text({ case: "text", value: "There" }, out);
    });
    expect(messageOf(streamOf(chunks))["content"]).toEqual([{ type: "text", text: "There" }]);
  });
});

describe("citations", () => {
  const cited = (value: Partial<Citation>): object => {
    const chunks = chunksOf((writer, out) => {
      writer.text({ case: "text", value: "So" }, out);
      writer.cite(create(CitationSchema, value as never), out);
    });
    const streamed = (messageOf(streamOf(chunks))["content"] as Json[])[0]!["citations"];
    expect((wholeOf(chunks)["content"] as Json[])[0]!["citations"]).toEqual(streamed);
    return streamed as object;
  };

  it.each([
    [DocumentUnit.CHARACTERS, "char_location", "start_char_index", "end_char_index"],
    [DocumentUnit.PAGES, "page_location", "start_page_number", "end_page_number"],
    [DocumentUnit.BLOCKS, "content_block_location", "start_block_index", "end_block_index"],
  ])("of documents are of the vendor's types: %i", (unit, type, first, last) => {
    const document = { documentIndex: 1, unit, start: 2, end: 3 };
    expect(cited({ source: { case: "document", value: document as never }, title: "T", citedText: "c" })).toEqual([
      { type, cited_text: "c", document_index: 1, document_title: "T", file_id: null, [first]: 2, [last]: 3 },
    ]);
  });

  it("of pages are those of a web search", () => {
    expect(cited({ source: { case: "url", value: "https://x" }, citedText: "c" })).toEqual([
      { type: "web_search_result_location", cited_text: "c", url: "https://x", title: null, encrypted_index: "" },
    ]);
  });
});

describe("the end", () => {
  it.each<[string, Ending, object]>([
    ["STOP", STOP, { stop_reason: "end_turn", stop_sequence: null }],
    [
      "a stop sequence",
      { ...STOP, native: "stop_sequence", stopSequence: "END" },
      { stop_reason: "stop_sequence", stop_sequence: "END" },
    ],
    ["LENGTH", { reason: FinishReason.LENGTH, native: "length" }, { stop_reason: "max_tokens" }],
    [
      "a full context",
      { reason: FinishReason.LENGTH, native: "model_context_window_exceeded" },
      { stop_reason: "model_context_window_exceeded" },
    ],
    ["PAUSE", { reason: FinishReason.PAUSE, native: "pause_turn" }, { stop_reason: "pause_turn" }],
    ["OTHER", { reason: FinishReason.OTHER, native: "LANGUAGE" }, { stop_reason: "end_turn" }],
    [
      "CONTENT_FILTER",
      { reason: FinishReason.CONTENT_FILTER, native: "SAFETY" },
      { stop_reason: "refusal", stop_details: { type: "refusal", category: null, explanation: null } },
    ],
  ])("of %s", (_, ending, expected) => {
    const chunks = chunksOf(() => undefined, ending);
    expect(messageOf(streamOf(chunks))).toMatchObject(expected);
    expect(wholeOf(chunks)).toMatchObject(expected);
  });

  it("of a refusal says why, whatever the finish reason is", () => {
    const chunks = chunksOf((writer, out) => {
      writer.text({ case: "refusal", value: "I will " }, out);
      writer.text({ case: "refusal", value: "not" }, out);
    });
    const expected = { content: [], stop_reason: "refusal", stop_details: { explanation: "I will not" } };
    expect(messageOf(streamOf(chunks))).toMatchObject(expected);
    expect(wholeOf(chunks)).toMatchObject(expected);
  });
});

const words = fc.string({ unit: anyCharacter, maxLength: 12 });
/** Not empty, and of the characters of a signature. */
const signature = fc.base64String({ minLength: 4, maxLength: 16 });
const input = fc.dictionary(
  fc.string({ maxLength: 5 }).filter((key) => key !== "__proto__"),
  fc.oneof(words, fc.integer()),
  { maxKeys: 3 },
);

type Step = (writer: ChoiceWriter, out: CompletionChunk[]) => void;
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    words.map(
      (value): Step =>
        (writer, out) =>
          writer.text({ case: "text", value }, out),
    ),
    fc.record({ value: words, signed: signature }).map(({ value, signed }): Step => (writer, out) => {
      writer.text({ case: "reasoning", value }, out);
      writer.sign("reasoning", signed, out);
    }),
    signature.map(
      (signed): Step =>
        (writer, out) =>
          writer.sign("text", signed, out),
    ),
    signature.map((redacted): Step => {
      const value = { $typeName: "parley.v1.Reasoning", text: "", redacted } as const;
      return (writer, out) => writer.whole(toPart({ case: "reasoning", value }), out);
    }),
    input.map(
      (block): Step =>
        (writer, out) =>
          writer.native({ dialect: "anthropic", json: JSON.stringify({ ...block, type: "other" }) }, out),
    ),
    fc
      .record({ given: input, cuts: fc.nat(9), signed: fc.option(signature, { nil: "" }), ends: fc.boolean() })
      .map(({ given, cuts, signed, ends }): Step => {
        const json = JSON.stringify(given);
        let count = 0;
        return (writer, out) => {
          const at = writer.beginCall({ id: `call_${out.length}_${count++}`, name: "f" }, signed, out);
          writer.arguments(at, json.slice(0, cuts), out);
          writer.arguments(at, json.slice(cuts), out);
          if (ends) writer.endCall(at, out);
        };
      }),
  ),
  { maxLength: 8 },
);
const answers = steps.map((written) =>
  chunksOf((writer, out) => {
    for (const step of written) step(writer, out);
  }),
);

/** The parts without what a request ignores. */
function compared(parts: readonly Part[]): object[] {
  return parts.map(({ kind, signature: signed }) => ({ kind: kind.case, value: kind.value, signed }));
}

describe("any answer", () => {
  it("is the same text however its chunks are batched", () => {
    fc.assert(
      fc.property(answers, fc.array(fc.nat(3)), (chunks, sizes) => {
        const all = [START, ...chunks, REPORT];
        const writer = new MessageWriter(FORM);
        let text = "";
        for (let at = 0, turn = 0; at < all.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1;
          text += writer.write(all.slice(at, at + size));
          at += Math.max(size, 1);
          if (size === 0) text += writer.write(all.slice(at - 1, at));
        }
        expect(text).toBe(streamOf(chunks));
      }),
    );
  });

  it("is the same whole and streamed", () => {
    fc.assert(
      fc.property(answers, (chunks) => {
        const streamed = messageOf(streamOf(chunks));
        expect(streamed["content"]).toEqual(wholeOf(chunks)["content"]);
      }),
    );
  });

  it("comes back as the parts that it was made of", () => {
    fc.assert(
      fc.property(answers, (chunks) => {
        const { content } = wholeOf(chunks);
        const messages = [{ role: "assistant", content }];
        const { request } = readMessagesRequest({ json: { model: "m", messages }, headers: {} });
        const again = request.messages.flatMap(({ parts }) => parts);
        const said = readMessagesRequest({
          json: { model: "m", messages: [{ role: "assistant", content: messageOf(streamOf(chunks))["content"] }] },
          headers: {},
        });
        expect(compared(again)).toEqual(compared(said.request.messages.flatMap(({ parts }) => parts)));
        const texts = (parts: readonly Part[]): string =>
          parts.map(({ kind }) => (kind.case === "text" ? kind.value : "")).join("");
        const original = partsOf(chunks);
        expect(texts(again)).toBe(texts(original));
        expect(compared(again.filter(({ kind }) => kind.case !== "text"))).toEqual(
          compared(original.filter(({ kind }) => kind.case !== "text")),
        );
      }),
    );
  });
});
