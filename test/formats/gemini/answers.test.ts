import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Completion,
  type CompletionChunk,
  CompletionSchema,
  FinishReason,
} from "../../../gen/parley/v1/completion_pb.js";
import { CitationSchema, ImageSchema, type Part, TokenLogprobSchema } from "../../../gen/parley/v1/message_pb.js";
import { type Usage, UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../../../src/core/answer-builder.ts";
import { ChoiceWriter, type Ending, toPart, usageChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import { FunctionNames } from "../../../src/formats/gemini/function-names.ts";
import { readGeminiRequest } from "../../../src/formats/gemini/request.ts";
import { writeGeminiResponse } from "../../../src/formats/gemini/response.ts";
import { GeminiStream, type StreamForm } from "../../../src/formats/gemini/stream.ts";
import { anyStream } from "../openai-chat/any-stream.ts";
import { REPORT, startOf } from "../openai-chat/scenarios.ts";
import { anyCharacter } from "../../support/any-character.ts";

interface WrittenPart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: object };
  readonly inlineData?: object;
}
interface Written {
  readonly candidates: readonly {
    readonly index: number;
    readonly content: { readonly role: string; readonly parts: readonly WrittenPart[] };
    readonly finishReason?: string;
    readonly logprobsResult?: object;
  }[];
  readonly usageMetadata?: object;
  readonly parley?: object;
}

const names = new FunctionNames();
const FACTS = { nameOf: (path: string) => path, includeThoughts: true, functionNames: names, requestId: "req_1" };
const STOP: Ending = { reason: FinishReason.STOP, native: "" };

/** The chunks of an answer, as a dialect writes them. */
function chunksOf(write: (writer: ChoiceWriter, out: CompletionChunk[]) => void, ending = STOP, usage?: Usage) {
  const out: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  write(writer, out);
  writer.finish(ending, out);
  if (usage !== undefined) out.push(usageChunk(usage));
  return [startOf("m"), ...out, REPORT];
}

function streamOf(
  chunks: readonly CompletionChunk[],
  facts: Partial<typeof FACTS> & { form?: StreamForm } = {},
): string {
  return new GeminiStream({ ...FACTS, form: "events", ...facts }).write(chunks);
}

function objectsOf(stream: string): Written[] {
  expect(stream.endsWith("\n\n")).toBe(true);
  return stream
    .split("\n\n")
    .slice(0, -1)
    .map((event) => {
      expect(event).toMatch(/^data: \{[^\r\n]*\}$/);
      return JSON.parse(event.slice(6)) as Written;
    });
}

function wholeOf(chunks: readonly CompletionChunk[], facts: Partial<typeof FACTS> = {}): Written {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  const { choices, usage } = builder.build();
  const completion: Completion = create(CompletionSchema, { id: "chatcmpl-1", model: "m" });
  completion.choices = [...choices];
  if (usage !== undefined) completion.usage = usage;
  const text = writeGeminiResponse(completion, { ...FACTS, ...facts });
  return JSON.parse(typeof text === "string" ? text : Buffer.concat(text).toString()) as Written;
}

const partsOf = (written: readonly Written[]): WrittenPart[] =>
  written.flatMap(({ candidates }) => candidates.flatMap(({ content }) => content.parts));

const callWith =
  (args: string) =>
  (writer: ChoiceWriter, out: CompletionChunk[]): void => {
    const at = writer.beginCall({ id: "c", name: "f" }, "", out);
    for (const piece of args) writer.arguments(at, piece, out);
  };

