import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { type EmbeddingRequest, EmbeddingRequestSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { toInputs } from "../../support/embedding-inputs.ts";

/** Request of a scenario, for every format and gRPC; merged over "alpha, say hello". */
export type Ask = MessageInitShape<typeof CompletionRequestSchema>;

/** A user message with one text. */
export const userSays = (text: string): NonNullable<Ask["messages"]>[number] => ({
  role: Role.USER,
  parts: [{ kind: { case: "text", value: text } }],
});

/** The request as a message of the contract. */
export function toRequest(ask: Ask = {}): CompletionRequest {
  return create(CompletionRequestSchema, { model: "alpha", messages: [userSays("Hello?")], ...ask });
}

/** What a request for embeddings has beside model and `strict`. */
export type Embed = Omit<MessageInitShape<typeof EmbeddingRequestSchema>, "$typeName" | "model" | "strict">;

/** The request for embeddings: model and `strict` of `ask`, and one text unless `embed` has others. */
export function toEmbedding(ask?: Ask, embed: Embed = {}): EmbeddingRequest {
  const { model, strict } = toRequest(ask);
  return create(EmbeddingRequestSchema, { inputs: toInputs(["Hello?"]), ...embed, model, strict });
}

/** The encoded request with an unknown field, number 1999. */
export function withUnknownField(ask?: Ask): Buffer {
  return addUnknownField(toBinary(CompletionRequestSchema, toRequest(ask)));
}

/** The same of a request for embeddings. */
export function embeddingWithUnknownField(ask?: Ask): Buffer {
  return addUnknownField(toBinary(EmbeddingRequestSchema, toEmbedding(ask)));
}

function addUnknownField(message: Uint8Array): Buffer {
  return Buffer.concat([message, new BinaryWriter().tag(1999, WireType.Varint).uint32(1).finish()]);
}
