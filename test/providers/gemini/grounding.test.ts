import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Choice, CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { AnswerStream, toAnswer } from "../../../src/providers/gemini/response.ts";
import { fold } from "../../support/fold.ts";
import { checkGrammar } from "../grammar.ts";

const CHUNKS = [{ web: { uri: "https://a.test/", title: "a.test" } }, { web: { uri: "https://b.test/", title: "b" } }];

/** A support of `text`, as the provider writes it: in bytes, and without zeros. */
function supportOf(whole: string, text: string, groundingChunkIndices: readonly number[] = [0]): object {
  const before = whole.slice(0, whole.indexOf(text));
  const startIndex = Buffer.byteLength(before);
  const segment = { ...(startIndex > 0 && { startIndex }), endIndex: startIndex + Buffer.byteLength(text), text };
  return { segment, groundingChunkIndices };
}

const grounding = (...groundingSupports: object[]): object => ({
  groundingMetadata: { groundingChunks: CHUNKS, groundingSupports, webSearchQueries: ["tides"] },
});

const answer = (parts: readonly object[], more: object): object => ({
  candidates: [{ content: { role: "model", parts }, finishReason: "STOP", ...more }],
});

const piece = (parts: readonly object[], more: object = {}): object => ({
  candidates: [{ content: { parts }, ...more }],
});

function readWhole(parts: readonly object[], more: object): Choice {
  return toAnswer(answer(parts, more)).choices[0]!;
}

function readStream(...pieces: readonly object[]): { readonly chunks: CompletionChunk[]; readonly choice: Choice } {
  const reader = new AnswerStream();
  const chunks: CompletionChunk[] = [];
  for (const each of pieces) reader.read({ event: "", data: JSON.stringify(each) }, chunks);
  reader.end(chunks);
  checkGrammar(chunks);
  return { chunks, choice: fold(chunks).choices[0]! };
}

/** The citations of each part, with the text that each range stands for. */
function citationsOf({ message }: Choice): unknown[] {
  return message!.parts.map(({ kind, citations }) =>
    citations.map(({ source, title, textRange }: Citation) => {
      const points = Array.from(kind.case === "text" ? kind.value : "");
      return [source.value, title, textRange && points.slice(textRange.start, textRange.end).join("")];
    }),
  );
}

const TEXT = "Åska 🌩️ är högt. 潮汐 twice a day.";

describe("the grounding of an answer", () => {
  it("becomes citations in code points of a text with characters of several bytes", () => {
    const more = grounding(supportOf(TEXT, "Åska 🌩️ är högt."), supportOf(TEXT, "潮汐 twice", [1, 0]));
    const choice = readWhole([{ text: TEXT }], more);
    expect(citationsOf(choice)).toEqual([
      [
        ["https://a.test/", "a.test", "Åska 🌩️ är högt."],
        ["https://b.test/", "b", "潮汐 twice"],
        ["https://a.test/", "a.test", "潮汐 twice"],
      ],
    ]);
    const points = Array.from(TEXT).length;
    const last = readWhole([{ text: TEXT }], grounding(supportOf(TEXT, "day."))).message!.parts[0]!.citations;
    expect(last).toMatchObject([{ textRange: { start: points - 4, end: points } }]);
  });

  it("is the same in any pieces of a stream, with or before the finish reason, and behind the signature", () => {
    const more = grounding(supportOf(TEXT, "🌩️"), supportOf(TEXT, "潮汐"));
    const pieces = fc.array(fc.nat(TEXT.length), { maxLength: 5 }).map((cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), TEXT.length];
      return at.slice(1).map((to, index) => TEXT.slice(at[index], to));
    });
    const ends = fc.constantFrom<object[][]>(
      [piece([], { finishReason: "STOP", ...more })],
      [piece([{ text: "" }], more), piece([], { finishReason: "STOP", groundingMetadata: {} })],
      [piece([{ text: "", thoughtSignature: "c2ln" }], { finishReason: "STOP", ...more })],
      [piece([{ text: "", thoughtSignature: "c2ln" }]), piece([], { finishReason: "STOP" }), piece([], more)],
    );
    fc.assert(
      fc.property(pieces, ends, (texts, end) => {
        const { choice } = readStream(...texts.map((text) => piece([{ text }])), ...end);
        expect(citationsOf(choice)).toEqual([
          [
            ["https://a.test/", "a.test", "🌩️"],
            ["https://a.test/", "a.test", "潮汐"],
          ],
        ]);
        expect(choice.message!.parts[0]!.signature).toBe(JSON.stringify(end).includes("c2ln") ? "c2ln" : "");
      }),
    );
  });

  it("comes before the end of its part in a stream, and the text at once", () => {
    const reader = new AnswerStream();
    const kinds = (event: object): unknown[] => {
      const chunks: CompletionChunk[] = [];
      reader.read({ event: "", data: JSON.stringify(event) }, chunks);
      return chunks.map(({ event: { case: kind, value } }) => (kind === "partDelta" ? value.content.case : kind));
    };
    expect(kinds(piece([{ text: "a" }]))).toEqual(["partStart", "text"]);
    expect(kinds(piece([{ text: "b" }], { finishReason: "STOP", ...grounding(supportOf("ab", "b")) }))).toEqual([
      "text",
    ]);
    const end: CompletionChunk[] = [];
    reader.end(end);
    expect(end.map(({ event }) => event.case)).toEqual(["partDelta", "partFinish", "choiceFinish"]);
  });

  it("belongs to the last text, and only while nothing follows it", () => {
    const code = { executableCode: { code: "1" } };
    const more = grounding(supportOf("b", "b"));
    expect(citationsOf(readWhole([{ text: "a" }, code, { text: "b" }], more))).toEqual([
      [],
      [],
      [["https://a.test/", "a.test", "b"]],
    ]);
    const before = readWhole([{ text: "b" }, code], more);
    expect(citationsOf(before)).toEqual([[], []]);
    expect(before.providerDetailsJson).toHaveProperty(["gemini.grounding_metadata"]);
  });

  it.each<[string, object[]]>([
    ["of another text", [supportOf("xyz twice", "twice")]],
    ["beyond the text", [{ segment: { startIndex: 1, endIndex: 99 }, groundingChunkIndices: [0] }]],
    ["of nothing", [{ segment: { startIndex: 3, endIndex: 3 }, groundingChunkIndices: [0] }, {}, { segment: null }]],
    ["without a source", [{ segment: { endIndex: 3 }, groundingChunkIndices: [7, "0", -1, null] }]],
    ["of anything", [5, null, "x", []] as unknown as object[]],
  ])("cites nothing for a segment %s", (_, supports) => {
    expect(citationsOf(readWhole([{ text: "Once a day." }], grounding(...supports)))).toEqual([[]]);
  });

  it("has sources without an address only in the details", () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { title: "a" } }, { retrievedContext: { uri: "x" } }],
      groundingSupports: [{ segment: { endIndex: 1 }, groundingChunkIndices: [0, 1] }],
    };
    expect(citationsOf(readWhole([{ text: "a" }], { groundingMetadata }))).toEqual([[]]);
  });

  it("has at most 1,000 citations", () => {
    const support = { segment: { endIndex: 1 }, groundingChunkIndices: Array.from({ length: 700 }, () => 0) };
    const { message } = readWhole([{ text: "a" }], grounding(support, support));
    expect(message!.parts[0]!.citations).toHaveLength(1000);
  });
});

