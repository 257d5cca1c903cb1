import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ListModelsRequestSchema, ModelSchema } from "../../gen/parley/v1/model_pb.js";
import { pageOfModels } from "../../src/inbound/list-models.ts";

const models = ["a", "b", "c", "d", "e"].map((id) =>
  create(ModelSchema, { id, outputModalities: id === "c" ? [Modality.TEXT, Modality.IMAGE] : [Modality.TEXT] }),
);

function page(request: { pageSize?: number; pageToken?: string; outputModalities?: Modality[] } = {}) {
  const { models: found, nextPageToken } = pageOfModels(models, create(ListModelsRequestSchema, request));
  return { ids: found.map(({ id }) => id).join(""), nextPageToken };
}

describe("a page of models", () => {
  it("is the whole list by default", () => {
    expect(page()).toEqual({ ids: "abcde", nextPageToken: "" });
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
    const [model] = models;
    const counting = new Proxy(model!.outputModalities, {
      get(target, name, receiver) {
        if (name === "includes") looked += 1;
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
    const outputModalities = Array.from({ length: 1_000 }, () => Modality.TEXT);
    pageOfModels([{ ...model!, outputModalities: counting }], create(ListModelsRequestSchema, { outputModalities }));
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
