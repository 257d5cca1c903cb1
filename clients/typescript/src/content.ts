import { create } from "@bufbuild/protobuf";
import type { Completion, CompletionChunk } from "./gen/parley/v1/completion_pb.js";
import { type EmbeddingInput, EmbeddingInputSchema } from "./gen/parley/v1/embedding_pb.js";
import { type Message, MessageSchema, type Part, PartSchema, Role, type ToolCall } from "./gen/parley/v1/message_pb.js";

/** Makes a part of text. */
export function textPart(text: string): Part {
  return create(PartSchema, { kind: { case: "text", value: text } });
}

/** Makes a part of an encoded picture. `mediaType` is such as `image/png`. */
export function imagePart(data: Uint8Array, mediaType: string): Part {
  return create(PartSchema, { kind: { case: "image", value: { source: { case: "data", value: data }, mediaType } } });
}

/** Makes the inputs of an embedding request from texts. */
export function textInputs(...texts: string[]): EmbeddingInput[] {
  return texts.map((value) => create(EmbeddingInputSchema, { kind: { case: "text", value } }));
}

/** Makes a message of the application. */
export function systemText(text: string): Message {
  return create(MessageSchema, { role: Role.SYSTEM, parts: [textPart(text)] });
}

/** Makes a message of the user. */
export function userText(text: string): Message {
  return create(MessageSchema, { role: Role.USER, parts: [textPart(text)] });
}

/** Makes the message that answers a tool call with text. */
export function toolResult(toolCallId: string, text: string): Message {
  const value = { toolCallId, parts: [textPart(text)] };
  return create(MessageSchema, { role: Role.TOOL, parts: [{ kind: { case: "toolResult", value } }] });
}

/** The text of a completion's first choice. */
export function textOf({ choices }: Completion): string {
  return partsOf(choices)
    .map(({ kind }) => (kind.case === "text" ? kind.value : ""))
    .join("");
}

/** The tool calls of a completion's first choice. */
export function toolCallsOf({ choices }: Completion): ToolCall[] {
  return partsOf(choices).flatMap(({ kind }) => (kind.case === "toolCall" ? kind.value : []));
}

/** The text that a chunk adds to the first choice; empty for most other chunks. */
export function textDelta({ event }: CompletionChunk): string {
  if (event.case !== "partDelta" || event.value.choiceIndex !== 0) return "";
  const { content } = event.value;
  return content.case === "text" ? content.value : "";
}

function partsOf([first]: Completion["choices"]): Part[] {
  return first?.message?.parts ?? [];
}