describe("what a provider says beside its answer", () => {
  const safetyRatings = [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }];
  const citationMetadata = { citationSources: [{ startIndex: 1, endIndex: 2, uri: "https://a.test/" }] };
  const urlContextMetadata = { urlMetadata: [{ retrievedUrl: "https://a.test/" }] };

  it("is in the details of its choice, whole and streamed", () => {
    const more = { safetyRatings, citationMetadata, urlContextMetadata, ...grounding(supportOf("a", "a")) };
    const expected = {
      "gemini.safety_ratings": JSON.stringify(safetyRatings),
      "gemini.citation_metadata": JSON.stringify(citationMetadata),
      "gemini.url_context_metadata": JSON.stringify(urlContextMetadata),
      "gemini.grounding_metadata": JSON.stringify((more as { groundingMetadata?: object }).groundingMetadata),
    };
    expect(readWhole([{ text: "a" }], more).providerDetailsJson).toEqual(expected);
    const { choice } = readStream(
      piece([{ text: "a" }], { safetyRatings: [{ category: "old" }] }),
      piece([], { finishReason: "STOP", ...more }),
    );
    expect(choice.providerDetailsJson).toEqual(expected);
  });

  it("is nothing for most answers, and for empty values", () => {
    expect(readWhole([{ text: "a" }], {}).providerDetailsJson).toEqual({});
    const empty = { safetyRatings: [], groundingMetadata: {}, citationMetadata: null, urlContextMetadata: "" };
    expect(readWhole([{ text: "a" }], empty).providerDetailsJson).toEqual({});
  });

  it("is there when the answer was withheld", () => {
    const { choices } = toAnswer({ candidates: [{ finishReason: "SAFETY", safetyRatings }] });
    expect(choices).toMatchObject([
      { message: { parts: [] }, providerDetailsJson: { "gemini.safety_ratings": JSON.stringify(safetyRatings) } },
    ]);
  });

  it("is dropped above 256 KiB of JSON, and cites nothing then", () => {
    const of = (bytes: number): object => {
      const { groundingMetadata } = grounding(supportOf("a", "a")) as { groundingMetadata: object };
      const length = JSON.stringify({ ...groundingMetadata, filler: "" }).length;
      return { groundingMetadata: { ...groundingMetadata, filler: "x".repeat(bytes - length) }, safetyRatings };
    };
    const kept = readWhole([{ text: "a" }], of(256 * 1024));
    expect(Object.keys(kept.providerDetailsJson)).toHaveLength(2);
    expect(citationsOf(kept)).toEqual([[["https://a.test/", "a.test", "a"]]]);
    const dropped = readWhole([{ text: "a" }], of(256 * 1024 + 1));
    expect(Object.keys(dropped.providerDetailsJson)).toEqual(["gemini.safety_ratings"]);
    expect(citationsOf(dropped)).toEqual([[]]);
  });
});
