import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import {
  AudioSchema,
  CitationSchema,
  ImageSchema,
  type TokenLogprob,
  TokenLogprobSchema,
} from "../../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { ChoiceWriter, toPart, usageChunk } from "../../../src/core/chunks.ts";
import { REPORT, startOf } from "./scenarios.ts";
import { anyCharacter } from "../../support/any-character.ts";

/** A stream by the contract's grammar, and what is known of it. */
export interface AnyStream {
  readonly chunks: readonly CompletionChunk[];
  readonly choices: number;
  /** Whether the provider counted tokens. */
  readonly counted: boolean;
}

const words = fc.string({ unit: anyCharacter, maxLength: 12 });
const logprobs = fc.option(
  words.map((token): TokenLogprob[] => [create(TokenLogprobSchema, { token, logprob: -1 })]),
  { nil: undefined, freq: 5 },
);
const citation = fc
  .record(
    {
      source: fc.oneof(
        fc.record({ case: fc.constant("url" as const), value: words }),
        fc.record({ case: fc.constant("document" as const), value: fc.record({ documentIndex: fc.nat(3) }) }),
      ),
      title: words,
      textRange: fc.record({ start: fc.nat(9), end: fc.nat(9) }),
    },
    { requiredKeys: ["title"] },
  )
  .map((value) => create(CitationSchema, value));

/** Writes something of a choice. */
type Step = (writer: ChoiceWriter, out: CompletionChunk[]) => void;

/** What a provider may say of one choice, in order: arguments of tool calls mixed with the rest. */
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom("text", "reasoning", "refusal"), text: words, probable: logprobs }).map(
      ({ kind, text, probable }): Step =>
        (writer, out) =>
          writer.text({ case: kind, value: text }, out, probable),
    ),
    fc.record({ kind: fc.constantFrom("text", "reasoning"), signature: words }).map(
      ({ kind, signature }): Step =>
        (writer, out) =>
          writer.sign(kind, signature, out),
    ),
    words.map((url): Step => {
      const image = create(ImageSchema, { source: { case: "url", value: url } });
      return (writer, out) => writer.whole(toPart({ case: "image", value: image }), out);
    }),
    citation.map(
      (cited): Step =>
        (writer, out) =>
          writer.cite(cited, out),
    ),
    words.map(
      (transcript): Step =>
        (writer, out) =>
          writer.audio(create(AudioSchema, { transcript }), out),
    ),
    fc
      .record({ dialect: fc.constantFrom("openai-responses", "anthropic"), status: words, value: words })
      .map(({ dialect, ...more }): Step => {
        const json = JSON.stringify({ type: "web_search_call", ...more });
        return (writer, out) => writer.native({ dialect, json }, out);
      }),
    fc
      .record({
        id: words,
        name: words,
        custom: fc.boolean(),
        pieces: fc.array(words, { maxLength: 3 }),
      })
      .map(({ pieces, ...call }): Step => (writer, out) => {
        const at = writer.beginCall(call, "", out);
        for (const piece of pieces) writer.arguments(at, piece, out);
      }),
  ),
  { maxLength: 8 },
);

const finish = fc.constantFrom(
  FinishReason.STOP,
  FinishReason.LENGTH,
  FinishReason.TOOL_CALLS,
  FinishReason.CONTENT_FILTER,
);

/** Any stream by the contract's grammar: choices interleaved, each with its end; usage perhaps; start and report. */
export const anyStream: fc.Arbitrary<AnyStream> = fc
  .record({
    choices: fc.array(fc.record({ steps, finish, native: words }), { minLength: 1, maxLength: 3 }),
    order: fc.array(fc.nat(99), { minLength: 1 }),
    counted: fc.boolean(),
    model: words,
    probable: fc.array(logprobs, { minLength: 1 }),
  })
  .map(({ choices, order, counted, model, probable }) => {
    let turn = 0;
    const queues = choices.map(({ steps: written, finish: reason, native }, index) => {
      const writer = new ChoiceWriter(index);
      const out: CompletionChunk[] = [];
      for (const step of written) step(writer, out);
      writer.finish({ reason, native }, out);
      for (const { event } of out) {
        const probability = event.case === "partDelta" ? probable[turn++ % probable.length] : undefined;
        if (event.case === "partDelta" && probability !== undefined) event.value.logprobs = probability;
      }
      return out;
    });
    const mixed: CompletionChunk[] = [];
    for (let at = 0; queues.some((queue) => queue.length > 0); at++) {
      const open = queues.filter((queue) => queue.length > 0);
      mixed.push(open[order[at % order.length]! % open.length]!.shift()!);
    }
    if (counted) mixed.push(usageChunk(create(UsageSchema, { inputTokens: 1, outputTokens: 2, totalTokens: 3 })));
    return { chunks: [startOf(model), ...mixed, REPORT], choices: choices.length, counted };
  });
