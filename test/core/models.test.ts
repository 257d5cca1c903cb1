import { describe, expect, it } from "vitest";
import { Modality } from "../../gen/parley/v1/completion_pb.js";
import { createModels } from "../../src/core/models.ts";
import { NO_LIMITS, type Principal } from "../../src/core/principal.ts";
import { createWorld } from "../router/routed.ts";

const { router } = createWorld({ scripts: { b: [], a: [], "family/c": [] }, facts: { preview: true } });
const models = createModels(router);
const mayUse = (ids: readonly string[] | undefined): Principal => ({
  keyId: "key",
  keyName: "key",
  accountId: "account",
  models: ids && new Set(ids),
  capabilities: new Set(["chat"]),
  limits: NO_LIMITS,
  accountLimits: NO_LIMITS,
});

describe("the models", () => {
  it.each([
    ["all, in the order of the configuration, for a key without a list", undefined, ["b", "a", "family/c"]],
    ["those on the key's list, in the same order", ["family/c", "b"], ["b", "family/c"]],
    ["none for a list of models that are gone", ["gone"], []],
    ["none for an empty list", [], []],
  ])("are %s", (_, allowed, ids) => {
    expect(models.list(mayUse(allowed)).map((model) => model.id)).toEqual(ids);
  });

  it("say what callers need to know", () => {
    expect(models.get("family/c", mayUse(undefined))).toMatchObject({
      id: "family/c",
      description: "The model family/c",
      created: 1_700_000_000n,
      ownedBy: "scripted",
      preview: true,
      contextWindow: 128_000,
      maxOutputTokens: 8_000,
      inputModalities: [Modality.TEXT, Modality.IMAGE],
      outputModalities: [Modality.TEXT],
    });
  });

  it("that do not exist and those that a key may not use look the same", () => {
    const refusalOf = (id: string, allowed: readonly string[]): unknown => {
      try {
        return models.get(id, mayUse(allowed));
      } catch (reason) {
        return reason;
      }
    };
    for (const id of ["a", "gone"]) {
      expect(refusalOf(id, ["b"])).toMatchObject({
        code: "model_not_found",
        message: `The model '${id}' does not exist or you do not have access to it.`,
      });
    }
  });
});
