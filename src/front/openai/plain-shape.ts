import type { ChatMessage, ChatRequest } from "./schema.ts";

/*
 * Most requests hold texts and a few numbers. What the schema would say of these is known beforehand, and looking at each
 * of the forty keys that a request may have costs it more than all else that is done with a short request's JSON.
 */

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isNumber: Check = (value) => Number.isFinite(value);
const isInteger: Check = (value) => Number.isSafeInteger(value);
const isBoolean: Check = (value) => typeof value === "boolean";

const ROLES: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant"]);

/** The keys of a plain request, and what their values are; `null` is for the schema. */
const PLAIN: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["model", isText],
  ["messages", (value) => Array.isArray(value) && value.every(isPlainMessage)],
  ["stream", isBoolean],
  ["max_tokens", isInteger],
  ["max_completion_tokens", isInteger],
  ["temperature", isNumber],
  ["top_p", isNumber],
  ["seed", isInteger],
  ["frequency_penalty", isNumber],
  ["presence_penalty", isNumber],
  ["user", isText],
]);

/** Whether the schema is certain to take the request as it is. If not, it may yet. */
export function isPlainRequest(json: unknown): json is ChatRequest {
  if (typeof json !== "object" || json === null) return false;
  const request = json as ChatRequest;
  for (const key in request) if (PLAIN.get(key)?.(request[key]) !== true) return false;
  return request.model !== undefined && request.messages !== undefined;
}

/** The same for a message: one with a role and a text. */
export function isPlainMessage(json: unknown): json is ChatMessage {
  if (typeof json !== "object" || json === null) return false;
  const message = json as ChatMessage;
  for (const key in message) if (key !== "role" && key !== "content") return false;
  return isText(message.content) && ROLES.has(message.role);
}
