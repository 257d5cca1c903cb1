import { create } from "@bufbuild/protobuf";
import {
  AudioSchema,
  type CacheMark,
  CacheMarkSchema,
  type Message,
  type Part,
  Role,
  type ToolCall,
} from "../../../gen/parley/v1/message_pb.js";
import { toDuration } from "../../core/attempt.ts";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { readAudio, readFile, readImage } from "../openai-media.ts";
import type { ChatMessage, ChatPart } from "./schema.ts";

const ROLES = {
  system: Role.SYSTEM,
  developer: Role.SYSTEM,
  user: Role.USER,
  assistant: Role.ASSISTANT,
  tool: Role.TOOL,
} as const satisfies Record<ChatMessage["role"], Role>;

/*
 * Messages, parts and calls are plain objects of the shape that `create` returns: a request may have thousands, and `create`,
 * which iterates over all fields, would cost more than the rest. The compiler reports a missing field.
 */

/** Converts a message of the OpenAI format. `index`: its place in the request, for errors. */
export function toMessage(message: ChatMessage, index: number): Message {
  const parts = toParts(message, index);
  const mark = message.cache_control == null ? undefined : toCacheMark(message.cache_control, pathOf(index));
  const marked = mark && parts.findLast(({ kind }) => kind.case !== "reasoning" && !isBlankText(kind));
  if (marked !== undefined) marked.cacheMark = mark;
  const out: Message = { $typeName: "parley.v1.Message", role: ROLES[message.role], parts };
  if (message.name != null) out.name = message.name;
  return out;
}

const pathOf = (index: number): string => `messages[${index}]`;

const isBlankText = (kind: Part["kind"]): boolean => kind.case === "text" && kind.value.trim() === "";

function toParts(message: ChatMessage, index: number): Part[] {
  const content = toContent(message, index);
  if (message.role === "tool") {
    const toolCallId = message.tool_call_id ?? "";
    return [
      toPart({
        case: "toolResult",
        value: { $typeName: "parley.v1.ToolResult", toolCallId, parts: content, isError: false },
      }),
    ];
  }
  if (message.refusal != null) content.push(toPart({ case: "refusal", value: message.refusal }));
  const calls = message.tool_calls?.map(toToolCall);
  const reasoning = toReasoning(message);
  const inFormatsOrder = calls === undefined ? content : [...content, ...calls];
  const parts = reasoning.length === 0 ? inFormatsOrder : inOrder(reasoning, content, calls ?? []);
  const signature = signatureOf(message.extra_content);
  if (signature !== undefined) sign(parts, signature);
  return parts;
}

/** A reasoning part, and its position: the text and the calls before it. */
interface PlacedReasoning {
  readonly part: Part;
  readonly textOffset: number;
  readonly callOffset: number;
}

/** The parts of an assistant message in the order of the answer. The OpenAI format itself does not preserve that order. */
function inOrder(reasoning: readonly PlacedReasoning[], content: readonly Part[], calls: readonly Part[]): Part[] {
  const parts: Part[] = [];
  const left = [...content];
  let textAt = 0;
  let callAt = 0;
  for (const { part, textOffset, callOffset } of reasoning) {
    while (left.length > 0 && textAt < textOffset) {
      const next = left.shift()!;
      const taken = textOffset - textAt;
      if (next.kind.case === "text" && next.kind.value.length > taken) {
        const { value } = next.kind;
        parts.push(toPart({ case: "text", value: value.slice(0, taken) }));
        left.unshift({ ...next, kind: { case: "text", value: value.slice(taken) } });
      } else parts.push(next);
      textAt += next.kind.case === "text" ? Math.min(next.kind.value.length, taken) : 0;
    }
    while (callAt < Math.min(callOffset, calls.length)) parts.push(calls[callAt++]!);
    parts.push(part);
  }
  return [...parts, ...left, ...calls.slice(callAt)];
}

/**
 * Puts the message's signature on its likely part: Google's text models sign their last text, image models their first. Without a text,
 * the signature gets an empty text, in which it originally came.
 */
function sign(parts: Part[], signature: string): void {
  const isText = ({ kind }: Part): boolean => kind.case === "text";
  const hasImage = parts.some(({ kind }) => kind.case === "image");
  const text = hasImage ? parts.find(isText) : parts.findLast(isText);
  if (text === undefined) parts.push(toPart({ case: "text", value: "" }, signature));
  else text.signature = signature;
}

