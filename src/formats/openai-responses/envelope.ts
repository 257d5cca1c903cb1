import { exceedsJsonSize } from "../../encoding/json-size.ts";

/*
 * State of a provider in the `encrypted_content` of a reasoning item: base64 of a JSON object, which clients send back unchanged. It is
 * not secret: providers check what they signed.
 */

/** State of one thing of an answer. */
export type State =
  /** Of the reasoning item itself. */
  | { readonly reasoning: { readonly text?: string; readonly redacted?: string; readonly signature?: string } }
  /** Of the call with this ID. */
  | { readonly tool_call: string; readonly signature: string }
  /** Of the text before it. */
  | { readonly text: true; readonly signature: string }
  /** Of the picture with this item ID. */
  | { readonly image: string; readonly signature: string };

/** Limit of characters: reasoning of some 200,000 tokens. */
const MAX_CHARS = 1024 * 1024;
/** What a state consists of: more is not one. */
const MAX_STATE_JSON = { depth: 2, values: 16 } as const;

export function writeState(state: State): string {
  return Buffer.from(JSON.stringify({ parley: 1, ...state })).toString("base64");
}

/** Reads a state; undefined for one of another server, or a changed one. */
export function readState(text: string): State | undefined {
  if (text.length > MAX_CHARS) return undefined;
  const json = Buffer.from(text, "base64").toString();
  if (!json.startsWith('{"parley":1,') || exceedsJsonSize(json, MAX_STATE_JSON)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return isState(value) ? value : undefined;
}

function isState(value: unknown): value is State {
  if (!isRecord(value)) return false;
  const { reasoning, tool_call: call, text, image, signature } = value;
  if (reasoning !== undefined) return isRecord(reasoning) && Object.values(reasoning).every(isText);
  return isText(signature) && (isText(call) || text === true || isText(image));
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === "string";
