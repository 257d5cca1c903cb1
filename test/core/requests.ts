import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Message, MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";

type MessageInit = MessageInitShape<typeof MessageSchema>;

/** A message with this text. */
export function message(role: Role, text: string, more: MessageInit = {}): Message {
  const content = text === "" ? [] : [{ content: { case: "text" as const, value: text } }];
  return create(MessageSchema, { role, content, ...more });
}

/** An ordinary request to the model `a`, but for what a test changes. */
export function requestTo(more: MessageInitShape<typeof CompletionRequestSchema> = {}): CompletionRequest {
  return create(CompletionRequestSchema, { model: "a", messages: [message(Role.USER, "Say hi.")], ...more });
}
