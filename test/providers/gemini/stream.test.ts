import { equals } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { AnswerStream, toAnswer } from "../../../src/providers/gemini/response.ts";
import { failureOf } from "../../support/errors.ts";
import { fold } from "../../support/fold.ts";
import { checkGrammar } from "../grammar.ts";
import { bytesOf, outlineOf, readStream } from "./fixture.ts";
import { expectedGist, gistOf } from "./gist.ts";

const WHOLE = (left: number): number => left;

const sse = (...objects: readonly unknown[]): Buffer =>
  Buffer.from(objects.map((each) => `data: ${JSON.stringify(each)}\r\n\r\n`).join(""));

const piece = (parts: readonly object[], finishReason?: string): object => ({
  candidates: [{ content: { parts }, finishReason, index: 0 }],
});

/** What a stream says in short, up to its failure if it has one. */
function outline(bytes: Uint8Array, split = WHOLE): string[] {
  const chunks: CompletionChunk[] = [];
  let failure = "";
  try {
    readStream(bytes, split, chunks);
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    failure = `${reason.code} ${reason.detail ?? ""} ${reason.message}`;
  }
  if (failure === "") checkGrammar(chunks);
  const said = outlineOf(chunks);
  return failure === "" ? said : [...said, failure];
}

describe.each([
  ["whole", WHOLE],
  ["in 7-byte pieces", () => 7],
  ["in 1-byte pieces", () => 1],
] as const)("the fixtures %s (trap 1, 2, 3)", (_, split) => {
  it.each([
    "21-gemini-text-stream",
    "23-gemini-tools-parallel-stream",
    "27-gemini-image-out-stream",
    "28-gemini-thinking-stream",
  ])("%s is read as expected", (scenario) => {
    const answer = fold(readStream(bytesOf(scenario, "upstream-response.sse"), split));
    const expected = expectedGist(scenario, "expected-openai.sse");
    const { usage, ...said } = gistOf(answer);
    expect({ ...said, usage: expected.usage.length === 0 ? [] : usage }).toEqual(expected);
  });

  it("34-gemini-stream-mid-error says what came and fails with the inner error (trap 19)", () => {
    expect(outline(bytesOf("34-gemini-stream-mid-error", "upstream-response.sse"), split)).toEqual([
      "text",
      "upstream_unavailable upstream_overloaded The upstream provider failed while generating the response.",
    ]);
  });
});

