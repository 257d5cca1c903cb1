import { create } from "@bufbuild/protobuf";
import {
  type ChoiceFinish,
  ChoiceFinishSchema,
  type CompletionChunk,
  CompletionChunkSchema,
  type Delta,
  DeltaSchema,
  type FinishReason,
  type Usage,
} from "../../gen/parley/v1/completion_pb.js";

/** A chunk that adds `content` to a choice. */
export function deltaChunk(choiceIndex: number, content: Delta["content"]): CompletionChunk {
  return create(CompletionChunkSchema, {
    event: { case: "delta", value: create(DeltaSchema, { choiceIndex, content }) },
  });
}

/** A chunk that ends a choice. */
export function finishChunk(
  choiceIndex: number,
  finishReason: FinishReason,
  nativeFinishReason: string,
): CompletionChunk {
  const value: ChoiceFinish = create(ChoiceFinishSchema, { choiceIndex, finishReason, nativeFinishReason });
  return create(CompletionChunkSchema, { event: { case: "finish", value } });
}

/** A chunk with what the provider counted. */
export function usageChunk(usage: Usage): CompletionChunk {
  return create(CompletionChunkSchema, { event: { case: "usage", value: usage } });
}
