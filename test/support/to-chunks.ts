import { create } from "@bufbuild/protobuf";
import { type Choice, type CompletionChunk, CompletionChunkSchema, FinishReason, type PartDelta } from "../../gen/parley/v1/completion_pb.js";
import { AudioSchema, type Part } from "../../gen/parley/v1/message_pb.js";
import { deltaChunk, finishChunk, toPart, usageChunk } from "../../src/core/chunks.ts";
import type { Answer } from "../../src/core/provider.ts";

/** Converts a whole answer to the chunks of a stream, in as few chunks as possible. */
export function toChunks({ choices, usage }: Answer): CompletionChunk[] {
  const out: CompletionChunk[] = choices.flatMap(chunksOfChoice);
  if (usage !== undefined) out.push(usageChunk(usage));
  return out;
}

function chunksOfChoice({ index, message, logprobs, finishReason, nativeFinishReason }: Choice): CompletionChunk[] {
  const out = (message?.parts ?? []).flatMap((part, partIndex) => chunksOfPart(part, index, partIndex));
  const first = out.find(({ event }) => event.case === "partDelta");
  if (logprobs !== undefined && first?.event.case === "partDelta") first.event.value.logprobs = logprobs;
  const reason = finishReason === FinishReason.UNSPECIFIED ? FinishReason.STOP : finishReason;
  return [...out, finishChunk(index, reason, nativeFinishReason)];
}

/** Chunks of one part: start, content, annotations, and finish with the signature. */
export function chunksOfPart(part: Part, choiceIndex: number, partIndex: number): CompletionChunk[] {
  const [kind, content] = split(part.kind);
  const contents = [...content, ...part.annotations.map((value) => ({ case: "annotation" as const, value }))];
  const place = { choiceIndex, partIndex };
  return [
    create(CompletionChunkSchema, { event: { case: "partStart", value: { ...place, part: toPart(kind) } } }),
    ...contents.map((each) => deltaChunk(choiceIndex, partIndex, each)),
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
      const { arguments: text } = kind.value;
      const start = { case: "toolCall", value: { ...kind.value, arguments: "" } } as const;
      return [start, text === "" ? [] : [{ case: "arguments", value: text }]];
    }
    case "audio":
      return [{ case: "audio", value: create(AudioSchema) }, [{ case: "audio", value: kind.value }]];
    default:
      return [kind, []];
  }
}
