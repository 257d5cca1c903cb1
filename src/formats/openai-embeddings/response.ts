import type { Embeddings } from "../../../gen/parley/v1/embedding_pb.js";
import type { NameOf } from "../format.ts";
import { base64 } from "../media.ts";
import { writeReport } from "../report.ts";
import { writeVectors } from "../vectors.ts";

/** Writes OpenAI's list of embeddings. */
export function writeEmbeddings(
  { model, embeddings, usage, report }: Embeddings,
  { isBase64, nameOf }: { readonly isBase64: boolean; readonly nameOf: NameOf },
): Iterable<Buffer> {
  const tokens = usage?.inputTokens ?? 0;
  const rest = {
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    ...(report !== undefined && { parley: writeReport(report, nameOf) }),
  };
  const frame = { head: '{"object":"list","data":[', tail: `],${JSON.stringify(rest).slice(1)}` };
  return writeVectors(embeddings, frame, (values, index) => ({
    object: "embedding",
    index,
    // OpenAI's clients decode base64 as 32-bit floats in little-endian order, which is that of x86 and ARM.
    embedding: isBase64 ? base64(new Uint8Array(Float32Array.from(values).buffer)) : values,
  }));
}
