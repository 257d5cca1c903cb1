import type { ChatMessage, ChatRequest } from "./schema.ts";

/*
 * Most requests hold texts, a few numbers and tools. What the schema would say of these is known beforehand, and looking
 * at each of the forty keys that a request may have costs it more than all else that is done with a short request's JSON.
 */

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isNumber: Check = (value) => Number.isFinite(value);
const isInteger: Check = (value) => Number.isSafeInteger(value);
const isBoolean: Check = (value) => typeof value === "boolean";

function isOneOf(...values: readonly string[]): Check {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
}

function isListOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** An object that has the `required` keys, may have the `optional` ones, and has no others. */
function isObjectOf(required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check {
  const checks = new Map(Object.entries({ ...required, ...optional }));
  const needed = Object.keys(required);
  return (value) => {
    if (!isObject(value)) return false;
    for (const key in value) if (checks.get(key)?.(value[key]) !== true) return false;
    for (const key of needed) if (!Object.hasOwn(value, key)) return false;
    return true;
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The schema leaves this one key of the parameters out. */
const isParameters: Check = (value) => isObject(value) && !Object.hasOwn(value, "__proto__");

const isFunctionTool = isObjectOf({
  type: isOneOf("function"),
  function: isObjectOf({ name: isText }, { description: isText, parameters: isParameters, strict: isBoolean }),
});

const isFunctionCall = isObjectOf({
  id: isText,
  type: isOneOf("function"),
  function: isObjectOf({ name: isText, arguments: isText }),
});

const isSpeaker = isOneOf("system", "developer", "user", "assistant");
const isSaying = isObjectOf({ role: isSpeaker, content: isText });
const isCalling = isObjectOf(
  { role: isSpeaker, tool_calls: isListOf(isFunctionCall) },
  { content: (value) => value === null || isText(value) },
);
const isResult = isObjectOf({ role: isOneOf("tool"), tool_call_id: isText, content: isText });
const isMessage: Check = (value) => isSaying(value) || isCalling(value) || isResult(value);

/** Elsewhere `null` is for the schema. */
const isRequest = isObjectOf(
  { model: isText, messages: isListOf(isMessage) },
  {
    stream: isBoolean,
    max_tokens: isInteger,
    max_completion_tokens: isInteger,
    temperature: isNumber,
    top_p: isNumber,
    seed: isInteger,
    frequency_penalty: isNumber,
    presence_penalty: isNumber,
    user: isText,
    tools: isListOf(isFunctionTool),
    tool_choice: isOneOf("none", "auto", "required"),
    parallel_tool_calls: isBoolean,
  },
);

/** Whether the schema is certain to take the request as it is. If not, it may yet. */
export function isPlainRequest(json: unknown): json is ChatRequest {
  return isRequest(json);
}

/** The same for a message: one with a text, with calls of functions, or with the result of one. */
export function isPlainMessage(json: unknown): json is ChatMessage {
  return isMessage(json);
}
