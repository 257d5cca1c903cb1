import { create } from "@bufbuild/protobuf";
import {
  type Choice,
  type CompletionChunk,
  CompletionChunkSchema,
  FinishReason,
  type PartDelta,
} from "../../gen/parley/v1/completion_pb.js";
import { AudioSchema, type Part } from "../../gen/parley/v1/message_pb.js";
import { deltaChunk, finishChunk, toPart, usageChunk } from "../../src/core/chunks.ts";
import type { Answer } from "../../src/core/provider.ts";

/** Converts a whole answer to the chunks of a stream, in as few chunks as possible. */
export function toChunks({ choices, usage }: Answer): CompletionChunk[] {
  const out: CompletionChunk[] = choices.flatMap(chunksOfChoice);
  if (usage !== undefined) out.push(usageChunk(usage));
  return out;
}

function chunksOfChoice({ index, message, finishReason, ...ending }: Choice): CompletionChunk[] {
  const out = (message?.parts ?? []).flatMap((part, partIndex) => chunksOfPart(part, index, partIndex));
  const reason = finishReason === FinishReason.UNSPECIFIED ? FinishReason.STOP : finishReason;
  const { nativeFinishReason: native, stopSequence, providerDetailsJson: details } = ending;
  return [...out, finishChunk(index, { reason, native, stopSequence, details })];
}

/** Chunks of one part: start, content, citations, and finish with the signature. Its log probabilities come with the first delta. */
export function chunksOfPart(part: Part, choiceIndex: number, partIndex: number): CompletionChunk[] {
  const [kind, content] = split(part.kind);
  const contents = [...content, ...part.citations.map((value) => ({ case: "citation" as const, value }))];
  const place = { choiceIndex, partIndex };
  return [
    create(CompletionChunkSchema, { event: { case: "partStart", value: { ...place, part: toPart(kind) } } }),
    ...contents.map((each, at) => deltaChunk({ choiceIndex, partIndex }, each, at === 0 ? part.logprobs : [])),
    create(CompletionChunkSchema, { event: { case: "partFinish", value: { ...place, signature: part.signature } } }),
  ];
}

/** Initial content of a part, and its deltas. */
function split(kind: Part["kind"]): [start: Part["kind"], content: PartDelta["content"][]] {
  switch (kind.case) {
    case "text":
    case "refusal":
      return [{ case: kind.case, value: "" }, kind.value === "" ? [] : [{ case: kind.case, value: kind.value }]];
    case "reasoning": {
      const { text } = kind.value;
      const start = { case: "reasoning", value: { ...kind.value, text: "" } } as const;
      return [start, text === "" ? [] : [{ case: "reasoning", value: text }]];
    }
    case "toolCall": {
      const { input } = kind.value;
      if (input.case === undefined) return [kind, []];
      const start = { case: "toolCall", value: { ...kind.value, input: { case: input.case, value: "" } } } as const;
      return [start, input.value === "" ? [] : [input]];
    }
    case "native": {
      const { json } = kind.value;
      const start = { case: "native", value: { ...kind.value, json: "" } } as const;
      return [start, [{ case: "nativeJson", value: json }]];
    }
    case "audio":
      return [{ case: "audio", value: create(AudioSchema) }, [{ case: "audio", value: kind.value }]];
    default:
      return [kind, []];
  }
}
