import { z } from "zod";
import { MAX_MESSAGES } from "../../core/validate.ts";
import { isPlainMessage, isPlainRequest } from "./plain-shape.ts";
import { type ChatMessage, type ChatRequest, chatRequest, message } from "./schema.ts";
import { toShapeFailure } from "./shape-failure.ts";

/*
 * A schema looks for each of its keys, and looking for those that are not there was nearly half of what a long
 * conversation cost it. Most messages have only a few of the keys: these are read by a schema that looks for no others.
 */
const usualMessage = message.pick({ role: true, content: true, tool_calls: true, tool_call_id: true }).strip();
const USUAL_KEYS: ReadonlySet<string> = new Set(Object.keys(usualMessage.shape));

const eitherMessage = z.transform((given: unknown, { issues }): ChatMessage => {
  if (isPlainMessage(given)) return given;
  const read = (hasUsualKeys(given) ? usualMessage : message).safeParse(given);
  if (read.success) return read.data;
  issues.push({ code: "custom", input: given });
  return z.NEVER;
});

/** Not for more messages than are taken: one that is wrong costs more here than in the whole schema. */
const quickRequest = chatRequest.extend({
  messages: z.array(z.unknown()).max(MAX_MESSAGES).pipe(z.array(eitherMessage)),
});

/** A request of the right shape. Throws `invalid_request` naming each field of a wrong type. */
export function readShape(json: unknown): ChatRequest {
  if (isPlainRequest(json)) return json;
  const quick = quickRequest.safeParse(json);
  if (quick.success) return quick.data;
  // What is wrong with it is for the whole schema to say.
  const read = chatRequest.safeParse(json);
  if (!read.success) throw toShapeFailure(read.error);
  return read.data;
}

function hasUsualKeys(given: unknown): boolean {
  for (const key in given as object) if (!USUAL_KEYS.has(key)) return false;
  return true;
}