describe("a stream", () => {
  it("says each piece in a chunk of its own, the signature with the end of its part, then the finish and the last usage (trap 71, 82)", () => {
    const chunks = readStream(bytesOf("28-gemini-thinking-stream", "upstream-response.sse"), WHOLE);
    const said = chunks.map(({ event }) => {
      if (event.case === "partDelta") return event.value.content;
      return event.case === "partFinish" ? event.value.signature : event.case;
    });
    expect(said).toEqual([
      "partStart",
      { case: "reasoning", value: "Adding numbers. " },
      "",
      "partStart",
      { case: "text", value: "It is 4." },
      "c2lnLWVuZA==",
      "choiceFinish",
      "usage",
    ]);
    expect(chunks.at(-1)).toMatchObject({
      event: { value: { inputTokens: 5, outputTokens: 16, totalTokens: 21 } },
    });
  });

  it("trap 70, 73, 74, 75: gives each call whole, once, with a running index", () => {
    const chunks = readStream(bytesOf("23-gemini-tools-parallel-stream", "upstream-response.sse"), WHOLE);
    const calls = chunks.map(({ event }) => {
      if (event.case === "partStart") return [event.value.partIndex, event.value.part];
      return event.case === "partDelta" ? [event.value.partIndex, event.value.content] : event.case;
    });
    const called = (id: string, name: string, signature = ""): object => ({
      kind: { case: "toolCall", value: { id, name, input: { case: "argumentsJson", value: "" } } },
      signature,
    });
    expect(calls).toMatchObject([
      [0, called("fc_a", "get_weather", "c2lnLWZj")],
      [0, { case: "argumentsJson", value: '{"city":"Paris"}' }],
      "partFinish",
      [1, called("fc_b", "get_weather")],
      [1, { case: "argumentsJson", value: '{"city":"Rome"}' }],
      "partFinish",
      [2, called("fc_c", "get_time")],
      [2, { case: "argumentsJson", value: "{}" }],
      "partFinish",
      "choiceFinish",
      "usage",
    ]);
  });

  it("trap 76: remembers a call until a finish without content, and parts after a finish", () => {
    const call = { functionCall: { name: "f" } };
    expect(outline(sse(piece([call], "STOP"), piece([{ text: "a" }])))).toEqual(["toolCall", "text", "choiceFinish"]);
    expect(fold(readStream(sse(piece([call]), piece([], "STOP")), WHOLE)).choices).toMatchObject([{ finishReason: 3 }]);
  });

  it("trap 46: keeps the digits of large numbers in arguments", () => {
    const event =
      'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":9223372036854775807}}}]},"finishReason":"STOP"}]}\n\n';
    const [choice] = fold(readStream(Buffer.from(event), WHOLE)).choices;
    expect(choice?.message?.parts).toMatchObject([
      { kind: { value: { input: { value: '{"id":9223372036854775807}' } } } },
    ]);
  });

  it("trap 7: reads a picture of many megabytes in one line", () => {
    const data = Buffer.alloc(6_000_000, 7).toString("base64");
    const bytes = sse(piece([{ inlineData: { mimeType: "image/png", data } }], "STOP"));
    const [choice] = fold(readStream(bytes, () => 65_536)).choices;
    expect(choice?.message?.parts[0]).toMatchObject({ kind: { value: { mediaType: "image/png" } } });
  });

  it("trap 79: a blocked prompt is a refusal", () => {
    const blocked = { promptFeedback: { blockReason: "SAFETY" } };
    expect(outline(sse(blocked))).toEqual(["refusal", "choiceFinish"]);
    expect(outline(sse(piece([{ text: "a" }]), blocked))).toEqual(["text", "refusal", "choiceFinish"]);
    const second = { candidates: [{ content: { parts: [{ text: "b" }] }, index: 1 }] };
    expect(outline(sse(piece([{ text: "a" }], "STOP"), second, blocked))).toEqual([
      "text",
      "text",
      "choiceFinish",
      "refusal",
      "choiceFinish",
    ]);
  });

  it("trap 5, 9 and 10: ignores what is not of the dialect, and reads a last event without its blank line", () => {
    const first = JSON.stringify(piece([{ text: "a" }]));
    const last = JSON.stringify(piece([{ text: "b" }], "STOP"));
    const text = `\uFEFF: hello\n\nid: 5\nretry: 1\ndata: ${first}\n\ndata:\n\ndata: ${last}`;
    expect(outline(Buffer.from(text))).toEqual(["text", "text", "choiceFinish"]);
  });
});

describe("a stream's end", () => {
  const last = `data: ${JSON.stringify(piece([{ text: "a" }], "STOP"))}\n\n`;

  it("trap 10: is the marker, if one comes, and what follows it is ignored", () => {
    const late = `data: ${JSON.stringify(piece([{ text: "late" }]))}\n\ndata: {"error`;
    expect(outline(Buffer.from(`${last}data: [DONE] \n\n${late}`))).toEqual(["text", "choiceFinish"]);
  });

  it("trap 9: may be half an event, when every candidate has its finish", () => {
    expect(outline(Buffer.from(`${last}data: {"usageMeta`))).toEqual(["text", "choiceFinish"]);
  });

  it("is near when every candidate has its finish, or the prompt was blocked", () => {
    const finishedAfter = (...objects: readonly object[]): boolean => {
      const reader = new AnswerStream();
      for (const each of objects) reader.read({ event: "", data: JSON.stringify(each) }, []);
      return reader.finished;
    };
    expect(finishedAfter()).toBe(false);
    expect(finishedAfter(piece([{ text: "a" }]))).toBe(false);
    expect(finishedAfter(piece([{ text: "a" }]), piece([], "STOP"))).toBe(true);
    expect(finishedAfter({ promptFeedback: { blockReason: "SAFETY" } })).toBe(true);
  });
});

