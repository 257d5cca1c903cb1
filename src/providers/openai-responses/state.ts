import { exceedsJsonSize } from "../../encoding/json-size.ts";
import { count, isObject, type Json, parseMeasured } from "../wire/json.ts";
import { isResponsesState, writeResponsesState } from "../wire/responses-state.ts";
import type { ReasoningItem } from "./wire.ts";

/*
 * State of this dialect in the signature of a part: JSON in base64, because some clients accept only base64. Signatures of other dialects
 * are left out.
 */

/** State of one part of an answer. */
export type State =
  /** The reasoning item of the part. `at`: its index among the answer's items, if it arrived after items that follow it. */
  | { readonly reasoning: Omit<ReasoningItem, "type">; readonly at?: number }
  /** Phase of a message: before calls, or at the end. */
  | { readonly phase: string }
  /** ID of the item of a picture. */
  | { readonly image: string };

/** Limit of a state in characters: about 500,000 tokens of reasoning with its summary. */
const MAX_CHARS = 4 * 1024 * 1024;
/** Limit of a state's JSON: an item with a summary of some thousand parts. */
const MAX_STATE_JSON = { depth: 5, values: 16_384 } as const;

export function writeState(state: State): string {
  return writeResponsesState(state);
}

/** Reads a state; undefined for a signature of another dialect, or a changed one. */
export function readState(signature: string): State | undefined {
  if (!isResponsesState(signature) || signature.length > MAX_CHARS) return undefined;
  const json = Buffer.from(signature, "base64").toString();
  if (exceedsJsonSize(json, MAX_STATE_JSON)) return undefined;
  const value = parseMeasured(json);
  if (!isObject(value)) return undefined;
  const { reasoning, at, phase, image } = value;
  if (isObject(reasoning)) return toReasoningState(reasoning, count(at));
  if (typeof phase === "string") return { phase };
  return typeof image === "string" ? { image } : undefined;
}

function toReasoningState(
  { id, summary, content, encrypted_content: encrypted }: Json,
  at: number | undefined,
): State | undefined {
  if (typeof encrypted !== "string" || !Array.isArray(summary)) return undefined;
  return {
    reasoning: {
      ...(typeof id === "string" && { id }),
      summary,
      ...(Array.isArray(content) && { content }),
      encrypted_content: encrypted,
    },
    ...(at !== undefined && { at }),
  };
}
