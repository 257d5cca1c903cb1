import { setImmediate } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { type Embedding, type Embeddings, EmbeddingsSchema } from "../../gen/parley/v1/embedding_pb.js";
import { Failure } from "../core/failure.ts";
import type { OpenCall } from "./calls.ts";

/** Numbers that are encoded in one turn of the event loop: some 10 ms as JSON. */
const NUMBERS_PER_TURN = 50_000;

/** How a message is encoded. */
type Form = "binary" | "json";

/** Repeated fields may be encoded one by one, as parts of a message. Vectors have no number that JSON cannot hold. */
const ENCODERS: Readonly<Record<Form, (group: Embedding[], isFirst: boolean) => Buffer>> = {
  binary(embeddings) {
    const message: Embeddings = { $typeName: EmbeddingsSchema.typeName, id: "", model: "", embeddings };
    const bytes = toBinary(EmbeddingsSchema, message);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  },
  json: (group, isFirst) =>
    Buffer.from((isFirst ? "" : ",") + group.map(({ values }) => JSON.stringify({ values })).join(",")),
};

export interface VectorOptions {
  readonly form: Form;
  /** Limit of their bytes. */
  readonly maxBytes: number;
  /** The call, to which the work is charged. */
  readonly open: Pick<OpenCall, "work" | "signal">;
}

/**
 * Encodes vectors over several turns of the event loop, and releases them: 2,048 vectors have millions of numbers. Returns the fields of
 * the binary message, or the elements of its list in JSON. Throws `response_too_large` and the call's reason.
 */
export async function encodeVectors(
  { embeddings }: Pick<Embeddings, "embeddings">,
  { form, maxBytes, open }: VectorOptions,
): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (const group of groupsOf(embeddings)) {
    const piece = open.work(() => ENCODERS[form](group, pieces.length === 0));
    for (const embedding of group) embedding.values = [];
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    await setImmediate();
    open.signal.throwIfAborted();
  }
  return pieces;
}

function* groupsOf(embeddings: readonly Embedding[]): Generator<Embedding[]> {
  let group: Embedding[] = [];
  let numbers = 0;
  for (const embedding of embeddings) {
    group.push(embedding);
    numbers += embedding.values.length;
    if (numbers < NUMBERS_PER_TURN) continue;
    yield group;
    group = [];
    numbers = 0;
  }
  if (group.length > 0) yield group;
}

function tooLarge(maxBytes: number): Failure {
  return new Failure(
    "response_too_large",
    `The vectors have more than ${maxBytes / 1024 / 1024} MiB in this encoding. Send fewer inputs, ask for fewer dimensions, or use the binary encoding, which is a fifth of JSON.`,
  );
}
