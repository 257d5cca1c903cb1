import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { type Json, parsed, string } from "./json.ts";
import type { Redact } from "./redaction.ts";
import { OF_THE_GATEWAY, STATE } from "./further-fields.ts";

/*
 * Citations and events of types that the contract has no word for, as the provider wrote them, for callers of its dialect. State is taken
 * out: it would reach them without a seal.
 */

const MAX_CITATION_CHARS = 16 * 1024;
const MAX_EVENT_CHARS = 64 * 1024;

/** A citation of a type that the contract does not have; undefined for one without a type, and a too large one. */
export function toNativeCitation(dialect: string, citation: Json): Citation | undefined {
  if (string(citation["type"]) === "") return undefined;
  const json = JSON.stringify(citation, withoutState);
  if (json.length > MAX_CITATION_CHARS) return undefined;
  const value = { $typeName: "parley.v1.NativeBlock", dialect, json } as const;
  return { $typeName: "parley.v1.Citation", source: { case: "native", value }, title: "", citedText: "" };
}

/** Whether an event is small enough to be passed on. */
export const isSmallEvent = (data: string): boolean => data.length <= MAX_EVENT_CHARS;

/**
 * The JSON of an event, without the provider's credentials, what is about the gateway's account, and its fields `places`, which say
 * where it belongs. Undefined when that is not possible.
 */
export function toEventJson(
  event: Json,
  { places, redact }: { readonly places: ReadonlySet<string>; readonly redact: Redact },
): string | undefined {
  const own = Object.entries(event).filter(([name]) => !places.has(name) && !OF_THE_GATEWAY.has(name));
  const text = JSON.stringify(Object.fromEntries(own), withoutState);
  const json = redact(text);
  return json === text || parsed(json) !== undefined ? json : undefined;
}

function withoutState(name: string, value: unknown): unknown {
  return STATE.test(name) ? undefined : value;
}
