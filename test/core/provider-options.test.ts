import { describe, expect, it } from "vitest";
import { PROVIDER_OPTIONS, type ProviderOption, restrict, type SendingRules } from "../../src/core/provider-options.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { requestTo } from "./requests.ts";

const provider = new ScriptedProvider(new FakeClock(), {});
const model = modelOf("a", provider);
const NOTHING: SendingRules = { options: new Set(), capped: false };
const ALL: SendingRules = { options: undefined, capped: false };
const greedy = requestTo({
  serviceTier: "priority",
  store: true,
  openaiOptionsJson: {
    web_search_options: "{}",
    prompt_cache_retention: '"24h"',
    prompt_cache_options: "{}",
    moderation: "{}",
  },
});

describe("what a request may ask of a provider beside tokens", () => {
  it("is everything where nothing is said", () => {
    const { request, omitted } = restrict(greedy, model, ALL);
    expect(request).toBe(greedy);
    expect(omitted).toEqual([]);
  });

  it("is nothing where nothing is allowed, and the request itself stays as it is", () => {
    const { request, omitted } = restrict(greedy, model, NOTHING);
    expect(request).toMatchObject({
      serviceTier: undefined,
      store: undefined,
      openaiOptionsJson: { moderation: "{}" },
    });
    expect(Object.keys(request.openaiOptionsJson)).toEqual(["moderation"]);
    expect(omitted).toEqual([
      "service_tier",
      "store",
      "web_search_options",
      "prompt_cache_retention",
      "prompt_cache_options",
    ]);
    expect(greedy).toMatchObject({ serviceTier: "priority", store: true });
    expect(Object.keys(greedy.openaiOptionsJson)).toHaveLength(4);
  });

  it.each(PROVIDER_OPTIONS)("is what both the key and the provider allow: %s", (option) => {
    const others = new Set<ProviderOption>(PROVIDER_OPTIONS.filter((other) => other !== option));
    const byKey = restrict(greedy, model, { options: others, capped: false });
    const byProvider = restrict(greedy, { ...model, options: others }, ALL);
    expect(byKey.omitted.length).toBeGreaterThan(0);
    expect(byProvider.omitted).toEqual(byKey.omitted);
    expect(restrict(greedy, model, { options: new Set([option]), capped: false }).omitted).not.toContain(
      byKey.omitted[0],
    );
  });

  it.each([
    ["default", "default", []],
    ["auto", undefined, []],
    ["flex", undefined, ["service_tier"]],
  ])("never is another tier of service: %s", (serviceTier, sent, omitted) => {
    const restricted = restrict(requestTo({ serviceTier }), model, NOTHING);
    expect([restricted.request.serviceTier, restricted.omitted]).toEqual([sent, omitted]);
  });
});

describe("a cap on the answer's tokens", () => {
  const capped: SendingRules = { options: undefined, capped: true };

  it("is sent under a budget where the request has none", () => {
    expect(restrict(requestTo(), model, capped).request.maxTokens).toBe(model.upstream.defaultMaxTokens);
    expect(restrict(requestTo({ maxTokens: 7 }), model, capped).request.maxTokens).toBe(7);
    expect(restrict(requestTo(), model, ALL).request.maxTokens).toBeUndefined();
  });
});
