import type { Embedding, Embeddings } from "../../../gen/parley/v1/embedding_pb.js";
import { writeReport } from "../report.ts";
import type { ReadRequest } from "./request.ts";

/** Writes embeddings as OpenAI's list. Clients need the usage, also when the provider counted nothing. */
export function writeEmbeddings(
  { embeddings, model, usage, report }: Embeddings,
  { nameOf, encoding }: Pick<ReadRequest, "nameOf" | "encoding">,
): string {
  const write = encoding === "base64" ? toBase64 : ({ values }: Embedding): readonly number[] => values;
  return JSON.stringify({
    object: "list",
    data: embeddings.map((each, index) => ({ object: "embedding", index, embedding: write(each) })),
    model,
    usage: { prompt_tokens: usage?.inputTokens ?? 0, total_tokens: usage?.totalTokens ?? 0 },
    ...(report !== undefined && { parley: writeReport(report, nameOf) }),
  });
}

/** 32-bit floats, little-endian. */
function toBase64({ values }: Embedding): string {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  values.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
