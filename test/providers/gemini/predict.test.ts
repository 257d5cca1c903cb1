import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingRequestSchema, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { toPredictAnswer, toPredictRequest } from "../../../src/providers/gemini/predict.ts";
import { toInputs } from "../../support/embedding-inputs.ts";
import { failureOf } from "../../support/errors.ts";
import { flash } from "./model.ts";

const model = { ...flash(), capabilities: { ...flash().capabilities, embeddingDimensions: true } };
const request = (init: object) => create(EmbeddingRequestSchema, { model: "m", inputs: toInputs(["a", "b"]), ...init });
const bodyOf = (...parts: Parameters<typeof toPredictRequest>): unknown =>
  JSON.parse(toPredictRequest(...parts).body.toString());

/** A prediction as Vertex AI answers it. Source: "Text embeddings API", docs.cloud.google.com, November 2026. */
const prediction = (values: readonly unknown[], token_count?: number) => ({
  embeddings: { values, statistics: { truncated: false, token_count } },
});

describe("a request for vectors at Vertex AI", () => {
  it("has an instance for each input, and is refused rather than cut when one is too long", () => {
    const asked = request({ dimensions: 256, task: EmbeddingTask.QUERY });
    expect(bodyOf(asked, model)).toEqual({
      instances: [
        { content: "a", task_type: "RETRIEVAL_QUERY" },
        { content: "b", task_type: "RETRIEVAL_QUERY" },
      ],
      parameters: { autoTruncate: false, outputDimensionality: 256 },
    });
  });

  it("reports what the service does not have", () => {
    const plain = { ...model, capabilities: { ...model.capabilities, embeddingDimensions: false } };
    const { omitted } = toPredictRequest(request({ dimensions: 256, endUserId: "u" }), plain);
    expect(omitted.map(({ field }) => field)).toEqual(["dimensions", "end_user_id"]);
  });

  it("has at most 250 inputs", () => {
    const many = request({ inputs: toInputs(Array.from({ length: 251 }, () => "a")) });
    expect(failureOf(() => toPredictRequest(many, model))).toMatchObject({ code: "invalid_request", param: "inputs" });
  });
});

describe("vectors of Vertex AI", () => {
  it("are in the order of the inputs, with the sum of their tokens", async () => {
    const json = { predictions: [prediction([0.5, -1], 3), prediction([0, 1], 4)] };
    const { vectors, usage } = await toPredictAnswer(json, 2);
    expect(vectors).toEqual([
      [0.5, -1],
      [0, 1],
    ]);
    expect(usage).toMatchObject({ inputTokens: 7 });
  });

  it("have no count when one of them has none", async () => {
    const { usage } = await toPredictAnswer({ predictions: [prediction([1], 3), prediction([1])] }, 2);
    expect(usage).toBeUndefined();
  });

  it.each([
    ["another number of vectors", { predictions: [prediction([1], 1)] }, "upstream_protocol"],
    ["no numbers", { predictions: [prediction(["1"], 1), prediction([1], 1)] }, "upstream_protocol"],
    [
      "an error",
      { error: { code: 429, message: "Quota exceeded", status: "RESOURCE_EXHAUSTED" } },
      "upstream_rate_limited",
    ],
  ])("are refused with %s", async (_, json, code) => {
    await expect(toPredictAnswer(json, 2)).rejects.toMatchObject({ code });
  });
});