describe("a stream that fails", () => {
  const truncated = "upstream_protocol  The upstream provider closed the stream before it was complete.";
  const unreadable = "upstream_protocol  The upstream provider's answer could not be read.";

  it.each<[string, Buffer, string[]]>([
    ["trap 20: ends without a finish", sse(piece([{ text: "a" }])), ["text", truncated]],
    ["trap 20: says nothing at all", Buffer.from(""), [truncated]],
    ["trap 9: ends in the middle of an event", Buffer.from('data: {"candidates":[{"con'), [truncated]],
    ["is not JSON", Buffer.from("data: <html>\n\ndata: {}\n\n"), [unreadable]],
    ["trap 10: has its marker before its finish", Buffer.from("data: [DONE]\n\n"), [truncated]],
    [
      "has an error after content about the request",
      sse(piece([{ text: "a" }]), { error: { code: 400, message: "secret words" } }),
      ["text", "upstream_rejected  The upstream provider failed while generating the response."],
    ],
    [
      "trap 18: begins with an error",
      sse({ error: { code: 503, status: "UNAVAILABLE", message: "busy" } }),
      ["upstream_unavailable upstream_overloaded The upstream provider is temporarily overloaded."],
    ],
    [
      "trap 23: has its error in an array",
      sse([{ error: { code: 429, status: "RESOURCE_EXHAUSTED" } }]),
      ["upstream_rate_limited  The upstream provider is rate limiting requests."],
    ],
    [
      "trap 21: has an error beside candidates",
      sse({ ...piece([{ text: "a" }], "STOP"), error: { status: "INTERNAL" } }),
      ["upstream_unavailable  The upstream provider failed while generating the response."],
    ],
    [
      "breaks its call",
      sse(piece([{ text: "a" }]), piece([], "MALFORMED_FUNCTION_CALL")),
      ["text", "upstream_protocol  The upstream model produced an invalid tool call."],
    ],
  ])("%s", (_, bytes, expected) => {
    expect(outline(bytes)).toEqual(expected);
    expect(outline(bytes, () => 1)).toEqual(expected);
  });

  const error = { error: { code: 503, status: "UNAVAILABLE" } };
  const counted = { usageMetadata: { promptTokenCount: 40, thoughtsTokenCount: 900 } };
  it.each<[string, readonly object[], Partial<Failure>]>([
    ["an error alone", [error], { refused: true, usage: undefined }],
    [
      "an error after a count",
      [counted, error],
      { refused: false, usage: expect.objectContaining({ inputTokens: 40, outputTokens: 900 }) as never },
    ],
    [
      "an error beside candidates",
      [{ ...piece([{ text: "a" }]), ...counted, ...error }],
      { refused: false, usage: expect.objectContaining({ inputTokens: 40, outputTokens: 900 }) as never },
    ],
    [
      "an error after content",
      [{ ...piece([{ text: "a" }]), ...counted }, error],
      { refused: false, usage: undefined },
    ],
  ])("costs nothing only where nothing was generated: %s", (_, objects, expected) => {
    expect(failureOf(() => readStream(sse(...objects), WHOLE))).toMatchObject(expected);
    expect(failureOf(() => toAnswer(objects))).toMatchObject(expected);
  });
});

describe("any answer", () => {
  const signature = fc.option(fc.constantFrom("c2ln", "YWJj"), { nil: undefined });
  const text = fc.record({ text: fc.string({ unit: "grapheme" }), thoughtSignature: signature });
  const thought = fc.record({ text: fc.string(), thought: fc.constant(true) });
  const picture = fc.record({
    inlineData: fc.record({ mimeType: fc.constant("image/png"), data: fc.base64String({ minLength: 4 }) }),
    thoughtSignature: signature,
  });
  // With an ID each, for ours would be other ones each time.
  const call = fc.record({
    functionCall: fc.record({
      id: fc.uuid(),
      name: fc.constantFrom("f", "g"),
      args: fc.dictionary(fc.string(), fc.jsonValue()),
    }),
    thoughtSignature: signature,
  });
  const parts = fc.array(fc.array(fc.oneof(text, thought, picture, call), { maxLength: 4 }), { maxLength: 5 });
  const finish = fc.constantFrom("STOP", "MAX_TOKENS", "SAFETY", "OTHER");
  const usageMetadata = fc.option(fc.record({ promptTokenCount: fc.nat(), candidatesTokenCount: fc.nat() }), {
    nil: undefined,
  });

  it("gives the same chunks however its stream is split, and folds into the whole one", () => {
    const sizes = fc.infiniteStream(fc.integer({ min: 1, max: 40 }));
    fc.assert(
      fc.property(parts, finish, usageMetadata, sizes, (pieces, native, usage, split) => {
        const said = { text: "." };
        const bytes = sse(...pieces.map((each) => piece(each)), { ...piece([said], native), usageMetadata: usage });
        const whole = readStream(bytes, WHOLE);
        expect(() => checkGrammar(whole)).not.toThrow();
        const again = readStream(bytes, () => split.next().value);
        expect(again.length).toBe(whole.length);
        expect(again.every((chunk, index) => equals(CompletionChunkSchema, chunk, whole[index]!))).toBe(true);
        const answer = toAnswer({ ...piece([...pieces.flat(), said], native), usageMetadata: usage });
        expect(fold(again)).toEqual(answer);
      }),
      { numRuns: 150 },
    );
  });
});
