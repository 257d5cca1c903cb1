import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";

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

/** The encoded request with an unknown field, number 1999. */
export function withUnknownField(ask?: Ask): Buffer {
  const field = new BinaryWriter().tag(1999, WireType.Varint).uint32(1).finish();
  return Buffer.concat([toBinary(CompletionRequestSchema, toRequest(ask)), field]);
}
