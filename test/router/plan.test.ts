import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { ClampSchema, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import type { CallerShare } from "../../src/core/call.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { omission, type SendingRules } from "../../src/core/provider-options.ts";
import type { Translation } from "../../src/core/provider.ts";
import { NO_RULES } from "./routed.ts";
import { planAttempts } from "../../src/router/plan.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";

function candidates(translations: Readonly<Record<string, Partial<Translation> | Failure>> = {}) {
  const provider = new ScriptedProvider(new FakeClock(), {}, translations);
  return [modelOf("a", provider), modelOf("b", provider)];
}

const ordinary = create(CompletionRequestSchema, {});
const strict = create(CompletionRequestSchema, { strict: true });
const unsupported = (field: string) => omission(field, OmissionReason.UNSUPPORTED);
const number = (value: number) => create(ValueSchema, { kind: { case: "numberValue", value } });
const word = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const clamp = create(ClampSchema, { field: "temperature", requested: number(1.5), sent: number(1) });
const clampedEffort = create(ClampSchema, {
  field: "reasoning.effort",
  requested: word("REASONING_EFFORT_MAX"),
  sent: word("REASONING_EFFORT_HIGH"),
});

it("keeps the order of candidates and prepares the primary's request", () => {
  const models = candidates({
    "a-upstream": { body: Buffer.from("for a") },
    "b-upstream": { body: Buffer.from("for b") },
  });
  const plan = planAttempts(ordinary, models, { mode: "stream", rules: NO_RULES });
  expect(plan.candidates.map((model) => model.id)).toEqual(["a", "b"]);
  expect(plan).toMatchObject({ mode: "stream", primary: { body: Buffer.from("for a") } });
});

it("measures native tools only where a model gets them", () => {
  const tools = [{ kind: { case: "native" as const, value: { dialect: "anthropic", json: '{"type":"web_search"}' } } }];
  const request = create(CompletionRequestSchema, { tools });
  const [one, other] = candidates() as [Model, Model];
  const permitting: Model = { ...other, options: new Set(["provider_tools"]) };
  const isUnbounded = (models: readonly Model[], rules: SendingRules): boolean =>
    planAttempts(request, models, { mode: "whole", rules }).prompt.unbounded;
  expect(isUnbounded([one], NO_RULES)).toBe(true);
  expect(isUnbounded([one], { options: new Set(), capped: true, mayDraw: true })).toBe(false);
  expect(isUnbounded([{ ...one, options: new Set() }, permitting], NO_RULES)).toBe(true);
  expect(isUnbounded([{ ...one, options: new Set() }], NO_RULES)).toBe(false);
  const sized = (given: typeof request): unknown =>
    planAttempts(given, [one], { mode: "whole", rules: { options: new Set(), capped: true, mayDraw: true } }).prompt;
  expect(sized(request)).toEqual(sized(create(CompletionRequestSchema, {})));
});

it("does not translate the request for fallbacks in advance", () => {
  const models = candidates({ "b-upstream": new Failure("invalid_request", "b cannot") });
  expect(() => planAttempts(ordinary, models, { mode: "whole", rules: NO_RULES })).not.toThrow();
});

it("charges the caller for translations for fallbacks, which come later", () => {
  let works = 0;
  const share: CallerShare = {
    holdAnswer: () => undefined,
    answered: () => undefined,
    openAnswer: () => undefined,
    keepAnswers: () => undefined,
    work(run) {
      works += 1;
      return run();
    },
    workInTurn: async (run) => run(),
  };
  const models = candidates({ "b-upstream": { body: Buffer.from("for b") } });
  const plan = planAttempts(ordinary, models, { mode: "whole", rules: NO_RULES, share });
  expect(works).toBe(0);
  expect(plan.translate(models[1]!).body).toEqual(Buffer.from("for b"));
  expect(works).toBe(1);
});

it("refuses what the primary cannot accept at all", () => {
  const models = candidates({ "a-upstream": new Failure("invalid_request", "a cannot") });
  expect(() => planAttempts(ordinary, models, { mode: "whole", rules: NO_RULES })).toThrow("a cannot");
});

it("lets a lenient request lose fields", () => {
  const models = candidates({ "a-upstream": { omitted: [unsupported("seed")], clamped: [clamp] } });
  expect(planAttempts(ordinary, models, { mode: "whole", rules: NO_RULES }).primary.omitted).toEqual([
    unsupported("seed"),
  ]);
});

it("refuses a strict request that would lose fields, naming each", () => {
  const models = candidates({
    "a-upstream": {
      omitted: [unsupported("seed"), unsupported("tools[0].function.strict")],
      clamped: [clamp, clampedEffort],
    },
  });
  let failure: unknown;
  try {
    planAttempts(strict, models, { mode: "whole", rules: NO_RULES });
  } catch (reason) {
    failure = reason;
  }
  expect(failure).toMatchObject({
    code: "invalid_request",
    message: "seed: is not supported by a, and the request is strict.",
    violations: [
      { field: "seed", description: "is not supported by a, and the request is strict" },
      { field: "tools[0].function.strict", description: "is not supported by a, and the request is strict" },
      { field: "temperature", description: "would be changed to 1 for a, and the request is strict" },
      {
        field: "reasoning.effort",
        description: "would be changed to REASONING_EFFORT_HIGH for a, and the request is strict",
      },
    ],
  });
});

it("accepts a strict request that loses nothing", () => {
  expect(() => planAttempts(strict, candidates(), { mode: "whole", rules: NO_RULES })).not.toThrow();
});

it("requires a candidate", () => {
  expect(() => planAttempts(ordinary, [], { mode: "whole", rules: NO_RULES })).toThrow(RangeError);
});
