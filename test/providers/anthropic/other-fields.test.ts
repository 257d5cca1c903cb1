import { describe, expect, it } from "vitest";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { toOtherFields } from "../../../src/providers/anthropic/other-fields.ts";
import { TranslationLog } from "../../../src/providers/wire/translation.ts";
import { failureOf } from "../../support/errors.ts";

function read(providerOptionsJson: Record<string, string>) {
  const log = new TranslationLog();
  const { fields, betas, billingText } = toOtherFields({ providerOptionsJson } as CompletionRequest, log);
  const { omitted, verbatim } = log.finish({}, { streamed: false, maxTokens: undefined });
  return { fields, betas, billingText, verbatim, omitted: omitted.map(({ field }) => field) };
}

describe("fields without a word in the contract", () => {
  it("are sent as they are, and betas in the header", () => {
    const given = { "anthropic.speed": '"fast"', "anthropic.betas": '["a-1", "b"]', "anthropic.billing_text": '"c"' };
    expect(read(given)).toEqual({
      fields: { speed: "fast" },
      billingText: "c",
      betas: ["a-1", "b"],
      verbatim: true,
      omitted: [],
    });
  });

  it("are none in most requests", () => {
    expect(read({})).toEqual({ fields: {}, betas: undefined, billingText: undefined, verbatim: false, omitted: [] });
  });

  it("never replace a field of the contract, nor are those of other dialects sent", () => {
    const names = ["anthropic.max_tokens", "anthropic.messages", "anthropic.model", "anthropic.stream"];
    const given = [...names, "openai.moderation"].map((name) => [name, "1"]);
    expect(read(Object.fromEntries(given) as Record<string, string>)).toEqual({
      fields: {},
      betas: undefined,
      billingText: undefined,
      verbatim: false,
      omitted: [...names, "openai.moderation"].map((name) => `provider_options_json.${name}`),
    });
  });

  it.each([
    ["anthropic.speed", "fast", "must be JSON"],
    ["anthropic.billing_text", '["a"]', "must be a JSON string"],
    ["anthropic.betas", '"a"', "must be an array"],
    ["anthropic.betas", '["a\\r\\nx-api-key: b"]', "must be an array"],
    ["anthropic.betas", JSON.stringify(Array.from({ length: 65 }, () => "a")), "must be an array of at most 64"],
  ])("are refused when they are wrong: %s: %s", (name, text, why) => {
    const failure = failureOf(() => read({ [name]: text }));
    expect(failure.violations[0]).toMatchObject({
      field: `provider_options_json.${name}`,
      description: expect.stringContaining(why) as string,
    });
  });
});
