import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EmbeddingsSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { readEmbeddingRequest } from "../../../src/formats/openai-embeddings/request.ts";
import { toInputs } from "../../support/embedding-inputs.ts";
import { failureOf } from "../../support/errors.ts";

const read = (json: object) => readEmbeddingRequest({ json });

const refusalOf = (json: object): Failure => failureOf(() => read(json));

describe("an embedding request", () => {
  it("has all its fields in the contract", () => {
    const json = {
      model: "m",
      input: ["a", "b"],
      encoding_format: "base64",
      dimensions: 3,
      user: "u",
      parley: { strict: true },
    };
    const { request, unrecognized } = read(json);
    expect(request).toMatchObject({
      model: "m",
      inputs: toInputs(["a", "b"]),
      dimensions: 3,
      endUserId: "u",
      strict: true,
    });
    expect(unrecognized).toEqual([]);
  });

  it("may be one text, and have nulls", () => {
    const json = { model: "m", input: "a", dimensions: null, user: null, encoding_format: null };
    const { request } = read(json);
    expect(request.inputs).toEqual(toInputs(["a"]));
    expect(request).not.toHaveProperty("dimensions");
    expect(request).not.toHaveProperty("endUserId");
  });

  it("names its unknown keys, and the caller's fields", () => {
    const { unrecognized, nameOf } = read({ model: "m", input: "a", later: 1 });
    expect(unrecognized).toEqual(["later"]);
    expect(["inputs[3]", "inputs", "end_user_id", "dimensions"].map(nameOf)).toEqual([
      "input[3]",
      "input",
      "user",
      "dimensions",
    ]);
  });

  it.each([
    [{ model: "m", input: [1, 2] }, "input: must be texts: token IDs are those of one model, and are not passed on."],
    [{ model: "m", input: [[1]] }, "input: must be texts: token IDs are those of one model, and are not passed on."],
    [{ model: "m" }, "input: is required."],
    [{ input: "a" }, "model: is required."],
    [{ model: "m", input: "a", encoding_format: "hex" }, "encoding_format: must be float or base64."],
    [{ model: "m", input: "a", dimensions: 1.5 }, "dimensions: must be a whole number."],
    [{ model: "m", input: "a", dimensions: 2 ** 40 }, "dimensions: is out of range."],
  ])("is refused: %j", (json, message) => {
    expect(refusalOf(json)).toMatchObject({ code: "invalid_request", message });
  });

  it("keeps no more texts than are needed to refuse it", () => {
    const { request } = read({ model: "m", input: Array.from({ length: 500_000 }, () => "a") });
    expect(request.inputs).toHaveLength(2_049);
  });
});

describe("the fixture e01", () => {
  const fixture = (file: string): object =>
    JSON.parse(
      readFileSync(new URL(`../../fixtures/formats/e01-embeddings-base64/${file}`, import.meta.url), "utf8"),
    ) as object;

  it("is answered as clients expect", () => {
    const answer = create(EmbeddingsSchema, {
      model: "fx-e",
      embeddings: [{ values: [0.5, -0.25, 0.125] }, { values: [1, 0, -1] }],
      usage: { inputTokens: 2, totalTokens: 2 },
    });
    const pieces = read(fixture("caller-request.json")).write(answer);
    expect(JSON.parse(Buffer.concat([...pieces]).toString())).toEqual(fixture("expected-reply.json"));
  });
});
