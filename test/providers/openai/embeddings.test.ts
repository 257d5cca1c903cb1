import { readFileSync } from "node:fs";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingRequestSchema, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "../../../src/providers/openai/embeddings.ts";
import { modelThat } from "./model.ts";
import { toInputs } from "../../support/embedding-inputs.ts";

const read = (file: string): unknown =>
  JSON.parse(readFileSync(new URL(`../fixtures/openai-embeddings/${file}`, import.meta.url), "utf8"));
const TEXTS = ["the cat", "ein Hund"];

const translate = (asked: MessageInitShape<typeof EmbeddingRequestSchema>, can = {}) =>
  toEmbeddingRequest(
    create(EmbeddingRequestSchema, { inputs: toInputs(TEXTS), ...asked }),
    modelThat(can, { name: "text-embedding-3-small" }),
  );

const omitted = ({ omitted: fields }: { omitted: readonly { field: string }[] }): string[] =>
  fields.map(({ field }) => field);

describe("a request for embeddings", () => {
  it("becomes the body of POST /embeddings", () => {
    const translation = translate({ dimensions: 4, endUserId: "u-7" });
    expect(JSON.parse(translation.body.toString())).toEqual(read("upstream-request.json"));
    expect(omitted(translation)).toEqual([]);
  });

  it("is without a task, which is reported", () => {
    expect(omitted(translate({ task: EmbeddingTask.QUERY }))).toEqual(["task"]);
  });

  it("is without dimensions for a model that has one length only, which is reported", () => {
    const translation = translate({ dimensions: 4 }, { embeddingDimensions: false });
    expect(JSON.parse(translation.body.toString())).not.toHaveProperty("dimensions");
    expect(omitted(translation)).toEqual(["dimensions"]);
  });

  it("is bounded by the bytes of its inputs, whatever their JSON needs, and has no output", () => {
    const { sent, streamed } = translate({ inputs: toInputs(['"'.repeat(100), "ü"]) });
    expect(sent).toMatchObject({ textBytes: 100 + 4 + 2 + 4, maxTokens: 0 });
    expect(streamed).toBe(false);
  });
});

describe("an answer with embeddings", () => {
  it("has the vectors in the order of the inputs, decoded from base64, and the tokens of the prompt", async () => {
    const { vectors, usage } = await toEmbeddingAnswer(read("upstream-response.json"), 2);
    expect(vectors).toEqual([[0.1, 0.2, -0.3, 0].map(Math.fround), [0.5, -0.25, 0.125, 1]]);
    expect(usage).toMatchObject({ inputTokens: 6, outputTokens: 0, totalTokens: 6 });
  });

  it("may have lists of numbers, and only a total of tokens", async () => {
    const { vectors, usage } = await toEmbeddingAnswer(read("float-response.json"), 2);
    expect(vectors).toEqual([
      [0.1, -0.00001, 0.003],
      [0.25, 1, -0.006929283495992422],
    ]);
    expect(usage).toMatchObject({ inputTokens: 6 });
  });

  it("has no usage where the server says nothing", async () => {
    expect(await toEmbeddingAnswer({ data: [{ embedding: [1] }] }, 1)).toEqual({ vectors: [[1]], usage: undefined });
  });

  const one = { index: 0, embedding: [1, 2] };
  it.each([
    ["no vectors", {}],
    ["fewer vectors than inputs", { data: [one] }],
    ["more vectors than inputs", { data: [one, { ...one, index: 1 }, { ...one, index: 2 }] }],
    ["the same index twice", { data: [one, one] }],
    ["an index beyond the inputs", { data: [one, { ...one, index: 2 }] }],
    ["vectors of different lengths", { data: [one, { index: 1, embedding: [1] }] }],
    ["an empty vector", { data: [one, { index: 1, embedding: [] }] }],
    ["an empty base64 text", { data: [one, { index: 1, embedding: "" }] }],
    ["base64 that is no list of 32-bit numbers", { data: [one, { index: 1, embedding: "AAAAAAA=" }] }],
    ["NaN in base64", { data: [one, { index: 1, embedding: "AADAfwAAwH8=" }] }],
    ["a null for NaN", { data: [one, { index: 1, embedding: [1, null] }] }],
    ["a number that 32 bits cannot hold", { data: [one, { index: 1, embedding: [1, 1e39] }] }],
    ["longer vectors than any model has", { data: [one, { index: 1, embedding: Array<number>(65_537).fill(1) }] }],
    ["a longer vector in base64", { data: [one, { index: 1, embedding: "AACAPw==".repeat(100_000) }] }],
    ["no object", "vectors"],
  ])("with %s is upstream_protocol", async (_, json) => {
    await expect(toEmbeddingAnswer(json, 2)).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("may be an error object, which is classified as in completions", async () => {
    const error = { error: { message: "Input is too long", code: "context_length_exceeded" } };
    const answer = toEmbeddingAnswer(error, 1);
    await expect(answer).rejects.toBeInstanceOf(Failure);
    await expect(answer).rejects.toMatchObject({
      code: "upstream_rejected",
      detail: "context_length_exceeded",
      param: "inputs",
    });
  });
});
