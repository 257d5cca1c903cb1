import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingsSchema, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { readBatchEmbedContents, readEmbedContent } from "../../../src/formats/gemini/embeddings.ts";
import { readEmbeddingRequest } from "../../../src/formats/openai-embeddings/request.ts";
import { writeEmbeddings } from "../../../src/formats/openai-embeddings/response.ts";
import { failureOf } from "../../support/failure-of.ts";

const ANSWER = create(EmbeddingsSchema, {
  model: "fx-e",
  embeddings: [{ values: [0.5, -0.25, 0.125] }, { values: [1, 0, -1] }],
  usage: { inputTokens: 2, totalTokens: 2 },
});

const fixture = (file: string): object =>
  JSON.parse(
    readFileSync(new URL(`../../fixtures/formats/e01-embeddings-base64/${file}`, import.meta.url), "utf8"),
  ) as object;

describe("embeddings in the OpenAI format", () => {
  it("are those of the fixture e01", () => {
    const read = readEmbeddingRequest(fixture("caller-request.json"));
    expect(read.request).toMatchObject({ model: "fx-e", inputs: ["a", "b"], dimensions: 3 });
    expect(JSON.parse(writeEmbeddings(ANSWER, read))).toEqual(fixture("expected-reply.json"));
  });

  it("are numbers unless base64 is asked for, and have a usage also when nothing was counted", () => {
    const read = readEmbeddingRequest({ model: "m", input: "a", surprise: 1, user: "u" });
    expect(read).toMatchObject({ unrecognized: ["surprise"], request: { inputs: ["a"], endUserId: "u" } });
    const { usage: _, ...uncounted } = ANSWER;
    expect(JSON.parse(writeEmbeddings(uncounted, read))).toMatchObject({
      data: [{ embedding: [0.5, -0.25, 0.125] }, { embedding: [1, 0, -1] }],
      usage: { prompt_tokens: 0, total_tokens: 0 },
    });
  });

  it("name the caller's fields", () => {
    const { nameOf } = readEmbeddingRequest({ model: "m", input: "a" });
    expect(["inputs", "inputs[0]", "end_user_id", "dimensions"].map(nameOf)).toEqual([
      "input",
      "input",
      "user",
      "dimensions",
    ]);
    expect(readEmbeddingRequest({ model: "m", input: ["a"] }).nameOf("inputs[0]")).toBe("input[0]");
    expect(failureOf(() => readEmbeddingRequest({ model: "m", input: [[1]] })).param).toBe("input[0]");
    expect(failureOf(() => readEmbeddingRequest({ model: "m" })).param).toBe("input");
  });
});

describe("embeddings in the Gemini format", () => {
  const input = (json: object) => ({ json, headers: {}, query: new URLSearchParams(), requestId: "req_1" });
  const one = (text: string, more: object = {}): object => ({ content: { parts: [{ text }] }, ...more });

  it("are one vector, or one for each request", () => {
    const single = readEmbedContent(
      input(one("a", { task_type: "RETRIEVAL_QUERY", output_dimensionality: 3 })),
      "models/m",
    );
    expect(single.request).toMatchObject({ model: "m", inputs: ["a"], task: EmbeddingTask.QUERY, dimensions: 3 });
    expect(JSON.parse(single.write(ANSWER) as string)).toMatchObject({ embedding: { values: [0.5, -0.25, 0.125] } });
    const batch = readBatchEmbedContents(input({ requests: [one("a"), one("b", { title: "t" })] }), "m");
    expect(batch.request.inputs).toEqual(["a", "b"]);
    expect(batch.unrecognized).toEqual(["requests[1].title"]);
    expect(JSON.parse(batch.write(ANSWER) as string)).toMatchObject({
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

  it.each([
    ["requests[1].taskType", { requests: [one("a"), one("b", { taskType: "CLUSTERING" })] }],
    ["requests[0].taskType", { requests: [one("a", { taskType: "X" })] }],
    ["requests[0].content.parts[0]", { requests: [{ content: { parts: [{}] } }] }],
    ["requests", {}],
  ])("are refused at %s", (field, json) => {
    expect(failureOf(() => readBatchEmbedContents(input(json), "m")).param).toBe(field);
  });
});