describe("an answer in the Gemini format", () => {
  it.each([
    ["STOP", FinishReason.STOP, "end_turn"],
    ["STOP", FinishReason.TOOL_CALLS, "tool_use"],
    ["STOP", FinishReason.PAUSE, "pause_turn"],
    ["MAX_TOKENS", FinishReason.LENGTH, "max_tokens"],
    ["SAFETY", FinishReason.CONTENT_FILTER, "refusal"],
    ["RECITATION", FinishReason.CONTENT_FILTER, "RECITATION"],
    ["OTHER", FinishReason.OTHER, "odd"],
    ["LANGUAGE", FinishReason.OTHER, "LANGUAGE"],
  ])("ends with %s for %s of the provider's %s", (word, reason, native) => {
    const chunks = chunksOf((writer, out) => writer.text({ case: "text", value: "a" }, out), { reason, native });
    expect(wholeOf(chunks).candidates[0]?.finishReason).toBe(word);
    expect(objectsOf(streamOf(chunks)).at(-1)?.candidates[0]?.finishReason).toBe(word);
  });

  it("counts thoughts and cached tokens apart", () => {
    const usage = create(UsageSchema, {
      inputTokens: 10,
      outputTokens: 9,
      totalTokens: 19,
      reasoningOutputTokens: 4,
      cachedInputTokens: 3,
      cachedAudioInputTokens: 1,
      imageOutputTokens: 2,
    });
    const chunks = chunksOf((writer, out) => writer.text({ case: "text", value: "a" }, out), STOP, usage);
    const expected = {
      promptTokenCount: 10,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 4,
      cachedContentTokenCount: 3,
      totalTokenCount: 19,
      cacheTokensDetails: [
        { modality: "TEXT", tokenCount: 2 },
        { modality: "AUDIO", tokenCount: 1 },
      ],
      candidatesTokensDetails: [
        { modality: "TEXT", tokenCount: 3 },
        { modality: "IMAGE", tokenCount: 2 },
      ],
    };
    expect(wholeOf(chunks).usageMetadata).toEqual(expected);
    const objects = objectsOf(streamOf(chunks));
    expect(objects.at(-1)?.usageMetadata).toEqual(expected);
    expect(objects.at(-1)?.parley).toHaveProperty("attempts");
    expect(objects.slice(0, -1).every((one) => one.usageMetadata === undefined && one.parley === undefined)).toBe(true);
  });

  it("says usage in each object of a stream from the one on before which it came", () => {
    const counted = (outputTokens: number) => usageChunk(create(UsageSchema, { inputTokens: 10, outputTokens }));
    const chunks = chunksOf((writer, out) => {
      for (const value of ["a", "b", "c"]) {
        if (value !== "a") out.push(counted(out.length));
        writer.text({ case: "text", value }, out);
      }
    });
    const counts = objectsOf(streamOf(chunks)).map(({ usageMetadata }) => usageMetadata);
    expect(counts).toEqual([
      undefined,
      ...[2, 4, 4].map((count) => expect.objectContaining({ candidatesTokenCount: count }) as object),
    ]);
  });

  it.each([
    ["{}", ""],
    ['{"a":12345678901234567890}', '{"a":12345678901234567890}'],
    ['{ "a": "b\\nc" }', '{\r\n"a":\n"b\\nc"\n}'],
    ['{"arguments":"[1]"}', "[1]"],
    ['{"arguments":"{\\"a\\""}', '{"a"'],
  ])("has the arguments %s", (expected, args) => {
    const chunks = chunksOf(callWith(args));
    for (const part of [partsOf([wholeOf(chunks)])[0], partsOf(objectsOf(streamOf(chunks)))[0]])
      expect(part?.functionCall).toEqual({ id: "c", name: "f", args: JSON.parse(expected) as object });
  });

  it("does not change large numbers", () => {
    const chunks = chunksOf(callWith('{"a":12345678901234567890}'));
    expect(streamOf(chunks)).toContain('"args":{"a":12345678901234567890}');
  });

  it("has a part also when there is no content: clients drop the turn without one", () => {
    const chunks = chunksOf(() => undefined);
    expect(partsOf([wholeOf(chunks)])).toEqual([{ text: "" }]);
    expect(partsOf(objectsOf(streamOf(chunks)))).toEqual([{ text: "" }]);
  });

  it("has blocks of the dialect as parts, and leaves out those of others", () => {
    const block = { executableCode: { language: "PYTHON", code: "1" } };
    const chunks = chunksOf((writer, out) => {
      writer.native({ dialect: "gemini", json: JSON.stringify(block) }, out);
      writer.native({ dialect: "openai", json: "{}" }, out);
    });
    expect(partsOf([wholeOf(chunks)])).toEqual([block]);
    expect(partsOf(objectsOf(streamOf(chunks)))).toEqual([block, { text: "" }]);
  });

  it("has what the provider said of a candidate in its own words", () => {
    const details = { "gemini.safety_ratings": '[{"category":\n"X"}]', "other.x": "{}" };
    const chunks = chunksOf((writer, out) => writer.text({ case: "text", value: "a" }, out), { ...STOP, details });
    expect(wholeOf(chunks).candidates[0]).toMatchObject({ safetyRatings: [{ category: "X" }] });
    expect(objectsOf(streamOf(chunks)).at(-1)?.candidates[0]).toMatchObject({ safetyRatings: [{ category: "X" }] });
  });

  it("has the pages that another dialect cites as grounding", () => {
    const chunks = chunksOf((writer, out) => {
      writer.text({ case: "text", value: "a" }, out);
      for (const title of ["A", "the same"])
        writer.cite(create(CitationSchema, { source: { case: "url", value: "https://a.example" }, title }), out);
    });
    const groundingMetadata = { groundingChunks: [{ web: { uri: "https://a.example", title: "A" } }] };
    expect(wholeOf(chunks).candidates[0]).toMatchObject({ groundingMetadata });
    expect(objectsOf(streamOf(chunks)).at(-1)?.candidates[0]).toMatchObject({ groundingMetadata });
  });

  it("has log probabilities beside the text that they belong to", () => {
    const token = create(TokenLogprobSchema, { token: "a", logprob: -1, top: [{ token: "b", logprob: -2 }] });
    const chunks = chunksOf((writer, out) => writer.text({ case: "text", value: "a" }, out, [token]));
    const expected = {
      chosenCandidates: [{ token: "a", logProbability: -1 }],
      topCandidates: [{ candidates: [{ token: "b", logProbability: -2 }] }],
    };
    expect(wholeOf(chunks).candidates[0]?.logprobsResult).toEqual(expected);
    expect(objectsOf(streamOf(chunks))[0]?.candidates[0]?.logprobsResult).toEqual(expected);
  });

  it("has signatures that are base64, whatever the provider's are: a client refuses the answer otherwise", () => {
    const chunks = chunksOf((writer, out) => writer.sign("text", "not base64!", out));
    const [part] = partsOf([wholeOf(chunks)]);
    expect(part?.thoughtSignature).toMatch(/^[A-Za-z0-9+/]+=*$/);
    const contents = [{ parts: [{ text: "Hi" }] }, { role: "model", parts: [part] }];
    const { messages } = readGeminiRequest(structuredClone({ contents }), "m").request;
    expect(messages[1]?.parts[0]?.signature).toBe("not base64!");
  });

  it("shows thoughts only when asked to, and keeps what proves them either way", () => {
    const chunks = chunksOf((writer, out) => {
      writer.text({ case: "reasoning", value: "Hm" }, out);
      writer.sign("reasoning", "c2ln", out);
      writer.text({ case: "text", value: "A" }, out);
    });
    const written = (includeThoughts: boolean): WrittenPart[] =>
      partsOf(objectsOf(streamOf(chunks, { includeThoughts })));
    expect(written(true).map(({ thought }) => thought)).toEqual([true, undefined, undefined]);
    expect(written(false).map(({ text }) => text)).toEqual(["A", ""]);
    expect(written(false)[0]?.thoughtSignature).toBe(written(true)[1]?.thoughtSignature);
  });
});

