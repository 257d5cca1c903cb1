import { type EmbeddingRequest, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { invalidField } from "../../core/failure.ts";
import { MAX_INT32, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { NameOf } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { embeddingRequest, KNOWN_KEYS } from "./schema.ts";

/** A request, and the requested form of its vectors. */
export interface ReadRequest {
  readonly request: EmbeddingRequest;
  readonly unrecognized: readonly string[];
  readonly nameOf: NameOf;
  readonly encoding: "float" | "base64";
}

const readShape = shapeReader(embeddingRequest, "a request for embeddings");

/** Converts the JSON of a request. Throws `invalid_request` that names each field of a wrong type. */
export function readEmbeddingRequest(json: unknown): ReadRequest {
  const given = readShape(json);
  const { model, input, dimensions, user } = given;
  const request: EmbeddingRequest = {
    $typeName: "parley.v1.EmbeddingRequest",
    model,
    inputs: typeof input === "string" ? [input] : input,
    task: EmbeddingTask.UNSPECIFIED,
    strict: given.parley?.strict === true,
  };
  if (dimensions != null) {
    if (Math.abs(dimensions) > MAX_INT32) throw invalidField("dimensions", "is too large");
    request.dimensions = dimensions;
  }
  if (user != null) request.endUserId = user;
  const unrecognized = Object.keys(given)
    .filter((key) => !KNOWN_KEYS.has(key))
    .slice(0, MAX_UNRECOGNIZED)
    .map((key) => key.slice(0, 64));
  const isOne = typeof input === "string";
  return {
    request,
    unrecognized,
    encoding: given.encoding_format ?? "float",
    nameOf: (path) => {
      if (path === "end_user_id") return "user";
      return path.replace(/^inputs(\[0\])?/, isOne ? "input" : "input$1");
    },
  };
}
