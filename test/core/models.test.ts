import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ListModelsRequestSchema, ModelStage } from "../../gen/parley/v1/model_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import type { Caller } from "../../src/core/call.ts";
import type { LimitFacts } from "../../src/core/limiter.ts";
import { createModels } from "../../src/core/models.ts";
import { createWorld } from "../router/routed.ts";
import { FACTS, notingLimiter, somebody } from "../support/core-ports.ts";

const price = {
  input: 5_000_000,
  output: 25_000_000,
  cachedInput: 500_000,
  cacheWrite: 6_250_000,
  cacheWriteHour: 10_000_000,
  audioInput: 40_000_000,
  imageInput: 7_000_000,
  cachedAudioInput: 4_000_000,
  cachedImageInput: 700_000,
  imageOutput: 120_000_000,
  audioOutput: 80_000_000,
  fees: {
    requests: 12_000_000_000,
    searchedRequests: 35_000_000_000,
    webSearches: 10_000_000_000,
    fileSearches: 2_500_000_000,
    codeExecutions: undefined,
  },
};
const tiers = [{ ...price, input: 10_000_000, abovePromptTokens: 200_000 }];
const { router } = createWorld({
  scripts: { b: [], a: [], "family/c": [] },
  facts: { dialect: "gemini", stage: "deprecated", shutdown: 1_800_000_000, price: { ...price, tiers } },
});
const { limiter, demands, releases } = notingLimiter();
const models = createModels(router, limiter);
const told: LimitFacts[] = [];
const mayUse = (ids: readonly string[] | undefined): Caller => ({
  principal: { ...somebody, models: ids && new Set(ids) },
  requestId: "req_1",
  completionId: "chatcmpl-1",
  admitted: (facts) => void told.push(facts),
});

describe("the models", () => {
  it.each([
    ["all, in the order of the configuration, for a key without a list", undefined, ["b", "a", "family/c"]],
    ["those on the key's list, in the same order", ["family/c", "b"], ["b", "family/c"]],
    ["none for a list of models that are gone", ["gone"], []],
    ["none for an empty list", [], []],
  ])("are %s", async (_, allowed, ids) => {
    expect((await models.list(mayUse(allowed))).map((model) => model.id)).toEqual(ids);
  });

  it("are made once for all callers, until they are replaced, and of a page only its own", async () => {
    const world = createWorld({ scripts: Object.fromEntries(["a", "b", "c"].map((id) => [id, []])) });
    let made = 0;
    const counted = () =>
      world.models.map(({ description, ...facts }) => ({
        ...facts,
        get description() {
          made += 1;
          return description;
        },
      }));
    world.router.replace(counted());
    const listed = createModels(world.router, limiter);
    await listed.page(create(ListModelsRequestSchema, { pageSize: 1 }), mayUse(undefined));
    expect(made).toBe(1);
    const all = await listed.list(mayUse(undefined));
    const some = mayUse(["a", "c"]);
    expect(await listed.list(mayUse(undefined))).toBe(all);
    expect(await listed.list(some)).toBe(await listed.list(some));
    for (let other = 0; other < 20; other++) await listed.list(mayUse(["b"]));
    expect(await listed.list(mayUse(undefined))).toEqual(all);
    expect(made).toBe(3);
    world.router.replace(counted().slice(0, 2));
    expect((await listed.list(mayUse(undefined))).map(({ id }) => id)).toEqual(["a", "b"]);
    expect(made).toBe(5);
  });

  it("say what callers need to know", async () => {
    expect(await models.get("family/c", mayUse(undefined))).toMatchObject({
      id: "family/c",
      description: "The model family/c",
      createTime: { seconds: 1_700_000_000n },
      provider: "scripted",
      dialect: "gemini",
      stage: ModelStage.DEPRECATED,
      shutdownTime: { seconds: 1_800_000_000n, nanos: 0 },
      contextWindow: 128_000,
      maxOutputTokens: 8_000,
      inputModalities: [Modality.TEXT, Modality.IMAGE],
      outputModalities: [Modality.TEXT],
      capabilities: {
        tools: true,
        maxTemperature: expect.any(Number),
        reasoningEfforts: [ReasoningEffort.LOW, ReasoningEffort.MEDIUM, ReasoningEffort.HIGH],
      },
      price: {
        inputMicroUsdPerMtok: 5_000_000n,
        outputMicroUsdPerMtok: 25_000_000n,
        cachedInputMicroUsdPerMtok: 500_000n,
        cacheWriteMicroUsdPerMtok: 6_250_000n,
        cacheWriteHourMicroUsdPerMtok: 10_000_000n,
        audioInputMicroUsdPerMtok: 40_000_000n,
        audioOutputMicroUsdPerMtok: 80_000_000n,
        imageOutputMicroUsdPerMtok: 120_000_000n,
        imageInputMicroUsdPerMtok: 7_000_000n,
        cachedAudioInputMicroUsdPerMtok: 4_000_000n,
        cachedImageInputMicroUsdPerMtok: 700_000n,
        requestMicroUsd: 12_000n,
        searchedRequestMicroUsd: 35_000n,
        webSearchMicroUsd: 10_000n,
        fileSearchMicroUsd: 2_500n,
      },
      priceTiers: [
        {
          abovePromptTokens: 200_000,
          price: { inputMicroUsdPerMtok: 10_000_000n, outputMicroUsdPerMtok: 25_000_000n },
        },
      ],
    });
  });

  it.each([
    ["preview", ModelStage.PREVIEW],
    ["stable", ModelStage.STABLE],
    ["deprecated", ModelStage.DEPRECATED],
  ] as const)("have a stage: %s", async (stage, expected) => {
    const { router: staged } = createWorld({ scripts: { a: [] }, facts: { stage } });
    const model = await createModels(staged, limiter).get("a", mayUse(undefined));
    expect([model.stage, model.shutdownTime, model.price]).toEqual([expected, undefined, undefined]);
  });

  it("that do not exist and those that a key may not use look the same", async () => {
    for (const id of ["a", "gone"]) {
      await expect(models.get(id, mayUse(["b"]))).rejects.toMatchObject({
        code: "model_not_found",
        message: expect.stringContaining(`The model '${id}' does not exist or you do not have access to it.`),
      });
    }
  });

  it("that are misspelt are answered with the nearest that the key may use, and never with another", async () => {
    const messageOf = async (id: string, caller: Parameters<typeof models.get>[1]): Promise<string> =>
      models.get(id, caller).then(
        () => "found",
        (failure: Error) => failure.message,
      );
    expect(await messageOf("bb", mayUse(["b"]))).toContain(
      "Did you mean 'b'? GET /v1/models (gRPC: ModelService.List) lists yours.",
    );
    expect(await messageOf("openai/bb", mayUse(["b"]))).toContain("Did you mean 'b'?");
    expect(await messageOf("aa", mayUse(["b"]))).not.toContain("'a'");
  });

  it("count as a request, and the caller gets the remaining limits", async () => {
    const before = demands.length;
    await models.list(mayUse(undefined));
    expect(demands.slice(before)).toMatchObject([{ tokens: 0, costMicroUsd: 0, completionId: "chatcmpl-1" }]);
    expect(releases).toHaveLength(demands.length);
    expect(told.at(-1)).toEqual(FACTS);
  });
});