describe("a stream in the Gemini format", () => {
  const half = [startOf("m"), ...chunksOf((writer, out) => writer.text({ case: "text", value: "a" }, out)).slice(1, 3)];
  const failure = new Failure("upstream_unavailable", "The provider broke off.");

  it("ends, when it breaks off, with a bare object: most clients take an event for an ordinary piece", () => {
    const stream = new GeminiStream({ ...FACTS, form: "events" });
    stream.write(half);
    const last = stream.fail(failure);
    expect(last).not.toMatch(/^data|\n/);
    expect(JSON.parse(last)).toMatchObject({ error: { code: 503, status: "UNAVAILABLE" } });
  });

  it("is one JSON array without alt=sse, also when it breaks off, before and after its first piece", () => {
    const whole = streamOf([...half, ...chunksOf(() => undefined).slice(1)], { form: "array" });
    expect((JSON.parse(whole) as Written[]).map((one) => partsOf([one])[0]?.text)).toEqual(["a", ""]);
    for (const before of [[], half]) {
      const stream = new GeminiStream({ ...FACTS, form: "array" });
      const text = stream.write(before) + stream.keepAlive + stream.fail(failure);
      expect((JSON.parse(text) as object[]).at(-1)).toMatchObject({ error: { code: 503 } });
    }
  });

  it("says the same however its chunks arrive, with a part in each piece and all ends in the last", () => {
    fc.assert(
      fc.property(anyStream, fc.array(fc.nat(5), { minLength: 1 }), ({ chunks, choices, counted }, sizes) => {
        const atOnce = streamOf(chunks);
        const stream = new GeminiStream({ ...FACTS, form: "events" });
        let inPieces = "";
        for (let at = 0, turn = 0; at < chunks.length; turn++) {
          const size = 1 + sizes[turn % sizes.length]!;
          inPieces += stream.write(chunks.slice(at, at + size));
          at += size;
        }
        expect(inPieces).toBe(atOnce);
        expect(stream.ended).toBe(true);
        const objects = objectsOf(atOnce);
        for (const { candidates } of objects)
          for (const { content } of candidates) {
            expect(content.role).toBe("model");
            expect(content.parts.every((part) => Object.keys(part).length > 0) && content.parts.length > 0).toBe(true);
          }
        expect(objects.at(-1)?.candidates).toHaveLength(choices);
        expect(objects.at(-1)?.candidates.every(({ finishReason }) => finishReason !== undefined)).toBe(true);
        expect(objects.at(-1)?.usageMetadata !== undefined).toBe(counted);
        const told = (index: number): string =>
          objects
            .flatMap(({ candidates }) => candidates.filter((one) => one.index === index))
            .flatMap(({ content }) => content.parts.map((part) => (part.thought ? "" : (part.text ?? ""))))
            .join("");
        const written = wholeOf(chunks);
        for (const { index, content } of written.candidates)
          expect(told(index)).toBe(content.parts.map((part) => (part.thought ? "" : (part.text ?? ""))).join(""));
      }),
    );
  });
});

