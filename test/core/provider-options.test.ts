import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type Part, PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import {
  omission,
  PROVIDER_OPTIONS,
  type ProviderOption,
  restrict,
  type SendingRules,
} from "../../src/core/provider-options.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { requestTo } from "./requests.ts";

const provider = new ScriptedProvider(new FakeClock(), {});
const model = modelOf("a", provider);
const NOTHING: SendingRules = { options: new Set(), capped: false, mayDraw: true };
const ALL: SendingRules = { options: undefined, capped: false, mayDraw: true };
const DRAWS = { type: "image_generation" };
const greedy = requestTo({
  serviceTier: "priority",
  store: true,
  tools: [
    { kind: { case: "native", value: { dialect: "anthropic", json: '{"type":"web_search_20250305"}' } } },
    { kind: { case: "function", value: { name: "f" } } },
  ],
  providerOptionsJson: {
    "openai.web_search_options": "{}",
    "openai.prompt_cache_retention": '"24h"',
    "openai.prompt_cache_options": "{}",
    "openai.moderation": "{}",
    "anthropic.betas": '["fast-mode-2026-02-01"]',
    "anthropic.speed": '"fast"',
  },
});

describe("what a request may ask of a provider beside tokens", () => {
  it("is no tool that makes pictures where the key may have none made", () => {
    const kinds = [
      '{"type":"image_generation"}',
      '{"type":"web_search"}',
      '{"type":"host:image_generation"}',
      "{}",
      '{"type":"namespace","tools":[{"type":"function"},{"type":"image_generation"}]}',
    ];
    const asked = requestTo({
      tools: kinds.map((json) => ({ kind: { case: "native" as const, value: { dialect: "openai-responses", json } } })),
    });
    const { request, omitted } = restrict(asked, model, { ...ALL, mayDraw: false });
    expect(request.tools.map(({ kind }) => kind.case)).toEqual([undefined, "native", undefined, "native", undefined]);
    expect(omitted).toEqual(
      ["tools[0]", "tools[2]", "tools[4]"].map((field) => omission(field, OmissionReason.NOT_ALLOWED)),
    );
    expect(restrict(asked, model, ALL).request).toBe(asked);
  });

  it("is no tool within a native part either, such as the output of a search for tools", () => {
    const native = (json: string): Part =>
      create(PartSchema, { kind: { case: "native", value: { dialect: "openai-responses", json } } });
    const found = (...tools: object[]): Part =>
      native(JSON.stringify({ type: "tool_search_output", call_id: "c", tools }));
    const own = found(
      { type: "function", name: "f", parameters: { examples: [{ tools: [{ type: "mcp" }] }] } },
      { type: "namespace", name: "n", tools: [{ type: "custom", name: "g" }] },
    );
    const searches = found({ type: "web_search" });
    const twofold = found({ type: "function", Type: "web_search", name: "f" });
    const inner = [{ additional_tools: [{ type: "namespace", tools: [DRAWS] }] }];
    const draws = native(JSON.stringify({ type: "later", inner }));
    const folded = native('{"type":"later","toolſ":[{"type":"web_search"}]}');
    const escaped = native('{"type":"later","\\u0074ool":{"type":"web_search"}}');
    const result = { case: "toolResult" as const, value: { toolCallId: "c", parts: [own, escaped] } };
    const asked = requestTo({
      messages: [
        { role: Role.ASSISTANT, parts: [own, searches, draws, twofold, folded] },
        { role: Role.TOOL, parts: [{ kind: result }] },
      ],
    });
    const leftOutOf = (rules: SendingRules): readonly string[] => {
      const { request, omitted } = restrict(asked, model, rules);
      for (const { reason } of omitted) expect(reason).toBe(OmissionReason.NOT_ALLOWED);
      const parts = request.messages.flatMap((each, at) =>
        each.parts.flatMap(({ kind }, index): [string, Part["kind"]][] => {
          const path = `messages[${at}].parts[${index}]`;
          if (kind.case !== "toolResult") return [[path, kind]];
          return kind.value.parts.map((below, place) => [`${path}.tool_result.parts[${place}]`, below.kind]);
        }),
      );
      const gone = parts.filter(([, kind]) => kind.case === undefined).map(([path]) => path);
      expect(omitted.map(({ field }) => field)).toEqual(gone);
      return gone;
    };
    expect(leftOutOf(NOTHING)).toEqual([
      "messages[0].parts[1]",
      "messages[0].parts[2]",
      "messages[0].parts[3]",
      "messages[0].parts[4]",
      "messages[1].parts[0].tool_result.parts[1]",
    ]);
    expect(leftOutOf({ ...ALL, mayDraw: false })).toEqual(["messages[0].parts[2]"]);
    expect(restrict(asked, model, ALL).request).toBe(asked);
  });

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
      providerOptionsJson: { "openai.moderation": "{}" },
    });
    expect(Object.keys(request.providerOptionsJson)).toEqual(["openai.moderation"]);
    const fields = [
      "service_tier",
      "store",
      "provider_options_json.openai.web_search_options",
      "provider_options_json.openai.prompt_cache_retention",
      "provider_options_json.openai.prompt_cache_options",
      "provider_options_json.anthropic.betas",
      "provider_options_json.anthropic.speed",
      "tools[0]",
    ];
    expect(request.tools.map(({ kind }) => kind.case)).toEqual([undefined, "function"]);
    expect(omitted).toEqual(fields.map((field) => omission(field, OmissionReason.NOT_ALLOWED)));
    expect(greedy).toMatchObject({ serviceTier: "priority", store: true });
    expect(Object.keys(greedy.providerOptionsJson)).toHaveLength(6);
  });

  it.each(PROVIDER_OPTIONS)("is what both the key and the provider allow: %s", (option) => {
    const others = new Set<ProviderOption>(PROVIDER_OPTIONS.filter((other) => other !== option));
    const byKey = restrict(greedy, model, { options: others, capped: false, mayDraw: true });
    const byProvider = restrict(greedy, { ...model, options: others }, ALL);
    expect(byKey.omitted.length).toBeGreaterThan(0);
    expect(byProvider.omitted).toEqual(byKey.omitted);
    expect(
      restrict(greedy, model, { options: new Set([option]), capped: false, mayDraw: true }).omitted,
    ).not.toContainEqual(byKey.omitted[0]);
  });

  it.each([
    ["default", "default", []],
    ["auto", undefined, []],
    ["flex", undefined, ["service_tier"]],
  ])("never is another tier of service: %s", (serviceTier, sent, omitted) => {
    const restricted = restrict(requestTo({ serviceTier }), model, NOTHING);
    const fields = restricted.omitted.map(({ field }) => field);
    expect([restricted.request.serviceTier, fields]).toEqual([sent, omitted]);
  });
});

describe("a cap on the answer's tokens", () => {
  const capped: SendingRules = { options: undefined, capped: true, mayDraw: true };

  it("is sent under a budget where the request has none", () => {
    expect(restrict(requestTo(), model, capped).request.maxOutputTokens).toBe(model.upstream.defaultMaxTokens);
    expect(restrict(requestTo({ maxOutputTokens: 7 }), model, capped).request.maxOutputTokens).toBe(7);
    expect(restrict(requestTo(), model, ALL).request.maxOutputTokens).toBeUndefined();
  });
});
