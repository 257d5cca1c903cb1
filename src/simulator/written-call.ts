import type { Tool } from "./prompt.ts";
import { makeExample, NOTHING_STATED } from "./schema-example.ts";

type Properties = Readonly<Record<string, unknown>>;

const VALUE = String.raw`'[^']*'|"[^"]*"|[^\s,()'"]+`;
const ARGUMENT = String.raw`\w+\s*=\s*(?:${VALUE})`;
/** Read at a position. Not an expression for each tool: a request has thousands, and compiling one takes up to a millisecond. */
const ARGUMENTS = new RegExp(String.raw`\(\s*(${ARGUMENT}(?:\s*,\s*${ARGUMENT})*)\s*\)`, "uy");
const PAIR = new RegExp(String.raw`(\w+)\s*=\s*(${VALUE})`, "gu");

/** Whether the message has a call of a tool, written with named arguments: `get_weather(city='New York', days=3)`. */
export function hasWrittenCall(message: string, tool: string): boolean {
  return findArguments(message, tool) !== undefined;
}

/**
 * Returns the arguments of a call that the message has written, or undefined. Required properties that it leaves out
 * are generated, optional ones are absent. `calls`: those of the answer.
 */
export function readWrittenCall(
  message: string,
  { name: tool, parameters: schema }: Tool,
  calls: number,
): Properties | undefined {
  const text = findArguments(message, tool);
  if (text === undefined) return undefined;
  const written = Object.fromEntries(
    Array.from(text.matchAll(PAIR), ([, name = "", value = ""]) => [name, toValue(value)]),
  );
  const { properties, required } = isObject(schema) ? schema : {};
  const names = Array.isArray(required) ? required.filter((name) => !Object.hasOwn(written, String(name))) : [];
  const missing = new Set<unknown>(names);
  const kept = Object.entries(isObject(properties) ? properties : {}).filter(([name]) => missing.has(name));
  const rest = { type: "object", properties: Object.fromEntries(kept), required: names };
  const made = makeExample({ ...(isObject(schema) && schema), ...rest }, NOTHING_STATED, calls);
  return { ...(isObject(made) && made), ...written };
}

function findArguments(message: string, tool: string): string | undefined {
  const begun = `${tool}(`;
  for (let at = message.indexOf(begun); at >= 0; at = message.indexOf(begun, at + 1)) {
    if (/\w/u.test(message.charAt(at - 1))) continue;
    ARGUMENTS.lastIndex = at + tool.length;
    const found = ARGUMENTS.exec(message)?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A quoted value is a text; others are numbers, `true`, `false` and `null`, or else texts too. */
function toValue(text: string): unknown {
  if (/^['"]/u.test(text)) return text.slice(1, -1);
  if (/^(?:true|false|null|-?\d+(?:\.\d+)?)$/u.test(text)) return JSON.parse(text) as unknown;
  return text;
}

function isObject(value: unknown): value is Properties {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
