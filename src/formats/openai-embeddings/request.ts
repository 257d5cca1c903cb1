import { type EmbeddingInput, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { invalidField } from "../../core/failure.ts";
import { MAX_UNRECOGNIZED } from "../../core/validate.ts";
import { MAX_INPUTS } from "../../core/validate-embedding.ts";
import type { FormatInput, ReadEmbedding } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { writeEmbeddings } from "./response.ts";
import { embeddingRequest, KNOWN_KEYS } from "./schema.ts";

const readShape = shapeReader(embeddingRequest, "an embedding request");

/** The largest count that the contract holds. */
const INT32_MAX = 0x7fffffff;

/** Converts a request. Throws `invalid_request` that names each field of a wrong type. */
export function readEmbeddingRequest({ json }: Pick<FormatInput, "json">): ReadEmbedding {
  refuseTokens((json as { input?: unknown }).input);
  const { model, input, dimensions, user, encoding_format: encoding, parley, ...rest } = readShape(json);
  if (dimensions != null && Math.abs(dimensions) > INT32_MAX) throw invalidField("dimensions", "is out of range");
  return {
    request: {
      $typeName: "parley.v1.EmbeddingRequest",
      model,
      // One more than core's limit is enough for core to refuse the request.
      inputs: (typeof input === "string" ? [input] : input.slice(0, MAX_INPUTS + 1)).map(toInput),
      task: EmbeddingTask.UNSPECIFIED,
      strict: parley?.strict === true,
      ...(dimensions != null && { dimensions }),
      ...(user != null && { endUserId: user }),
    },
    unrecognized: Object.keys(rest)
      .filter((key) => !KNOWN_KEYS.has(key))
      .slice(0, MAX_UNRECOGNIZED)
      .map((key) => key.slice(0, 64)),
    nameOf,
    write: (embeddings) => writeEmbeddings(embeddings, { isBase64: encoding === "base64", nameOf }),
  };
}

const toInput = (text: string): EmbeddingInput => ({
  $typeName: "parley.v1.EmbeddingInput",
  kind: { case: "text", value: text },
});

/** The caller's name of a field. A single text has no index. */
function nameOf(field: string): string {
  if (field === "end_user_id") return "user";
  return field.replace(/^inputs\b/, "input");
}

function refuseTokens(input: unknown): void {
  const first: unknown = Array.isArray(input) ? input[0] : undefined;
  if (typeof first === "number" || Array.isArray(first))
    throw invalidField("input", "must be texts: token IDs are those of one model, and are not passed on");
}
