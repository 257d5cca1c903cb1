import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ListModelsRequestSchema } from "../../gen/parley/v1/model_pb.js";
import { pageOfModels } from "../../src/core/model-page.ts";

const modelOf = (id: string, outputModalities: ReadonlySet<Modality> = new Set([Modality.TEXT])) => ({
  id,
  upstream: { outputModalities },
});
const models = ["a", "b", "c", "d", "e"].map((id) =>
  modelOf(id, new Set(id === "c" ? [Modality.TEXT, Modality.IMAGE] : [Modality.TEXT])),
);

function page(
  request: { pageSize?: number; pageToken?: string; outputModalities?: Modality[] } = {},
  of: Parameters<typeof pageOfModels>[0] = models,
) {
  const { models: found, nextPageToken } = pageOfModels(of, create(ListModelsRequestSchema, request));
  return { ids: found.map(({ id }) => id).join(""), nextPageToken };
}

describe("a page of models", () => {
  it("is the whole list by default", () => {
    expect(page()).toEqual({ ids: "abcde", nextPageToken: "" });
  });

  it.each([
    ["100 models by default", 0, 100],
    ["1,000 models at most", 5_000, 1_000],
  ])("has %s", (_, pageSize, count) => {
    const many = Array.from({ length: 1_200 }, (_unused, at) => modelOf(`m${at}`));
    const { ids, nextPageToken } = page({ pageSize }, many);
    expect([ids.split("m").length - 1, nextPageToken]).toEqual([count, `m${count}`]);
  });

  it("leads to the next one", () => {
    const first = page({ pageSize: 2 });
    const second = page({ pageSize: 2, pageToken: first.nextPageToken });
    const third = page({ pageSize: 2, pageToken: second.nextPageToken });
    expect([first.ids, second.ids, third]).toEqual(["ab", "cd", { ids: "e", nextPageToken: "" }]);
  });

  it("has models that make all that is asked for", () => {
    expect(page({ outputModalities: [Modality.TEXT, Modality.IMAGE] })).toEqual({ ids: "c", nextPageToken: "" });
    expect(page({ outputModalities: [Modality.AUDIO] }).ids).toBe("");
  });

  it("looks at each modality of a filter once, however often it is named", () => {
    let looked = 0;
    const counting = new (class extends Set<Modality> {
      override has(one: Modality): boolean {
        looked += 1;
        return super.has(one);
      }
    })([Modality.TEXT]);
    page({ outputModalities: Array.from({ length: 1_000 }, () => Modality.TEXT) }, [modelOf("a", counting)]);
    expect(looked).toBe(1);
  });

  it.each([
    ["page_size", { pageSize: -1 }],
    ["page_token", { pageToken: "gone" }],
    ["page_token", { pageToken: "a", outputModalities: [Modality.IMAGE] }],
  ])("is refused by its %s", (field, request) => {
    expect(() => page(request)).toThrow(field);
  });
});
