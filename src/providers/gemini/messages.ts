import { type Message, type Part as MessagePart, Role, type ToolResult } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject } from "../wire/json.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { type Place, toPart, toPicture } from "./parts.ts";
import { checksSignatures, fillSignatures } from "./signature.ts";
import type { Content, InlineData, JsonObject, Part, SystemInstruction } from "./wire.ts";

/** A conversation in the provider's format. */
export interface Conversation {
  readonly systemInstruction: SystemInstruction | undefined;
  readonly contents: readonly Content[];
}

type TextPart = SystemInstruction["parts"][number];

/**
 * Converts messages to contents. System messages at any position form the single system instruction. Consecutive turns
 * of the same role are merged; a turn with calls is followed by all of its results. Empty text and reasoning are
 * dropped, because the provider uses only the signatures of reasoning. Speaker names and cache marks have no
 * counterpart. The last turn may be the model's (prefill): every model accepts it and continues it loosely.
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
    else if (message.role === Role.USER) addTurn(contents, "user", toParts(message.parts, place));
    else if (message.role === Role.TOOL) throw unmatchedResult(`${place.field}.parts[0]`);
    else if (message.role === Role.ASSISTANT) {
      addTurn(contents, "model", toModelParts(message, place));
      const calls = callsOf(message, place.field);
      if (calls.length === 0) continue;
      const answered = takeResults(messages, index + 1);
      addTurn(contents, "user", toResultParts(calls, resultsOf(answered, index + 1), target));
      index += answered.length;
    } else throw invalidField(`${place.field}.role`, "must be one of system, developer, user, assistant, tool");
  }
  // The provider requires at least one turn, so the last system message becomes a user turn.
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

/** Returns the consecutive tool messages from index `from`. */
function takeResults(messages: readonly Message[], from: number): readonly Message[] {
  let to = from;
  while (messages[to]?.role === Role.TOOL) to++;
  return messages.slice(from, to);
}

/** A tool call or a result, with its field path. */
interface PlacedCall {
  readonly id: string;
  readonly name: string;
  readonly field: string;
}
interface PlacedResult {
  readonly result: ToolResult;
  readonly field: string;
}

function callsOf({ parts }: Message, field: string): PlacedCall[] {
  return parts.flatMap(({ kind }, index) =>
    kind.case === "toolCall" ? [{ id: kind.value.id, name: kind.value.name, field: `${field}.parts[${index}]` }] : [],
  );
}

/** Returns the results in tool messages. `from` is the index of the first message. */
function resultsOf(messages: readonly Message[], from: number): PlacedResult[] {
  return messages.flatMap(({ parts }, offset) =>
    parts.flatMap(({ kind }, index) => {
      const field = `messages[${from + offset}].parts[${index}]`;
      if (kind.case === undefined) return [];
      if (kind.case !== "toolResult") throw invalidField(field, "must be a tool result in a tool message");
      return { result: kind.value, field };
    }),
  );
}

function toSystemParts({ parts: given }: Message, { field }: Place): readonly TextPart[] {
  const parts: TextPart[] = [];
  for (const [index, { kind }] of given.entries()) {
    if (kind.case === undefined) continue;
    if (kind.case !== "text") throw invalidField(`${field}.parts[${index}]`, "must be text in a system message");
    if (kind.value !== "") parts.push({ text: kind.value });
  }
  return parts;
}

function toParts(given: readonly MessagePart[], place: Place): Part[] {
  const parts: Part[] = [];
  for (const [index, piece] of given.entries()) {
    const part = toPart(piece, { ...place, field: `${place.field}.parts[${index}]` });
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

function toModelParts(message: Message, place: Place): Part[] {
  const parts = toParts(message.parts, place);
  if (checksSignatures(place.model)) fillSignatures(parts);
  return parts;
}

/**
 * Converts the results of one call turn. The provider requires exactly one result per call, in the order of the calls.
 * Images follow the results if the model does not accept them inside a result. Throws `invalid_request` for a call
 * without a result and for a result without a call.
 */
function toResultParts(
  calls: readonly PlacedCall[],
  results: readonly PlacedResult[],
  target: Omit<Place, "field">,
): Part[] {
  const waiting = new Set(results);
  const byCall = Map.groupBy(results, ({ result }) => result.toolCallId);
  const parts: Part[] = [];
  const following: Part[] = [];
  for (const { id, name, field } of calls) {
    const found = byCall.get(id)?.shift();
    if (found === undefined) throw invalidField(field, "must be followed by a tool message with its result");
    waiting.delete(found);
    const { text, pictures } = readResult(found.result, { ...target, field: `${found.field}.tool_result` });
    const inside = pictures.length > 0 && checksSignatures(target.model);
    const response = toResponse(text, { isError: found.result.isError, log: target.log });
    parts.push({ functionResponse: { id, name, response, ...(inside && { parts: pictures }) } });
    if (!inside) following.push(...pictures);
  }
  const [unmatched] = waiting;
  if (unmatched !== undefined) throw unmatchedResult(unmatched.field);
  return [...parts, ...following];
}

/** Creates the failure for a tool result without a matching call. */
function unmatchedResult(field: string): Error {
  return invalidField(
    `${field}.tool_result.tool_call_id`,
    "must be the ID of a tool call in the assistant message before it",
  );
}

interface Result {
  readonly text: string;
  readonly pictures: readonly { readonly inlineData: InlineData }[];
}

function readResult({ parts }: ToolResult, place: Place): Result {
  let text = "";
  const pictures: { inlineData: InlineData }[] = [];
  for (const [index, { kind }] of parts.entries()) {
    const field = `${place.field}.parts[${index}]`;
    if (kind.case === "text") text += kind.value;
    else if (kind.case === "image") pictures.push({ inlineData: toPicture(kind.value, { ...place, field }) });
    // Results have no place for them.
    else if (kind.case === "native") place.log.omit(field);
    else if (kind.case !== undefined) throw invalidField(field, "must be text or a picture");
  }
  return { text, pictures };
}

/**
 * Returns a JSON object unchanged, and wraps other text as `output` or `error`. Text with `$ref` is wrapped too,
 * because the provider interprets `$ref` there.
 */
function toResponse(
  text: string,
  { isError, log }: { readonly isError: boolean; readonly log: TranslationLog },
): JsonObject {
  if (isError) return { error: text };
  const value = text.trimStart().startsWith("{") && !text.includes('"$ref"') ? log.parse(text) : undefined;
  return isObject(value) ? value : { output: text };
}
