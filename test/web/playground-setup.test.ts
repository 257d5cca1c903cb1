import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type Key, KeySchema } from "../../gen/parley/console/v1/key_pb.js";
import { KeyCapability } from "../../gen/parley/v1/key_pb.js";
import { ModelSettingSchema } from "../../gen/parley/console/v1/settings_pb.js";
import { resolveSetup } from "../../web/playground/setup.ts";

const MODELS = [
  create(ModelSettingSchema, { id: "words" }),
  create(ModelSettingSchema, { id: "more-words" }),
  create(ModelSettingSchema, { id: "pictures", images: true }),
];
const ALL = [KeyCapability.CHAT, KeyCapability.IMAGES];

function keyFor(id: string, models: readonly string[] | "all", capabilities = ALL): Key {
  const selection = models === "all" ? { all: true } : { ids: [...models] };
  return create(KeySchema, { id, name: id, models: selection, capabilities });
}

function resolve(keys: readonly [Key, ...Key[]], draft: { keyId?: string; key?: string; model?: string }) {
  const { keyId = "", key = "", model = "" } = draft;
  const setup = resolveSetup({ keys, models: MODELS, draft: { keyId, chosenKeyId: key, chosenModel: model } });
  return [setup.key.id, setup.model?.id, setup.notice];
}

const narrow = keyFor("narrow", ["words"]);
const wide = keyFor("wide", "all");

describe("key and model of the playground", () => {
  it("default to the first key and its first text model", () => {
    expect(resolve([narrow, wide], {})).toEqual(["narrow", "words", undefined]);
  });

  it("include a key that may use the selected model", () => {
    expect(resolve([narrow, wide], { model: "pictures" })).toEqual(["wide", "pictures", undefined]);
    expect(resolve([narrow, wide], { model: "pictures", keyId: "narrow" })).toEqual(["wide", "pictures", undefined]);
  });

  it("keep the current key if it may use the model", () => {
    expect(resolve([narrow, wide], { model: "words", keyId: "wide" })).toEqual(["wide", "words", undefined]);
  });

  it("prefer a key with the image capability for an image model", () => {
    const reader = keyFor("reader", "all", [KeyCapability.CHAT]);
    expect(resolve([reader, wide], { model: "pictures" })).toEqual(["wide", "pictures", undefined]);
    expect(resolve([reader], { model: "pictures" })).toEqual(["reader", "pictures", undefined]);
  });

  it("return to the selected model when a key that may use it is selected", () => {
    const notice = "The key “narrow” may not use pictures. Using words instead.";
    expect(resolve([narrow, wide], { model: "pictures", key: "narrow" })).toEqual(["narrow", "words", notice]);
    expect(resolve([narrow, wide], { model: "pictures", key: "wide" })).toEqual(["wide", "pictures", undefined]);
  });

  it("have a notice if no key may use the model, or the model does not exist", () => {
    const none = "None of your active keys may use pictures. Using words instead.";
    expect(resolve([narrow], { model: "pictures" })).toEqual(["narrow", "words", none]);
    const unknown = "Model doesnotexist does not exist. Using words instead.";
    expect(resolve([narrow], { model: "doesnotexist" })).toEqual(["narrow", "words", unknown]);
  });

  it("have a notice if the key may use no model", () => {
    const gone = keyFor("gone", ["removed-model"]);
    const notice = "None of your active keys may use words.";
    expect(resolve([gone], { model: "words" })).toEqual(["gone", undefined, notice]);
  });
});
