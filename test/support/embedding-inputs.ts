import type { EmbeddingInput } from "../../gen/parley/v1/embedding_pb.js";

/** Returns texts as the inputs of an embedding request. */
export function toInputs(texts: readonly string[]): EmbeddingInput[] {
  return texts.map((value) => ({ $typeName: "parley.v1.EmbeddingInput", kind: { case: "text", value } }));
}
