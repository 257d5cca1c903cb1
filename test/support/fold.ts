import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../src/core/answer-builder.ts";
import type { Answer, Emit } from "../../src/core/provider.ts";

/** Returns the whole answer from the chunks of a stream. */
export function fold(chunks: Iterable<CompletionChunk>): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  return builder.build();
}

/** Returns the whole answer of a provider's stream. */
export async function foldStream(stream: (emit: Emit) => Promise<void>): Promise<Answer> {
  const chunks: CompletionChunk[] = [];
  await stream((batch) => {
    chunks.push(...batch);
    return undefined;
  });
  return fold(chunks);
}
