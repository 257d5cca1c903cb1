import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Message, MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";

type MessageInit = MessageInitShape<typeof MessageSchema>;

/** A message with this text. */
export function message(role: Role, text: string, more: MessageInit = {}): Message {
  const parts = text === "" ? [] : [{ kind: { case: "text" as const, value: text } }];
  return create(MessageSchema, { role, parts, ...more });
}

/** An assistant message that calls the function `f`, once for each ID. */
export function callMessage(...ids: readonly string[]): Message {
  const parts = ids.map((id) => ({
    kind: { case: "toolCall" as const, value: { id, name: "f", input: { case: "argumentsJson" as const, value: "{}" } } },
  }));
  return create(MessageSchema, { role: Role.ASSISTANT, parts });
}

/** A tool message with the result of a call. */
export function resultMessage(toolCallId: string, text = "42"): Message {
  const parts = text === "" ? [] : [{ kind: { case: "text" as const, value: text } }];
  return create(MessageSchema, {
    role: Role.TOOL,
    parts: [{ kind: { case: "toolResult", value: { toolCallId, parts } } }],
  });
}

/** An ordinary request to the model `a`, but for what a test changes. */
export function requestTo(more: MessageInitShape<typeof CompletionRequestSchema> = {}): CompletionRequest {
  return create(CompletionRequestSchema, { model: "a", messages: [message(Role.USER, "Say hi.")], ...more });
}
