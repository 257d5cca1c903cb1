import { exceedsJsonSize } from "../../encoding/json-size.ts";

/*
 * State of other dialects that belongs to a text or a tool call, for which this format has no field. It is sent as the signature of
 * a thinking block without text, which clients send back unchanged. The block follows its text, or names its tool call.
 */

/** The state of a part. `toolCall`: the ID of its call; undefined for the text before it. */
export interface PartState {
  readonly toolCall: string | undefined;
  readonly signature: string;
}

/** Version of the envelope. */
const VERSION = 1;

/** Writes the state as a signature. */
export function writeState({ toolCall, signature }: PartState): string {
  const envelope = { parley: VERSION, ...(toolCall !== undefined && { tool_call: toolCall }), signature };
  return Buffer.from(JSON.stringify(envelope)).toString("base64");
}

/** Beginning of all envelopes, in base64. */
const BEGINNING = Buffer.from(`{"parley":${VERSION},`).toString("base64").slice(0, 16);

/** Limit of an envelope's JSON. The limits of a request's JSON do not apply within base64. */
const MAX_ENVELOPE = { depth: 1, values: 16 } as const;

/** Reads the state from a signature; undefined for the signature of a provider. */
export function readState(signature: string): PartState | undefined {
  if (!signature.startsWith(BEGINNING)) return undefined;
  const json = Buffer.from(signature, "base64").toString();
  if (exceedsJsonSize(json, MAX_ENVELOPE)) return undefined;
  try {
    const envelope = JSON.parse(json) as Record<string, unknown>;
    const { tool_call: toolCall, signature: state } = envelope;
    if (typeof state !== "string") return undefined;
    return { toolCall: typeof toolCall === "string" ? toolCall : undefined, signature: state };
  } catch {
    return undefined;
  }
}
