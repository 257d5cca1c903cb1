import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { CompletionSchema, type CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { type Embeddings, EmbeddingsSchema } from "../../gen/parley/v1/embedding_pb.js";
import { ImageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { ReportSchema } from "../../gen/parley/v1/report_pb.js";
import { ChoiceWriter, toPart } from "../../src/core/chunks.ts";
import { readBatchEmbedContents } from "../../src/formats/gemini/embeddings.ts";
import { readEmbeddingRequest } from "../../src/formats/openai-embeddings/request.ts";
import { readImageRequest } from "../../src/formats/openai-images/request.ts";
import { toEmbeddingRequest as toGemini } from "../../src/providers/gemini/embeddings.ts";
import { toEmbeddingRequest as toOpenAi } from "../../src/providers/openai/embeddings.ts";
import { modelThat } from "../providers/openai/model.ts";
import { anyCharacter } from "../support/any-character.ts";

/* Embeddings and pictures, from a format to the contract and back. */

type Json = Readonly<Record<string, unknown>>;

const TEXTS = fc.array(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 });
const DIMENSIONS = fc.option(fc.integer({ min: 1, max: 4_096 }), { nil: undefined });
const VECTORS = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 })).chain(([count, length]) => {
  const value = fc.float({ noNaN: true, noDefaultInfinity: true });
  return fc.array(fc.array(value, { minLength: length, maxLength: length }), { minLength: count, maxLength: count });
});
const model = modelThat();

const embeddingsOf = (vectors: readonly (readonly number[])[]): Embeddings =>
  create(EmbeddingsSchema, {
    model: "m",
    embeddings: vectors.map((values, index) => ({ index, values: [...values] })),
    usage: { inputTokens: 3 },
  });
const written = (pieces: Iterable<Buffer>): Json => JSON.parse(Buffer.concat([...pieces]).toString()) as Json;
const bodyOf = ({ body }: { readonly body: Buffer }): Json => JSON.parse(body.toString()) as Json;
/** -0 is 0 in JSON. */
const plain = (vectors: readonly (readonly number[])[]): number[][] =>
  vectors.map((each) => each.map((one) => one + 0));

it("a request for embeddings reaches a provider of its dialect with the same texts", () => {
  fc.assert(
    fc.property(TEXTS, DIMENSIONS, fc.option(fc.string(), { nil: undefined }), (input, dimensions, user) => {
      const { request, unrecognized } = readEmbeddingRequest({ json: { model: "m", input, dimensions, user } });
      expect(unrecognized).toEqual([]);
      const { encoding_format: _, ...sent } = bodyOf(toOpenAi(request, model));
      expect(sent).toEqual(JSON.parse(JSON.stringify({ model: model.name, input, dimensions, user })));
      const { encoding_format: _same, ...again } = bodyOf(
        toOpenAi(readEmbeddingRequest({ json: sent }).request, model),
      );
      expect(again).toEqual(sent);
    }),
  );
});

it("a batch of Gemini's reaches a provider of its dialect with the same texts", () => {
  fc.assert(
    fc.property(TEXTS, DIMENSIONS, (texts, outputDimensionality) => {
      const requests = texts.map((text) => ({ content: { parts: [{ text }] }, outputDimensionality }));
      const { request } = readBatchEmbedContents({ json: structuredClone({ requests }) }, "m");
      const sent = bodyOf(toGemini(request, model)) as { requests: Json[] };
      expect(sent.requests).toMatchObject(JSON.parse(JSON.stringify(requests)) as Json[]);
      expect(bodyOf(toGemini(readBatchEmbedContents({ json: structuredClone(sent) }, "m").request, model))).toEqual(
        sent,
      );
    }),
  );
});

it("vectors are the same in each format, as numbers and as base64", () => {
  fc.assert(
    fc.property(VECTORS, (vectors) => {
      const answer = (): Embeddings => embeddingsOf(vectors);
      const numbers = written(readEmbeddingRequest({ json: { model: "m", input: "a" } }).write(answer()));
      const encoding_format = "base64";
      const base64 = written(
        readEmbeddingRequest({ json: { model: "m", input: "a", encoding_format } }).write(answer()),
      );
      const gemini = written(readBatchEmbedContents({ json: { requests: [] } }, "m").write(answer()));
      const decode = (text: string): number[] => {
        const bytes = Buffer.from(text, "base64");
        return vectors[0]!.map((_, at) => bytes.readFloatLE(at * 4));
      };
      type Data = { readonly embedding: never; readonly index: number }[];
      expect((numbers["data"] as Data).map(({ embedding }) => embedding as number[])).toEqual(plain(vectors));
      expect(plain((base64["data"] as Data).map(({ embedding }) => decode(embedding)))).toEqual(plain(vectors));
      expect((gemini["embeddings"] as { values: number[] }[]).map(({ values }) => values)).toEqual(plain(vectors));
    }),
  );
});

it("pictures are the same whole and streamed, in their order", () => {
  const pictures = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(pictures, fc.constantFrom("png", "webp"), fc.string({ minLength: 1 }), (data, type, prompt) => {
      const { request, writeWhole, writeStream } = readImageRequest({ json: { model: "m", prompt, stream: true } });
      expect(request.messages[0]!.parts.map(({ kind }) => kind)).toEqual([{ case: "text", value: prompt }]);
      const parts = data.map((value) =>
        toPart({
          case: "image",
          value: create(ImageSchema, { source: { case: "data", value }, mediaType: `image/${type}` }),
        }),
      );
      const whole = create(CompletionSchema, { choices: [{ message: { role: Role.ASSISTANT, parts } }] });
      const chunks: CompletionChunk[] = [];
      const writer = new ChoiceWriter(0);
      for (const part of parts) writer.whole(part, chunks);
      const report: CompletionChunk["event"] = {
        case: "report",
        value: create(ReportSchema),
      };
      const events = writeStream().write([...chunks, { $typeName: "parley.v1.CompletionChunk", event: report }]);
      const expected = data.map((each) => Buffer.from(each).toString("base64"));
      const text = writeWhole(whole);
      const list = JSON.parse(typeof text === "string" ? text : [...text].join("")) as Json;
      expect((list["data"] as { b64_json: string }[]).map((each) => each.b64_json)).toEqual(expected);
      expect([...events.matchAll(/"b64_json":"([^"]*)"/g)].map(([, each]) => each)).toEqual(expected);
      expect(list["output_format"]).toBe(type);
    }),
  );
});