function toContent({ content, images, audio }: ChatMessage, index: number): Part[] {
  const parts: Part[] =
    typeof content === "string"
      ? content === ""
        ? []
        : [toPart({ case: "text", value: content })]
      : (content ?? []).map((part, at) => toContentPart(part, `${pathOf(index)}.content[${at}]`));
  // Images of an earlier answer are sent back beside its text.
  images?.forEach((image, at) => parts.push(toContentPart(image, `${pathOf(index)}.images[${at}]`)));
  if (audio != null) parts.push(toPart({ case: "audio", value: create(AudioSchema, { id: audio.id }) }));
  return parts;
}

function toContentPart(part: ChatPart, path: string): Part {
  const signature = part.type === "image_url" ? (signatureOf(part.extra_content) ?? "") : "";
  const out = toPart(toPartContent(part, path), signature);
  const mark =
    "cache_control" in part ? toCacheMark(part.cache_control as { ttl?: string | null } | null, path) : undefined;
  if (mark !== undefined) out.cacheMark = mark;
  return out;
}

function toPartContent(part: ChatPart, path: string): Part["kind"] {
  switch (part.type) {
    case "text":
      return { case: "text", value: part.text };
    case "refusal":
      return { case: "text", value: part.refusal };
    case "image_url": {
      const { image_url: given } = part;
      const { url, detail } = typeof given === "string" ? { url: given, detail: undefined } : given;
      return { case: "image", value: readImage(url, detail, `${path}.image_url.url`) };
    }
    case "input_audio":
      return { case: "audio", value: readAudio(part.input_audio, `${path}.input_audio`) };
    case "file":
      return { case: "file", value: readFile(part.file, `${path}.file`) };
  }
}

function toToolCall(call: NonNullable<ChatMessage["tool_calls"]>[number]): Part {
  const custom = call.type === "custom";
  const value: ToolCall = {
    $typeName: "parley.v1.ToolCall",
    id: call.id,
    name: custom ? call.custom.name : call.function.name,
    input: custom
      ? { case: "customInput", value: call.custom.input }
      : { case: "argumentsJson", value: call.function.arguments },
  };
  return toPart({ case: "toolCall", value }, custom ? "" : (signatureOf(call.extra_content) ?? ""));
}

/** Reasoning with signatures if the client kept them, else the text that it kept. */
function toReasoning({ thinking_blocks: blocks, reasoning_content: text }: ChatMessage): PlacedReasoning[] {
  if (blocks == null)
    return text == null || text === "" ? [] : [{ part: toReasoningPart(text, ""), textOffset: 0, callOffset: 0 }];
  return blocks.map((block) => ({
    part: toReasoningPart(
      block.thinking ?? "",
      block.type === "redacted_thinking" ? (block.data ?? "") : "",
      block.signature ?? "",
    ),
    textOffset: block.at?.text ?? 0,
    callOffset: block.at?.tools ?? 0,
  }));
}

function toReasoningPart(text: string, redacted: string, signature = ""): Part {
  return toPart({ case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text, redacted } }, signature);
}

/** Google's place for a thought signature, which clients of other providers pass through. */
function signatureOf(
  extra: { google?: { thought_signature?: string | null | undefined } | null | undefined } | null | undefined,
): string | undefined {
  return extra?.google?.thought_signature ?? undefined;
}

const SECONDS = { s: 1, m: 60, h: 3600 } as const;

/** An ephemeral cache mark, by the convention of several gateways. `path`: the message, part or tool that has it, for errors. */
export function toCacheMark(
  control: { ttl?: string | null | undefined } | null | undefined,
  path: string,
): CacheMark | undefined {
  if (control == null) return undefined;
  const mark = create(CacheMarkSchema);
  if (control.ttl == null || control.ttl === "") return mark;
  const [, count, unit] = /^(\d{1,6})([smh])$/.exec(control.ttl) ?? [];
  if (count === undefined) throw invalidField(`${path}.cache_control.ttl`, "must be a time such as 5m or 1h");
  mark.ttl = toDuration(Number(count) * SECONDS[unit as keyof typeof SECONDS] * 1000);
  return mark;
}
