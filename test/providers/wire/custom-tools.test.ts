import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  FinishReason,
} from "../../../gen/parley/v1/completion_pb.js";
import { type Message, Role } from "../../../gen/parley/v1/message_pb.js";
import { AnswerBuilder } from "../../../src/core/answer-builder.ts";
import { ChoiceWriter, toPart } from "../../../src/core/chunks.ts";
import type { Answer, Provider, Translation, UpstreamCall, UpstreamModel } from "../../../src/core/provider.ts";
import { withCustomTools } from "../../../src/providers/wire/custom-tools.ts";

const MODEL = {} as UpstreamModel;
const GRAMMAR = JSON.stringify({ type: "grammar", syntax: "lark", definition: "start: WORD" });

/** A provider without custom tools, and what it was asked. */
function provider(chunks: readonly CompletionChunk[]): { provider: Provider; asked: CompletionRequest[] } {
  const asked: CompletionRequest[] = [];
  const translation: Translation = {
    body: Buffer.alloc(0),
    omitted: [],
    clamped: [],
    streamed: false,
    verbatim: false,
    sent: { textBytes: 0, maxTokens: undefined, priceFactor: 1, unbounded: "no", cacheWrite: "none" },
  };
  const whole = (): Answer => {
    const builder = new AnswerBuilder();
    for (const chunk of chunks) builder.add(chunk);
    return builder.build();
  };
  const plain: Provider = {
    translate(given) {
      asked.push(given);
      return { ...translation };
    },
    create: () => Promise.resolve(whole()),
    async stream(_, emit) {
      for (const chunk of chunks) await emit([chunk]);
    },
    close: () => Promise.resolve(),
  };
  return { provider: withCustomTools(plain), asked };
}

/** A call of `name` with these pieces of arguments. */
function calling(name: string, pieces: readonly string[]): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  const part = writer.beginCall({ id: "call_1", name }, "", out);
  for (const piece of pieces) writer.arguments(part, piece, out);
  writer.endCall(part, out);
  writer.finish({ reason: FinishReason.TOOL_CALLS, native: "" }, out);
  return out;
}

function request(messages: Message[] = []): CompletionRequest {
  return create(CompletionRequestSchema, {
    model: "m",
    messages,
    tools: [
      { kind: { case: "custom", value: { name: "apply_patch", description: "Patches.", formatJson: GRAMMAR } } },
      { kind: { case: "function", value: { name: "look" } } },
    ],
    toolChoice: { choice: { case: "custom", value: "apply_patch" } },
  });
}

/** The calls of an answer, whole and streamed. */
async function callsOf(chunks: readonly CompletionChunk[]): Promise<unknown[]> {
  const { provider: wrapped } = provider(chunks);
  const call = { translation: wrapped.translate(request(), MODEL, { mode: "whole" }) } as UpstreamCall;
  const builder = new AnswerBuilder();
  await wrapped.stream(call, (batch) => {
    for (const chunk of batch) builder.add(chunk);
    return undefined;
  });
  return [await wrapped.create(call), builder.build()].map(({ choices }) => choices[0]?.message?.parts[0]?.kind.value);
}

describe("a custom tool of a dialect without them", () => {
  it("is a function with one text, whose description has the grammar", () => {
    const { provider: wrapped, asked } = provider([]);
    wrapped.translate(request(), MODEL, { mode: "whole" });
    expect(asked[0]?.tools.map(({ kind }) => kind.case)).toEqual(["function", "function"]);
    expect(asked[0]?.tools[0]?.kind.value).toMatchObject({
      name: "apply_patch",
      description: "Patches.\n\nThe input must match this lark grammar:\nstart: WORD",
      parametersJson: expect.stringContaining('"required":["input"]') as string,
    });
    expect(asked[0]?.toolChoice?.choice).toEqual({ case: "function", value: "apply_patch" });
  });

  it("was called with a function's arguments", () => {
    const { provider: wrapped, asked } = provider([]);
    const value = {
      $typeName: "parley.v1.ToolCall",
      id: "call_1",
      name: "apply_patch",
      input: { case: "customInput", value: 'a "b"' },
    } as const;
    const said = {
      $typeName: "parley.v1.Message",
      role: Role.ASSISTANT,
      parts: [toPart({ case: "toolCall", value })],
    } as const;
    wrapped.translate(request([{ ...said, parts: [...said.parts] }]), MODEL, { mode: "whole" });
    expect(asked[0]?.messages[0]?.parts[0]?.kind.value).toMatchObject({
      input: { case: "argumentsJson", value: '{"input":"a \\"b\\""}' },
    });
  });

  it("is called with its input again, in any pieces", async () => {
    const pieces = ['{"in', 'put":"*** Begin', '\\nEnd"', "}"];
    for (const call of await callsOf(calling("apply_patch", pieces)))
      expect(call).toMatchObject({ name: "apply_patch", input: { case: "customInput", value: "*** Begin\nEnd" } });
  });

  it("is called with what the model wrote when it has another shape", async () => {
    for (const call of await callsOf(calling("apply_patch", ['{"patch":1}'])))
      expect(call).toMatchObject({ input: { case: "customInput", value: '{"patch":1}' } });
  });

  it("leaves calls of functions as they are", async () => {
    for (const call of await callsOf(calling("look", ['{"input"', ':"x"}'])))
      expect(call).toMatchObject({ input: { case: "argumentsJson", value: '{"input":"x"}' } });
  });
});

it("does nothing to a request without custom tools", () => {
  const { provider: wrapped, asked } = provider([]);
  const plain = create(CompletionRequestSchema, { model: "m" });
  expect(wrapped.translate(plain, MODEL, { mode: "whole" })).not.toHaveProperty("customTools");
  expect(asked[0]).toBe(plain);
});
