import type { Message, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/lenient.ts";
import { type Place, toPicture } from "./parts.ts";
import { checksSignatures } from "./signature.ts";
import type { InlineData, JsonObject, Part } from "./wire.ts";

/** A call turn and the tool messages right behind it. */
export interface CallTurn {
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
export function toResultParts({ calls, results, index }: CallTurn, target: Omit<Place, "field">): Part[] {
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
export function orphan(field: string): Error {
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
