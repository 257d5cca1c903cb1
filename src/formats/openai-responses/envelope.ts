import { exceedsJsonSize } from "../../encoding/json-size.ts";

/*
 * State of a provider in the `encrypted_content` of a reasoning item: base64 of a JSON object, which clients send back unchanged. It is
 * not secret; providers verify their own signatures.
 */

/** State of one part of an answer. */
export type State =
  /** State of the reasoning item itself. */
  | { readonly reasoning: { readonly text?: string; readonly redacted?: string; readonly signature?: string } }
  /** State of the call with this ID. */
  | { readonly tool_call: string; readonly signature: string }
  /** State of the text before the item. */
  | { readonly text: true; readonly signature: string }
  /** State of the picture with this item ID. */
  | { readonly image: string; readonly signature: string };

/** Limit of characters: a signature of 4 MiB, the longest of any dialect, again in base64, and the shown text. */
const MAX_CHARS = 8 * 1024 * 1024;
/** Limits of a state's JSON. */
const MAX_STATE_JSON = { depth: 2, values: 16 } as const;

/** The beginning of the JSON. Its length is a multiple of three, so that its base64 is the beginning of the whole base64. */
const BEGINNING = '{"parley":1,';
const MARK = Buffer.from(BEGINNING).toString("base64");

export function writeState(state: State): string {
  return Buffer.from(JSON.stringify({ parley: 1, ...state })).toString("base64");
}

/** Reads a state; undefined for the state of another server, or a changed one. */
export function readState(text: string): State | undefined {
  if (text.length > MAX_CHARS || !text.startsWith(MARK)) return undefined;
  const json = Buffer.from(text, "base64").toString();
  if (exceedsJsonSize(json, MAX_STATE_JSON)) return undefined;
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
