import { describe, expect, it } from "vitest";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { BEDROCK } from "../../../src/providers/anthropic/bedrock-site.ts";
import { toAnthropicRequest, toCountBody } from "../../../src/providers/anthropic/request.ts";
import { assistant, budget, effort, request, user } from "./builders.ts";
import { adaptiveModel, budgetModel } from "./model.ts";

const read = (bytes: Buffer): Record<string, unknown> => JSON.parse(bytes.toString()) as Record<string, unknown>;

describe("Bedrock", () => {
  it("names the model and the operation in the path, escaped", () => {
    expect(BEDROCK.toPath("anthropic.claude-v1:0", false)).toBe("/model/anthropic.claude-v1%3A0/invoke");
    expect(BEDROCK.toPath("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.a", true)).toBe(
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.a/invoke-with-response-stream",
    );
    expect(BEDROCK.toPath("a/../(b)?c#d", false)).toBe("/model/a%2F..%2F%28b%29%3Fc%23d/invoke");
    expect(BEDROCK.toCountPath("us.anthropic.claude-v1:0")).toBe("/model/anthropic.claude-v1%3A0/count-tokens");
  });

  it("sends no binding of reasoning, whose beta it does not know", () => {
    const reasoning = [{ text: "Hm.", signature: "c2ln" }];
    const messages = [user("a"), assistant("b", { reasoning }), user("c")];
    const given = request({ messages, reasoning: effort(ReasoningEffort.LOW) });
    const { thinking, ...body } = read(
      toAnthropicRequest(given, adaptiveModel(), { mode: "stream", site: BEDROCK }).body,
    );
    expect(thinking).toEqual({ type: "adaptive", display: "summarized" });
    expect(body).not.toHaveProperty("anthropic_beta");
    expect(body).not.toHaveProperty("stream");
  });

  it("counts with a limit above the budget of thinking", () => {
    const model = budgetModel();
    const translation = toAnthropicRequest(request({ reasoning: budget(2000) }), model, {
      mode: "whole",
      site: BEDROCK,
    });
    const asked = { model, translation, signal: new AbortController().signal, idleMs: 1 };
    const { input } = read(toCountBody(asked, BEDROCK)) as { input: { invokeModel: { body: string } } };
    expect(read(Buffer.from(input.invokeModel.body, "base64"))).toEqual({
      anthropic_version: "bedrock-2023-05-31",
      max_tokens: 2001,
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      thinking: { type: "enabled", budget_tokens: 2000 },
    });
  });
});
