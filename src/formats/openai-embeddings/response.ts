import { setImmediate } from "node:timers/promises";
import type { Embeddings } from "../../../gen/parley/v1/embedding_pb.js";
import type { NameOf } from "../format.ts";
import type { JsonText } from "../held-strings.ts";
import { base64 } from "../media.ts";
import { writeReport } from "../report.ts";

/** Numbers that are written in one turn of the event loop: some 20 ms. */
const NUMBERS_PER_TURN = 100_000;

/** Writes OpenAI's list of embeddings, over several turns of the event loop when it is long. */
export async function writeEmbeddings(
  { model, embeddings, usage, report }: Embeddings,
  { isBase64, nameOf }: { readonly isBase64: boolean; readonly nameOf: NameOf },
): Promise<JsonText> {
  const pieces: Buffer[] = [Buffer.from('{"object":"list","data":[')];
  let written = 0;
  for (const [index, { values }] of embeddings.entries()) {
    // base64 is as OpenAI's clients read it: 32-bit floats in the byte order of x86 and ARM.
    const embedding = isBase64 ? base64(new Uint8Array(Float32Array.from(values).buffer)) : values;
    pieces.push(Buffer.from(`${index === 0 ? "" : ","}${JSON.stringify({ object: "embedding", index, embedding })}`));
    written += values.length;
    if (written < NUMBERS_PER_TURN) continue;
    written = 0;
    await setImmediate();
  }
  const tokens = usage?.inputTokens ?? 0;
  const rest = {
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    ...(report !== undefined && { parley: writeReport(report, nameOf) }),
  };
  pieces.push(Buffer.from(`],${JSON.stringify(rest).slice(1)}`));
  return pieces;
}
