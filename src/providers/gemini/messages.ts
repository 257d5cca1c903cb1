import { type ContentPart, type Message, Role, type ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/json.ts";
import { type Place, toPart, toPicture } from "./parts.ts";
import { checksSignatures, fillSignatures, knownSignature, signText } from "./signature.ts";
import type { Content, InlineData, JsonObject, Part, SystemInstruction } from "./wire.ts";

/** A conversation in the provider's form. */
export interface Conversation {
  readonly systemInstruction: SystemInstruction | undefined;
  readonly contents: readonly Content[];
}

type TextPart = SystemInstruction["parts"][number];

/**
 * Converts messages to contents. System messages at any position form the one system instruction. Neighbouring turns of
 * the same role are merged; a turn with calls is followed by all of its results. Drops empty text and reasoning: the
 * provider uses only its signatures. Speaker names and cache marks have no counterpart. The last turn may be the model's
 * (prefill): every model accepts it and loosely continues it.
 *
 * Throws `invalid_request` for unsupported content, for calls without results and the reverse, and for an empty
 * conversation.
 */
export function toMessages(messages: readonly Message[], target: Omit<Place, "field">): Conversation {
  const system: (readonly TextPart[])[] = [];
  const contents: Content[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    const place = { ...target, field: `messages[${index}]` };
    if (message.role === Role.SYSTEM) system.push(toSystemParts(message, place));
    else if (message.role === Role.USER) addTurn(contents, "user", toParts(message.content, place));
    else if (message.role === Role.TOOL) throw orphan(place.field);
    else if (message.role === Role.ASSISTANT) {
      addTurn(contents, "model", toModelParts(message, place));
      if (message.toolCalls.length === 0) continue;
      const results = takeResults(messages, index + 1);
      addTurn(contents, "user", toResultParts({ calls: message.toolCalls, results, index }, target));
      index += results.length;
    } else throw invalidField(`${place.field}.role`, "must be one of system, developer, user, assistant, tool");
  }
  // The provider needs a turn to answer, so the last instruction becomes the user's turn.
  if (contents.length === 0) addTurn(contents, "user", [...(system.pop() ?? [])]);
  if (contents.length === 0) throw invalidField("messages", "must have some content");
  const parts = system.flat();
  return { systemInstruction: parts.length > 0 ? { parts } : undefined, contents };
}

function addTurn(contents: Content[], role: Content["role"], parts: Part[]): void {
  if (parts.length === 0) return;
  const last = contents.at(-1);
  if (last?.role === role) last.parts.push(...parts);
  else contents.push({ role, parts });
}

/** The run of tool messages that begins at `from`. */
function takeResults(messages: readonly Message[], from: number): readonly Message[] {
  let to = from;
  while (messages[to]?.role === Role.TOOL) to++;
  return messages.slice(from, to);
}

function toSystemParts({ content }: Message, { field }: Place): readonly TextPart[] {
  const parts: TextPart[] = [];
  for (const [index, { content: part }] of content.entries()) {
    if (part.case !== "text") throw invalidField(`${field}.content[${index}]`, "must be text in a system message");
    if (part.value !== "") parts.push({ text: part.value });
  }
  return parts;
}

function toParts(content: readonly ContentPart[], place: Place): Part[] {
  const parts: Part[] = [];
  for (const [index, piece] of content.entries()) {
    const part = toPart(piece, { ...place, field: `${place.field}.content[${index}]` });
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

function toModelParts(message: Message, place: Place): Part[] {
  const parts = toParts(message.content, place);
  if (message.refusal !== undefined && message.refusal !== "") parts.push({ text: message.refusal });
  for (const [index, call] of message.toolCalls.entries()) {
    if (call.custom) throw invalidField(`${place.field}.tool_calls[${index}]`, "this model has no custom tools");
    const signature = knownSignature(call.signature);
    const functionCall = { id: call.id, name: call.name, args: toArgs(call.arguments) };
    parts.push({ functionCall, ...(signature !== undefined && { thoughtSignature: signature }) });
  }
  const signature = knownSignature(message.signature);
  if (signature !== undefined) signText(parts, signature);
  if (checksSignatures(place.model)) fillSignatures(parts);
  return parts;
}

/** The arguments must be an object; other arguments are wrapped as text. */
function toArgs(text: string): JsonObject {
  if (text.trim() === "") return {};
  const value = parsed(text);
  return isObject(value) ? value : { arguments: text };
}

/** A call turn and the tool messages right behind it. */
interface CallTurn {
  readonly calls: readonly ToolCall[];
  readonly results: readonly Message[];
  /** Position of the call turn among the request's messages; its results follow it. */
  readonly index: number;
}

/**
 * The results of one call turn: exactly as many as calls and in their order, which the provider insists on, then the
 * pictures of models that do not take them inside a result. Throws `invalid_request` for a call without a result and
 * for a result without a call.
 */
function toResultParts({ calls, results, index }: CallTurn, target: Omit<Place, "field">): Part[] {
  const waiting = results.map((message, offset) => ({ message, field: `messages[${index + 1 + offset}]` }));
  const parts: Part[] = [];
  const loose: Part[] = [];
  for (const [position, call] of calls.entries()) {
    const at = waiting.findIndex(({ message }) => message.toolCallId === call.id);
    const found = waiting[at];
    if (found === undefined) {
      throw invalidField(
        `messages[${index}].tool_calls[${position}]`,
        "must be followed by a tool message with its result",
      );
    }
    waiting.splice(at, 1);
    const { text, pictures } = readResult(found.message, { ...target, field: found.field });
    const inside = pictures.length > 0 && checksSignatures(target.model);
    parts.push({
      functionResponse: {
        id: call.id,
        name: call.name,
        response: toResponse(text),
        ...(inside && { parts: pictures }),
      },
    });
    if (!inside) loose.push(...pictures);
  }
  if (waiting[0] !== undefined) throw orphan(waiting[0].field);
  return [...parts, ...loose];
}

/** The failure for a tool message that answers no call. */
function orphan(field: string): Error {
  return invalidField(`${field}.tool_call_id`, "must be the ID of a tool call in the assistant message before it");
}

interface Result {
  readonly text: string;
  readonly pictures: readonly { readonly inlineData: InlineData }[];
}

function readResult({ content }: Message, place: Place): Result {
  let text = "";
  const pictures: { inlineData: InlineData }[] = [];
  for (const [index, { content: part }] of content.entries()) {
    const field = `${place.field}.content[${index}]`;
    if (part.case === "text") text += part.value;
    else if (part.case === "image") pictures.push({ inlineData: toPicture(part.value, { ...place, field }) });
    else if (part.case !== undefined) throw invalidField(field, "must be text or a picture");
  }
  return { text, pictures };
}

/** A JSON object as it is, anything else as the `output` of one. `$ref` has a meaning of its own there. */
function toResponse(text: string): JsonObject {
  const value = text.trimStart().startsWith("{") && !text.includes('"$ref"') ? parsed(text) : undefined;
  return isObject(value) ? value : { output: text };
}
