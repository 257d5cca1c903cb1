import { describe, expect, it } from "vitest";
import { clampsOf, omittedOf } from "../omissions.ts";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import { PNG, F, body, config, pictures, translate, type Fields } from "./ask.ts";
import { flash, older, painter } from "./model.ts";

describe("parameters", () => {
  it("trap 57: what has no counterpart is left out and listed", () => {
    const { omitted, body: text } = translate({
      logitBias: { 5: 1 },
      logprobs: { topCount: 2 },
      endUserId: "u",
      safetyIdentifier: "s",
      metadata: { a: "b" },
      store: true,
      verbosity: "VERBOSITY_LOW",
      prediction: "p",
      promptCacheKey: "k",
      serviceTier: "scale",
      providerOptionsJson: { "openai.web_search_options": "{}" },
      imageOptions: { aspectRatio: "1:1", size: "1K", mask: { data: PNG } },
      tools: [F],
      parallelToolCalls: false,
      messages: [{ role: "ROLE_USER", parts: [{ text: "a" }, { image: { data: PNG, detail: "IMAGE_DETAIL_HIGH" } }] }],
    });
    expect(omittedOf({ omitted }).toSorted()).toEqual([
      "end_user_id",
      "image_options.aspect_ratio",
      "image_options.mask",
      "image_options.size",
      "logit_bias",
      "logprobs",
      "logprobs.top_count",
      "messages[0].parts[1].image.detail",
      "metadata",
      "parallel_tool_calls",
      "prediction",
      "prompt_cache_key",
      "provider_options_json.openai.web_search_options",
      "safety_identifier",
      "service_tier",
      "store",
      "verbosity",
    ]);
    expect(Object.keys(JSON.parse(text.toString()) as object)).toEqual(["contents", "tools"]);
  });

  it("what changes nothing is neither sent nor listed", () => {
    const nothing = {
      choiceCount: 1,
      store: false,
      sessionId: "s",
      serviceTier: "auto",
      verbosity: "VERBOSITY_MEDIUM",
      parallelToolCalls: true,
    };
    const fixed = flash({ sampling: false, penalties: false });
    const asked = {
      ...nothing,
      temperature: 1,
      topP: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      responseFormat: { text: {} },
    };
    expect(translate(asked, fixed)).toMatchObject({
      body: Buffer.from('{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'),
      omitted: [],
      clamped: [],
    });
  });

  it.each<[string, Fields, UpstreamModel, unknown, string[]]>([
    ["sampling", { temperature: 0.2, topP: 0.5 }, flash({ sampling: false }), undefined, ["temperature", "top_p"]],
    [
      "both at once",
      { temperature: 0.2, topP: 0.5 },
      flash({ temperatureWithTopP: false }),
      { temperature: 0.2 },
      ["top_p"],
    ],
    ["top_k", { topK: 40 }, flash(), { topK: 40 }, []],
    ["top_k without sampling", { topK: 40 }, flash({ sampling: false }), undefined, ["top_k"]],
    ["only top_p", { topP: 0.5 }, flash({ temperatureWithTopP: false }), { topP: 0.5 }, []],
    [
      "penalties",
      { presencePenalty: 1, frequencyPenalty: -1 },
      flash({ penalties: false }),
      undefined,
      ["presence_penalty", "frequency_penalty"],
    ],
    [
      "penalties it takes",
      { presencePenalty: 1, frequencyPenalty: -1 },
      flash(),
      { presencePenalty: 1, frequencyPenalty: -1 },
      [],
    ],
    ["a seed", { seed: "1" }, flash({ seed: false }), undefined, ["seed"]],
    ["a long seed", { seed: "4294967297" }, flash(), { seed: 1 }, []],
    [
      "log probabilities it takes",
      { logprobs: { topCount: 3 } },
      flash({ logprobs: true }),
      { responseLogprobs: true, logprobs: 3 },
      [],
    ],
    ["several choices", { choiceCount: 2 }, flash({ multipleChoices: true }), { candidateCount: 2 }, []],
    [
      "reasoning without any",
      { reasoning: { effort: "REASONING_EFFORT_LOW" } },
      flash({ reasoning: "none" }),
      undefined,
      ["reasoning.effort"],
    ],
  ])("%s: as the model takes it", (_, fields, model, expected, omitted) => {
    expect(config(fields, model)).toEqual(expected);
    expect(omittedOf(translate(fields, model))).toEqual(omitted);
  });

  it("trap 58 and 60: values beyond the model's range are moved into it and listed", () => {
    const { body: text, clamped } = translate(
      { temperature: 1.4, maxOutputTokens: 100_000 },
      flash({ maxTemperature: 1 }),
    );
    expect(JSON.parse(text.toString())).toMatchObject({
      generationConfig: { temperature: 1, maxOutputTokens: 65_536 },
    });
    expect(clampsOf({ clamped })).toEqual([
      { field: "temperature", requested: 1.4, sent: 1 },
      { field: "max_output_tokens", requested: 100_000, sent: 65_536 },
    ]);
  });

  it("trap 54: more than one choice is refused where there is only one", () => {
    expect(() => translate({ choiceCount: 2 })).toThrow("choice_count: must be 1 for this model");
  });

  it("safety settings are sent as they are", () => {
    const settings = [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_ONLY_HIGH" }];
    const asked = {
      providerOptionsJson: { "gemini.safety_settings": JSON.stringify(settings), "openai.moderation": "{}" },
    };
    expect(body(asked).safetySettings).toEqual(settings);
    expect(omittedOf(translate(asked))).toEqual(["provider_options_json.openai.moderation"]);
  });

  it.each(["{}", "null", "[", ""])("safety settings %j are refused: they are a list", (text) => {
    expect(() => translate({ providerOptionsJson: { "gemini.safety_settings": text } })).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        param: "provider_options_json.gemini.safety_settings",
      }) as Error,
    );
  });

  it.each([
    ["flex", "flex"],
    ["priority", "priority"],
    ["default", "standard"],
  ])("service tier %s is sent as %s", (serviceTier, sent) => {
    expect(body({ serviceTier }).serviceTier).toBe(sent);
  });
});