const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 8 });
const signature = fc.oneof(
  fc.constant(""),
  fc.uint8Array({ minLength: 1, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  fc.constant("not base64!"),
);
/** What may be sent back: reasoning has what proves it. */
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.tuple(text, signature).map(([value, signed]) => toPart({ case: "text", value }, signed)),
  fc.tuple(text, fc.boolean(), text).map(([value, isRedacted, signed]) =>
    toPart(
      {
        case: "reasoning",
        value: { $typeName: "parley.v1.Reasoning", text: isRedacted ? "" : value, redacted: isRedacted ? value : "" },
      },
      isRedacted ? "" : signed,
    ),
  ),
  fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 9 }), signature).map(([data, signed]) => {
    const value = create(ImageSchema, { mediaType: "image/png" });
    value.source = { case: "data", value: Buffer.from(data) };
    return toPart({ case: "image", value }, signed);
  }),
  fc.tuple(fc.nat(9999), fc.dictionary(fc.string(), fc.string()), signature).map(([id, args, signed]) => {
    const input = { case: "argumentsJson", value: JSON.stringify(args) } as const;
    return toPart(
      { case: "toolCall", value: { $typeName: "parley.v1.ToolCall", id: `c${id}`, name: "f", input } },
      signed,
    );
  }),
);

/** The chunks that make these parts. */
function chunksOfParts(parts: readonly Part[]): CompletionChunk[] {
  return chunksOf((writer, out) => {
    for (const part of parts) {
      const { kind, signature: signed } = part;
      if (kind.case === "text") {
        for (const piece of kind.value) writer.text({ case: "text", value: piece }, out);
        if (signed === "") writer.endFlow(out);
        else writer.sign("text", signed, out);
      } else if (kind.case === "reasoning" && kind.value.redacted === "") {
        for (const piece of kind.value.text) writer.text({ case: "reasoning", value: piece }, out);
        writer.sign("reasoning", signed, out);
      } else if (kind.case === "toolCall") {
        const at = writer.beginCall(kind.value, signed, out);
        writer.arguments(at, kind.value.input.value ?? "", out);
        writer.endCall(at, out);
      } else writer.whole(part, out);
    }
  });
}

/** Parts in short, with texts joined as far as no signature is between them. */
function shortened(parts: readonly Part[]): unknown[] {
  const out: { kind: string; value: string; signature: string }[] = [];
  for (const { kind, signature: signed } of parts) {
    const value =
      kind.case === "text"
        ? kind.value
        : kind.case === "image"
          ? Buffer.from(kind.value.source.value as Uint8Array).toString("base64")
          : kind.case === "toolCall"
            ? `${kind.value.id} ${kind.value.name} ${kind.value.input.value}`
            : kind.case === "reasoning"
              ? `${kind.value.text} ${kind.value.redacted}`
              : "";
    const last = out.at(-1);
    if (kind.case === "text" && last?.kind === "text" && last.signature === "") {
      last.value += value;
      last.signature = signed;
    } else out.push({ kind: kind.case ?? "", value, signature: signed });
  }
  return out;
}

describe("an answer that is sent back", () => {
  it("is the same, whole and as the pieces of a stream, with and without its thoughts", () => {
    fc.assert(
      fc.property(fc.array(anyPart, { minLength: 1, maxLength: 6 }), fc.boolean(), (parts, includeThoughts) => {
        const chunks = chunksOfParts(parts);
        const whole = wholeOf(chunks, { includeThoughts }).candidates.map(({ content }) => content);
        const pieces = objectsOf(streamOf(chunks, { includeThoughts })).map(({ candidates }) => candidates[0]!.content);
        for (const contents of [whole, pieces]) {
          const sent = structuredClone({ contents: [{ parts: [{ text: "Hi" }] }, ...contents] });
          const { messages } = readGeminiRequest(sent, "m").request;
          expect(shortened(messages[1]?.parts ?? [])).toEqual(shortened(parts));
        }
      }),
    );
  });
});
