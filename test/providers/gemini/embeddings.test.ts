import { readFileSync } from "node:fs";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingRequestSchema, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import type { Capabilities } from "../../../src/core/provider.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "../../../src/providers/gemini/embeddings.ts";
import { failureOf } from "../../support/errors.ts";
import { modelThat } from "../openai/model.ts";
import { toInputs } from "../../support/embedding-inputs.ts";

const read = (file: string): unknown =>
  JSON.parse(readFileSync(new URL(`../fixtures/gemini-embeddings/${file}`, import.meta.url), "utf8"));
const TEXTS = ["the cat", "ein Hund"];

const translate = (
  asked: MessageInitShape<typeof EmbeddingRequestSchema>,
  can: Partial<Capabilities> = {},
  name = "gemini-embedding-001",
) =>
  toEmbeddingRequest(create(EmbeddingRequestSchema, { inputs: toInputs(TEXTS), ...asked }), modelThat(can, { name }));

const omitted = ({ omitted: fields }: { omitted: readonly { field: string }[] }): string[] =>
  fields.map(({ field }) => field);

describe("a request for embeddings", () => {
  it("becomes the body of batchEmbedContents, with a task and dimensions for each input", () => {
    const translation = translate({ dimensions: 3, task: EmbeddingTask.DOCUMENT });
    expect(JSON.parse(translation.body.toString())).toEqual(read("upstream-request.json"));
    expect(omitted(translation)).toEqual([]);
  });

  it.each([
    [EmbeddingTask.UNSPECIFIED, undefined],
    [EmbeddingTask.QUERY, "RETRIEVAL_QUERY"],
    [EmbeddingTask.SIMILARITY, "SEMANTIC_SIMILARITY"],
    [EmbeddingTask.CLASSIFICATION, "CLASSIFICATION"],
    [EmbeddingTask.CLUSTERING, "CLUSTERING"],
  ])("has the provider's word for task %i: %s", (task, word) => {
    expect(JSON.parse(translate({ task }).body.toString()).requests[0].taskType).toBe(word);
  });

  it("names a model with its own collection as it is", () => {
    const { body } = translate({}, {}, "tunedModels/mine");
    expect(JSON.parse(body.toString()).requests[0].model).toBe("tunedModels/mine");
  });

  it("is without the end user's ID and unsupported dimensions, which are reported", () => {
    const translation = translate({ dimensions: 3, endUserId: "u" }, { embeddingDimensions: false });
    expect(JSON.parse(translation.body.toString()).requests[0]).not.toHaveProperty("outputDimensionality");
    expect(omitted(translation)).toEqual(["dimensions", "end_user_id"]);
  });

  it("is refused with more inputs than the provider takes", () => {
    expect(() => translate({ inputs: toInputs(Array<string>(100).fill("a")) })).not.toThrow();
    expect(failureOf(() => translate({ inputs: toInputs(Array<string>(101).fill("a")) }))).toMatchObject({
      code: "invalid_request",
      param: "inputs",
    });
  });

  it("is bounded by the bytes of its inputs, and has no output", () => {
    expect(translate({}).sent).toMatchObject({ textBytes: 7 + 8 + 2 * 4, maxTokens: 0 });
  });
});

describe("an answer with embeddings", () => {
  it("has the vectors in the order of the inputs, and no usage", async () => {
    expect(await toEmbeddingAnswer(read("upstream-response.json"), 2)).toEqual({
      vectors: [
        [-0.022374, -0.004567, 0.013305],
        [0.0101, 0.00001, -0.7],
      ],
      usage: undefined,
    });
  });

  it("has the provider's count where there is one", async () => {
    const json = { embeddings: [{ values: [1] }], usageMetadata: { promptTokenCount: 3 } };
    expect((await toEmbeddingAnswer(json, 1)).usage).toMatchObject({ inputTokens: 3, outputTokens: 0 });
  });

  it.each([
    ["no vectors", {}],
    ["fewer vectors than inputs", { embeddings: [{ values: [1] }] }],
    ["vectors of different lengths", { embeddings: [{ values: [1] }, { values: [1, 2] }] }],
    ["an empty vector", { embeddings: [{ values: [] }, { values: [] }] }],
    ["a text in a vector", { embeddings: [{ values: [1] }, { values: ["1"] }] }],
  ])("with %s is upstream_protocol", async (_, json) => {
    await expect(toEmbeddingAnswer(json, 2)).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("may be an error object", async () => {
    const json = { error: { code: 503, message: "overloaded", status: "UNAVAILABLE" } };
    await expect(toEmbeddingAnswer(json, 1)).rejects.toMatchObject({
      code: "upstream_unavailable",
      detail: "upstream_overloaded",
    });
  });
});
