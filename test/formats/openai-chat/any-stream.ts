import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  type CompletionChunk,
  type Delta,
  FinishReason,
  LogprobsSchema,
  ToolCallDeltaSchema,
  UsageSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { AnnotationSchema, AudioSchema, ImageSchema, ReasoningBlockSchema } from "../../../gen/parley/v1/message_pb.js";
import { deltaChunk, finishChunk, usageChunk } from "../../../src/core/chunks.ts";
import { REPORT, startOf } from "./scenarios.ts";

/** A stream by the contract's grammar, and what is known of it. */
export interface AnyStream {
  readonly chunks: readonly CompletionChunk[];
  readonly choices: number;
  /** Whether the provider counted tokens. */
  readonly counted: boolean;
}

const words = fc.string({ unit: "binary", maxLength: 12 });
const logprobs = fc.option(
  words.map((token) => create(LogprobsSchema, { content: [{ token, logprob: -1 }] })),
  { nil: undefined, freq: 5 },
);

export type Content = Delta["content"];

/** What a provider may say of one choice, in order: tool calls one after another, the rest as it comes. */
const saying: fc.Arbitrary<Content[]> = fc
  .array(
    fc.oneof(
      fc.record({ case: fc.constantFrom("text" as const, "reasoning" as const, "refusal" as const), value: words }),
      fc.record({ case: fc.constant("signature" as const), value: words }),
      words.map((mediaType): Content => ({
        case: "image",
        value: create(ImageSchema, { source: { case: "url", value: mediaType } }),
      })),
      words.map((title): Content => ({ case: "annotation", value: create(AnnotationSchema, { title }) })),
      words.map((transcript): Content => ({ case: "audio", value: create(AudioSchema, { transcript }) })),
      words.map((text): Content => ({
        case: "reasoningBlock",
        value: create(ReasoningBlockSchema, { text, signature: "s" }),
      })),
      fc.record({ name: words, pieces: fc.array(words, { maxLength: 3 }), custom: fc.boolean() }),
    ),
    { maxLength: 8 },
  )
  .map((said) => {
    let calls = 0;
    return said.flatMap((each): Content[] => {
      if ("case" in each) return [each];
      const index = calls++;
      const first = { index, id: `call_${index}`, name: each.name, custom: each.custom };
      return [first, ...each.pieces.map((text) => ({ index, arguments: text }))].map((piece) => ({
        case: "toolCall",
        value: create(ToolCallDeltaSchema, piece),
      }));
    });
  });

const finish = fc.constantFrom(
  FinishReason.STOP,
  FinishReason.LENGTH,
  FinishReason.TOOL_CALLS,
  FinishReason.CONTENT_FILTER,
);

/** Any stream by the contract's grammar: choices interleaved, each with its end; usage perhaps; start and report. */
export const anyStream: fc.Arbitrary<AnyStream> = fc
  .record({
    choices: fc.array(fc.record({ saying, finish, native: words }), { minLength: 1, maxLength: 3 }),
    order: fc.array(fc.nat(99), { minLength: 1 }),
    counted: fc.boolean(),
    model: words,
    probable: fc.array(logprobs, { minLength: 1 }),
  })
  .map(({ choices, order, counted, model, probable }) => {
    let turn = 0;
    const queues = choices.map(({ saying: said, finish: reason, native }, index) => [
      ...said.map((content) => {
        const chunk = deltaChunk(index, content);
        const probability = probable[turn++ % probable.length];
        if (probability !== undefined && chunk.event.case === "delta") chunk.event.value.logprobs = probability;
        return chunk;
      }),
      finishChunk(index, reason, native),
    ]);
    const mixed: CompletionChunk[] = [];
    for (let at = 0; queues.some((queue) => queue.length > 0); at++) {
      const open = queues.filter((queue) => queue.length > 0);
      mixed.push(open[order[at % order.length]! % open.length]!.shift()!);
    }
    if (counted) mixed.push(usageChunk(create(UsageSchema, { promptTokens: 1, completionTokens: 2, totalTokens: 3 })));
    return { chunks: [startOf(model), ...mixed, REPORT], choices: choices.length, counted };
  });
