import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { clampsOf, omittedOf } from "../omissions.ts";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { CacheMarkSchema } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import {
  assistant,
  budget,
  effort,
  MINUTES,
  PARIS,
  reasoning,
  type ReasoningInit,
  request,
  SIGNED,
  text,
  toolResult,
  user,
  WEATHER,
} from "./builders.ts";
import { adaptiveModel, budgetModel, switchableModel } from "./model.ts";
import { bodyOf, messagesOf, translate } from "./translating.ts";

describe("reasoning", () => {
  const ask = (requested: ReasoningEffort, model: UpstreamModel, maxOutputTokens = 10_000): unknown => {
    const { thinking, output_config } = bodyOf(request({ maxOutputTokens, reasoning: effort(requested) }), model);
    return [thinking, output_config];
  };
  /** What is omitted and clamped. */
  const reportOf = (requested: ReasoningEffort, model: UpstreamModel): unknown => {
    const translation = translate(request({ maxOutputTokens: 10_000, reasoning: effort(requested) }), model);
    return [omittedOf(translation), clampsOf(translation)];
  };
  const clamp = (requested: string, sent: string): object => ({
    field: "reasoning.effort",
    requested: `REASONING_EFFORT_${requested}`,
    sent: `REASONING_EFFORT_${sent}`,
  });
  const ADAPTIVE = { type: "adaptive", display: "summarized" };

  it.each([
    [ReasoningEffort.MINIMAL, 1024],
    [ReasoningEffort.LOW, 2000],
    [ReasoningEffort.MEDIUM, 5000],
    [ReasoningEffort.HIGH, 8000],
    [ReasoningEffort.XHIGH, 9500],
    [ReasoningEffort.MAX, 9500],
  ])("makes effort %i a budget of %i of 10,000 tokens", (requested, budget_tokens) => {
    expect(ask(requested, budgetModel())).toEqual([{ type: "enabled", budget_tokens }, undefined]);
    expect(reportOf(requested, budgetModel())).toEqual([[], []]);
  });

  it.each([
    [2000, 2000, []],
    [100, 1024, [{ field: "reasoning.max_tokens", requested: 100, sent: 1024 }]],
    [50_000, 9999, [{ field: "reasoning.max_tokens", requested: 50_000, sent: 9999 }]],
  ])("sends %i tokens for reasoning as a budget of %i", (maxTokens, budget_tokens, clamped) => {
    const asked = request({ maxOutputTokens: 10_000, reasoning: budget(maxTokens) });
    expect(bodyOf(asked, budgetModel())).toMatchObject({ thinking: { type: "enabled", budget_tokens } });
    expect(clampsOf(translate(asked, budgetModel()))).toEqual(clamped);
    expect(omittedOf(translate(asked, adaptiveModel()))).toEqual(["reasoning.max_tokens"]);
    expect(omittedOf(translate(request({ ...asked, maxOutputTokens: 500 }), budgetModel()))).toEqual([
      "reasoning.max_tokens",
    ]);
  });

  it("of an effort and a number of tokens sends the one that the model takes, and lists both only where neither is sent", () => {
    const asked = request({
      maxOutputTokens: 10_000,
      reasoning: { effort: ReasoningEffort.HIGH, maxTokens: 2000 },
    });
    const small = request({ ...asked, maxOutputTokens: 500 });
    expect(bodyOf(asked, budgetModel())).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2000 } });
    expect(bodyOf(asked, adaptiveModel())).toMatchObject({ output_config: { effort: "high" } });
    for (const model of [budgetModel(), adaptiveModel()]) {
      expect(omittedOf(translate(asked, model))).toEqual([]);
      expect(clampsOf(translate(asked, model))).toEqual([]);
    }
    expect(omittedOf(translate(small, budgetModel()))).toEqual(["reasoning.effort", "reasoning.max_tokens"]);
  });

  it.each([
    [ReasoningEffort.MINIMAL, "low", "low"],
    [ReasoningEffort.MEDIUM, "medium", "medium"],
    [ReasoningEffort.XHIGH, "xhigh", "max"],
    [ReasoningEffort.MAX, "max", "max"],
  ])("passes effort %i on as %s, or as %s where that is not known, and lists a change", (requested, known, nearest) => {
    const some = adaptiveModel({ reasoningEfforts: ["low", "medium", "high", "max"] });
    for (const [model, sent] of [
      [adaptiveModel(), known],
      [some, nearest],
    ] as const) {
      expect(ask(requested, model)).toEqual([ADAPTIVE, { effort: sent }]);
      const [asked, given] = [ReasoningEffort[requested], sent.toUpperCase()];
      expect(reportOf(requested, model)).toEqual([[], asked === given ? [] : [clamp(asked, given)]]);
    }
  });

  it("lists an effort that no word of the model is near", () => {
    const model = adaptiveModel({ reasoningEfforts: [] });
    expect(reportOf(ReasoningEffort.HIGH, model)).toEqual([["reasoning.effort"], []]);
    expect(reportOf(ReasoningEffort.NONE, model)).toEqual([["reasoning.effort"], []]);
  });

  it("turns reasoning off where that is possible, and down where it is not", () => {
    expect(ask(ReasoningEffort.NONE, budgetModel())).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.NONE, switchableModel())).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.NONE, adaptiveModel())).toEqual([ADAPTIVE, { effort: "low" }]);
    expect(ask(ReasoningEffort.NONE, adaptiveModel({ reasoningByDefault: false }))).toEqual([undefined, undefined]);
    expect(reportOf(ReasoningEffort.NONE, switchableModel())).toEqual([[], []]);
    expect(reportOf(ReasoningEffort.NONE, adaptiveModel())).toEqual([[], [clamp("NONE", "LOW")]]);
    expect(reportOf(ReasoningEffort.NONE, adaptiveModel({ reasoningByDefault: false }))).toEqual([[], []]);
  });

  it("trap 61: does not let unasked reasoning use up a small limit", () => {
    expect(ask(ReasoningEffort.UNSPECIFIED, switchableModel(), 200)).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.UNSPECIFIED, adaptiveModel(), 200)).toEqual([ADAPTIVE, { effort: "low" }]);
    expect(ask(ReasoningEffort.UNSPECIFIED, budgetModel(), 200)).toEqual([undefined, undefined]);
  });

  const looped = (blocks: readonly ReasoningInit[]): CompletionRequest =>
    request({
      maxOutputTokens: 4000,
      reasoning: effort(ReasoningEffort.LOW),
      tools: [WEATHER],
      messages: [user("a"), assistant("Hm. ", { calls: [PARIS], reasoning: blocks }), toolResult(PARIS.id, "18C")],
    });

  it("trap 92: stops manual reasoning when that of the running tool calls did not come back", () => {
    expect(bodyOf(looped([]))).toMatchObject({ thinking: { type: "disabled" } });
    expect(omittedOf(translate(looped([]), budgetModel()))).toEqual(["reasoning.effort"]);
    const over = [...looped([]).messages, request({ messages: [assistant("18C"), user("b")] }).messages].flat();
    expect(
      bodyOf(
        request({ messages: over, tools: [WEATHER], maxOutputTokens: 4000, reasoning: effort(ReasoningEffort.LOW) }),
      ),
    ).toMatchObject({
      thinking: { type: "enabled" },
    });
  });

  it("trap 93: sends all reasoning or none", () => {
    const torn = looped([SIGNED, { text: "unsigned" }]);
    expect(JSON.stringify(messagesOf(torn, adaptiveModel()))).not.toContain('"thinking"');
    const unsigned = looped([{ text: "unsigned" }]);
    expect(JSON.stringify(messagesOf(unsigned, adaptiveModel()))).not.toContain('"thinking"');
  });

  it("lists the reasoning and the cache marks of an answer that says nothing, and is left out for it", () => {
    const cacheMark = create(CacheMarkSchema, { ttl: MINUTES });
    const silent = assistant([
      { ...reasoning(SIGNED), cacheMark },
      reasoning({ redacted: "Em==" }),
      { ...text(" "), cacheMark },
    ]);
    const { body, omitted } = translate(request({ messages: [user("a"), silent, user("b")] }), budgetModel());
    expect(JSON.parse(body.toString())).toMatchObject({ messages: [{ role: "user" }] });
    expect(omittedOf({ omitted }).toSorted()).toEqual([
      "messages[1].parts[0]",
      "messages[1].parts[0].cache_mark",
      "messages[1].parts[1]",
      "messages[1].parts[2].cache_mark",
    ]);
  });

  it("does not list reasoning that would not have been sent anyway", () => {
    const omittedFor = (blocks: readonly ReasoningInit[], model = budgetModel()): readonly string[] =>
      omittedOf(translate(request({ messages: [user("a"), assistant("", { reasoning: blocks }), user("b")] }), model));
    expect(omittedFor([{ text: "unsigned" }])).toEqual([]);
    expect(omittedFor([SIGNED, { text: "unsigned" }])).toEqual([]);
    expect(omittedFor([SIGNED], budgetModel({ reasoning: "none" }))).toEqual([]);
  });

  it("trap 96: gives the same bytes for the same conversation, and keeps them when it grows", () => {
    const first = looped([SIGNED, { redacted: "Em==" }]);
    const grown = {
      ...first,
      messages: [...first.messages, request({ messages: [assistant("18C"), user("b")] }).messages].flat(),
    };
    const body = translate(first, adaptiveModel()).body.toString();
    expect(translate(first, adaptiveModel()).body.toString()).toBe(body);
    const prefix = body.slice(body.indexOf('"messages":'), -2);
    expect(translate(grown as CompletionRequest, adaptiveModel()).body.toString()).toContain(prefix);
    expect(body).toContain('"block_binding":{"prefix_mismatch_behavior":"drop_block"}');
  });

  it("trap 101: leaves out the state of other providers", () => {
    const foreign = assistant([{ ...text("b"), signature: "gemini" }], {
      calls: [{ ...PARIS, signature: "gemini" }],
      reasoning: [{ text: "thought" }],
    });
    expect(
      translate(request({ messages: [user("a"), foreign, toolResult(PARIS.id, "r")] }), budgetModel()).body.toString(),
    ).not.toMatch(/gemini|thought/);
  });

  it("takes a high top_p beside reasoning, and no lower one", () => {
    const options = { maxOutputTokens: 4000, reasoning: effort(ReasoningEffort.LOW) };
    expect(bodyOf(request({ ...options, topP: 0.97 }))).toMatchObject({ top_p: 0.97 });
    expect(bodyOf(request({ ...options, topP: 0.9 }))).not.toHaveProperty("top_p");
  });
});
