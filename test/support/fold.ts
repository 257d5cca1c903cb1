import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../src/core/chunks.ts";
import type { Answer, Emit } from "../../src/core/provider.ts";

/** The whole answer that the chunks of a stream add up to. */
export function fold(chunks: Iterable<CompletionChunk>): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  return builder.build();
}

/** The whole answer of a provider's stream. */
export async function foldStream(stream: (emit: Emit) => Promise<void>): Promise<Answer> {
  const chunks: CompletionChunk[] = [];
  await stream((batch) => {
    chunks.push(...batch);
    return undefined;
  });
  return fold(chunks);
}
