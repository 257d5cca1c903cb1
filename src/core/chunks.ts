import type { CompletionChunk, Delta, FinishReason, Usage } from "../../gen/parley/v1/completion_pb.js";

/*
 * Written as the plain objects that `create` makes of a message: an answer has thousands of chunks, and `create` goes
 * through a list of fields. The compiler misses a field that is not in them.
 */

/** A chunk that adds `content` to a choice. */
export function deltaChunk(choiceIndex: number, content: Delta["content"]): CompletionChunk {
  return toChunk({ case: "delta", value: { $typeName: "parley.v1.Delta", choiceIndex, content } });
}

/** A chunk that ends a choice. */
export function finishChunk(
  choiceIndex: number,
  finishReason: FinishReason,
  nativeFinishReason: string,
): CompletionChunk {
  const value = { $typeName: "parley.v1.ChoiceFinish", choiceIndex, finishReason, nativeFinishReason } as const;
  return toChunk({ case: "finish", value });
}

/** A chunk with what the provider counted. */
export function usageChunk(usage: Usage): CompletionChunk {
  return toChunk({ case: "usage", value: usage });
}

function toChunk(event: CompletionChunk["event"]): CompletionChunk {
  return { $typeName: "parley.v1.CompletionChunk", event };
}
