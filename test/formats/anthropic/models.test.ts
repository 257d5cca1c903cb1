import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { ModelSchema } from "../../../gen/parley/v1/model_pb.js";
import { toModelInfo, toModelPage } from "../../../src/formats/anthropic/models.ts";

const MODELS = ["a", "b", "c", "d"].map((id) => create(ModelSchema, { id }));

function page(query: string): unknown {
  const { data, ...rest } = toModelPage(MODELS, new URLSearchParams(query)) as { data: { id: string }[] };
  return { ids: data.map(({ id }) => id).join(""), ...rest };
}

describe("a model", () => {
  it("has its bounds", () => {
    const createTime = timestampFromMs(Date.UTC(2026, 0, 1));
    expect(toModelInfo(create(ModelSchema, { id: "a", createTime, contextWindow: 9, maxOutputTokens: 5 }))).toEqual({
      type: "model",
      id: "a",
      display_name: "a",
      created_at: "2026-01-01T00:00:00Z",
      max_input_tokens: 9,
      max_tokens: 5,
    });
  });

  it("has null for what is not known", () => {
    expect(toModelInfo(create(ModelSchema, { id: "a" }))).toMatchObject({
      created_at: "1970-01-01T00:00:00Z",
      max_input_tokens: null,
      max_tokens: null,
    });
  });
});

describe("a page of models", () => {
  it.each([
    ["", { ids: "abcd", has_more: false, first_id: "a", last_id: "d" }],
    ["limit=1000", { ids: "abcd", has_more: false, first_id: "a", last_id: "d" }],
    ["limit=x", { ids: "abcd", has_more: false, first_id: "a", last_id: "d" }],
    ["limit=2", { ids: "ab", has_more: true, first_id: "a", last_id: "b" }],
    ["limit=2&after_id=b", { ids: "cd", has_more: false, first_id: "c", last_id: "d" }],
    ["limit=1&after_id=b", { ids: "c", has_more: true, first_id: "c", last_id: "c" }],
    ["after_id=d", { ids: "", has_more: false, first_id: null, last_id: null }],
    ["after_id=x", { ids: "", has_more: false, first_id: null, last_id: null }],
    ["limit=1&before_id=c", { ids: "b", has_more: true, first_id: "b", last_id: "b" }],
    ["before_id=a", { ids: "", has_more: false, first_id: null, last_id: null }],
    ["before_id=x", { ids: "", has_more: false, first_id: null, last_id: null }],
  ])("for %j", (query, expected) => {
    expect(page(query)).toEqual(expected);
  });
});