describe("reasoning", () => {
  const think = (effort: string, model: UpstreamModel): unknown =>
    config({ reasoning: { effort: `REASONING_EFFORT_${effort}` } }, model);

  it.each([
    ["NONE", ["low", "high"], "LOW"],
    ["NONE", ["none", "high"], "NONE"],
    ["LOW", ["low", "high"], "LOW"],
    ["MINIMAL", ["minimal", "low"], "MINIMAL"],
    ["MINIMAL", ["low", "medium"], "LOW"],
    ["MEDIUM", ["low", "high"], "HIGH"],
    ["XHIGH", ["low", "medium", "high", "xhigh"], "XHIGH"],
    ["MAX", ["low", "medium", "high"], "HIGH"],
  ])("effort %s on levels %j is %s", (effort, reasoningEfforts, thinkingLevel) => {
    const shown = effort === "NONE" ? {} : { includeThoughts: true };
    const model = flash({ reasoningEfforts });
    expect(think(effort, model)).toEqual({ thinkingConfig: { thinkingLevel, ...shown } });
    const requested = `REASONING_EFFORT_${effort}`;
    const sent = `REASONING_EFFORT_${thinkingLevel}`;
    const translation = translate({ reasoning: { effort: requested } }, model);
    expect(clampsOf(translation)).toEqual(sent === requested ? [] : [{ field: "reasoning.effort", requested, sent }]);
    expect(omittedOf(translation)).toEqual([]);
  });

  it.each([
    ["NONE", false, 128],
    ["NONE", true, 0],
    ["MINIMAL", false, 512],
    ["LOW", false, 1024],
    ["MEDIUM", false, 8192],
    ["HIGH", false, 24_576],
    ["MAX", false, 32_768],
  ])("effort %s, can be disabled %s, is a budget of %i tokens", (effort, reasoningCanBeDisabled, thinkingBudget) => {
    const model = older({ reasoningCanBeDisabled });
    expect(think(effort, model)).toMatchObject({ thinkingConfig: { thinkingBudget } });
    const translation = translate({ reasoning: { effort: `REASONING_EFFORT_${effort}` } }, model);
    expect(clampsOf(translation)).toEqual([]);
    expect(omittedOf(translation)).toEqual(thinkingBudget === 128 ? ["reasoning.effort"] : []);
  });

  it.each([
    [3000, 3000, []],
    [90_000, 24_576, [{ field: "reasoning.max_tokens", requested: 90_000, sent: 24_576 }]],
  ])("%i tokens are a budget of %i", (maxTokens, thinkingBudget, clamped) => {
    const model = older({ reasoningBudget: [0, 24_576] });
    const reasoning = { maxTokens };
    expect(config({ reasoning }, model)).toEqual({ thinkingConfig: { thinkingBudget, includeThoughts: true } });
    expect(clampsOf(translate({ reasoning }, model))).toEqual(clamped);
    expect(omittedOf(translate({ reasoning }, flash()))).toEqual(["reasoning.max_tokens"]);
  });

  it("of an effort and a number of tokens sends the one that the model takes, and lists neither", () => {
    const reasoning = { effort: "REASONING_EFFORT_HIGH", maxTokens: 3000 };
    const budgets = older({ reasoningBudget: [0, 24_576] });
    expect(config({ reasoning }, budgets)).toEqual({ thinkingConfig: { thinkingBudget: 3000, includeThoughts: true } });
    expect(config({ reasoning }, flash())).toEqual({
      thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true },
    });
    expect([budgets, flash()].flatMap((model) => omittedOf(translate({ reasoning }, model)))).toEqual([]);
    const none = older({ reasoning: "none" });
    expect(omittedOf(translate({ reasoning }, none))).toEqual(["reasoning.effort", "reasoning.max_tokens"]);
  });

  it("trap 61: a small limit on a model that thinks by itself leaves room for the answer", () => {
    expect(config({ maxOutputTokens: 100 })).toEqual({
      maxOutputTokens: 100,
      thinkingConfig: { thinkingLevel: "LOW" },
    });
    expect(config({ maxOutputTokens: 4096 })).toEqual({ maxOutputTokens: 4096 });
    expect(config({ maxOutputTokens: 100 }, flash({ reasoningByDefault: false }))).toEqual({ maxOutputTokens: 100 });
  });
});

describe("pictures", () => {
  it("an image model that was asked for nothing special answers in text", () => {
    expect(config({}, painter())).toEqual({ responseModalities: ["TEXT"] });
    // Its price has pictures: it draws unless it is asked not to.
    const unlisted = flash({}, { pricesPictures: true });
    expect(config({}, unlisted)).toEqual({ responseModalities: ["TEXT"] });
    expect(() => translate({ modalities: pictures }, unlisted)).toThrow("modalities");
  });

  it("a model that cannot make what was asked for says so", () => {
    expect(() => translate({ modalities: pictures })).toThrow("modalities: this model does not make images");
    expect(() => translate({ modalities: ["MODALITY_AUDIO"] }, painter())).toThrow("modalities");
  });

  it("wishes about pictures are listed where the model has no choice", () => {
    const asked = { modalities: pictures, imageOptions: { size: "2K" } };
    expect(omittedOf(translate(asked, painter({ imageOptions: false })))).toEqual(["image_options.size"]);
  });
});
