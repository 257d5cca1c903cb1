import { create, toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import type { Load } from "../loads.ts";
import { MESSAGES } from "./conversations.ts";

const ROLES = { system: Role.SYSTEM, user: Role.USER, assistant: Role.ASSISTANT } as const;

const PARAMETERS = { temperature: 0.7, maxOutputTokens: 512 };

/** The gRPC request of a load, or the given one in base64. */
export function toGrpcRequest(load: Pick<Load, "model">, given: string | undefined): Buffer {
  return given === undefined ? Buffer.from(toCompletionRequest(load)) : Buffer.from(given, "base64");
}

/** The short conversation as a gRPC client sends it. */
export function toCompletionRequest({ model }: Pick<Load, "model">): Uint8Array {
  const messages = MESSAGES.map(({ role, content }) => ({
    role: ROLES[role],
    parts: [{ kind: { case: "text" as const, value: content } }],
  }));
  return toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { model, messages, ...PARAMETERS }));
}
