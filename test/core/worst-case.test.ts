import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type ContentPartSchema, MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import type { Model } from "../../src/core/model.ts";
import { measurePrompt } from "../../src/core/token-estimate.ts";
import { worstCase } from "../../src/core/worst-case.ts";
import { message, requestTo } from "./requests.ts";

/** One micro-USD for each token of the prompt, and nothing for the answer. */
const price = { input: 1_000_000, cachedInput: 1_000_000, output: 0, image: 0 };
const contextWindow = 100_000;
const model = { price, upstream: { contextWindow, maxOutputTokens: 10, defaultMaxTokens: 10 } } as Model;

/** The tokens of the prompt that money is held for. */
function held(asked: MessageInitShape<typeof CompletionRequestSchema>): number | undefined {
  const request = requestTo(asked);
  return worstCase(request, measurePrompt(request), [model]).costMicroUsd;
}

function withPart(content: NonNullable<MessageInitShape<typeof ContentPartSchema>["content"]>): number | undefined {
  return held({ messages: [create(MessageSchema, { role: Role.USER, content: [{ content }] })] });
}

describe("the money that is held for a prompt", () => {
  it("is that of a token for every byte of its text", () => {
    expect(held({ messages: [message(Role.USER, "x".repeat(500))] })).toBe(500 + 16);
  });

  it("is that of the whole context window for a document, which may have any number of pages", () => {
    const source = { case: "data" as const, value: new Uint8Array(100) };
    expect(withPart({ case: "file", value: { source, mediaType: "application/pdf" } })).toBe(contextWindow);
  });

  it("is that of the whole context window for what the provider keeps and the request only names", () => {
    expect(withPart({ case: "file", value: { source: { case: "id", value: "file-1" } } })).toBe(contextWindow);
    expect(withPart({ case: "audio", value: { id: "audio_1" } })).toBe(contextWindow);
  });

  it("has room for the words with which providers explain tools and schemas to their models", () => {
    const plain = held({})!;
    const tool = { kind: { case: "function" as const, value: { name: "f", parametersJson: "{}" } } };
    expect(held({ tools: [tool] })! - plain).toBeGreaterThan(700);
    const format = { format: { case: "jsonSchema" as const, value: { name: "s", schemaJson: "{}" } } };
    expect(held({ responseFormat: format })! - plain).toBeGreaterThan(700);
  });

  it("counts reasoning that came back encrypted, for its text may be a summary", () => {
    const reasoning = [{ text: "Hm.", signature: "x".repeat(1_000) }];
    expect(held({ messages: [message(Role.ASSISTANT, "", { reasoning })] })).toBeGreaterThan(1_000);
  });
});
