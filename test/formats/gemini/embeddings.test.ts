import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingsSchema, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { readBatchEmbedContents, readEmbedContent } from "../../../src/formats/gemini/embeddings.ts";
import { failureOf } from "../../support/errors.ts";

const ANSWER = create(EmbeddingsSchema, {
  model: "fx-e",
  embeddings: [{ values: [0.5, -0.25, 0.125] }, { values: [1, 0, -1] }],
  usage: { inputTokens: 2, totalTokens: 2 },
});

/** The JSON that is written. */
function written({ write }: ReturnType<typeof readEmbedContent>): unknown {
  return JSON.parse(Buffer.concat([...write(structuredClone(ANSWER))]).toString());
}

describe("embeddings in the Gemini format", () => {
  const input = (json: object) => ({ json, headers: {}, query: new URLSearchParams(), requestId: "req_1" });
  const one = (text: string, more: object = {}): object => ({ content: { parts: [{ text }] }, ...more });

  it("are one vector, or one for each request", async () => {
    const single = readEmbedContent(
      input(one("a", { task_type: "RETRIEVAL_QUERY", output_dimensionality: 3 })),
      "models/m",
    );
    expect(single.request).toMatchObject({
      model: "m",
      inputs: [{ kind: { case: "text", value: "a" } }],
      task: EmbeddingTask.QUERY,
      dimensions: 3,
    });
    expect(written(single)).toMatchObject({ embedding: { values: [0.5, -0.25, 0.125] } });
    const batch = readBatchEmbedContents(input({ requests: [one("a"), one("b", { title: "t" })] }), "m");
    expect(batch.request.inputs.map(({ kind }) => kind.value)).toEqual(["a", "b"]);
    expect(batch.unrecognized).toEqual(["requests[1].title"]);
    expect(written(batch)).toMatchObject({
      embeddings: [{ values: [0.5, -0.25, 0.125] }, { values: [1, 0, -1] }],
      usageMetadata: { promptTokenCount: 2 },
    });
    expect(["inputs", "inputs[1]", "dimensions", "task"].map(batch.nameOf)).toEqual([
      "requests",
      "requests[1].content",
      "requests[0].outputDimensionality",
      "requests[0].taskType",
    ]);
  });

  it("list fields that are not passed on, and are strict when asked", () => {
    const single = readEmbedContent(input(one("a", { title: "t", colour: 1, parley: { strict: true } })), "m");
    expect(single.unrecognized).toEqual(["title", "colour"]);
    expect(single.request.strict).toBe(true);
    const requests = [one("a", { title: null, parley: {} }), one("b", { colour: 1 })];
    const batch = readBatchEmbedContents(input({ requests, shape: "round", parley: { strict: true } }), "m");
    expect(batch.unrecognized).toEqual(["shape", "requests[0].parley", "requests[1].colour"]);
    expect(batch.request.strict).toBe(true);
    const many = readEmbedContent(
      input(one("a", Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, 1])))),
      "m",
    );
    expect(many.unrecognized).toHaveLength(64);
  });

  it.each([
    ["requests[1].taskType", { requests: [one("a"), one("b", { taskType: "CLUSTERING" })] }],
    ["requests[0].taskType", { requests: [one("a", { taskType: "X" })] }],
    ["requests[0].content.parts[0]", { requests: [{ content: { parts: [{}] } }] }],
    ["requests", {}],
  ])("are refused at %s", (field, json) => {
    expect(failureOf(() => readBatchEmbedContents(input(json), "m")).param).toBe(field);
  });
});
