import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { type Json, parsed, string } from "./json.ts";
import type { Redact } from "./redaction.ts";
import { isOfTheGateway, toCallersJson } from "./further-fields.ts";

/*
 * Citations and events of types that the contract does not have, in the provider's JSON, for callers of its dialect. State is removed,
 * because it would reach callers without a seal, and so are fields about the gateway's account.
 */

const MAX_CITATION_CHARS = 16 * 1024;
const MAX_EVENT_CHARS = 64 * 1024;

/** A citation of a type that the contract does not have. Undefined without a type, and beyond MAX_CITATION_CHARS. */
export function toNativeCitation(dialect: string, citation: Json): Citation | undefined {
  if (string(citation["type"]) === "") return undefined;
  const json = toCallersJson(citation);
  if (json.length > MAX_CITATION_CHARS) return undefined;
  const value = { $typeName: "parley.v1.NativeBlock", dialect, json } as const;
  return { $typeName: "parley.v1.Citation", source: { case: "native", value }, title: "", citedText: "" };
}

/** Whether an event is small enough to be passed on. */
export const isSmallEvent = (data: string): boolean => data.length <= MAX_EVENT_CHARS;

/** Fields that are left out of an event, and the redaction of its texts. */
interface EventWords {
  /** Fields that name the event's item or position. */
  readonly places: ReadonlySet<string>;
  /** Field with the provider's whole answer so far, including its ID, upstream model and account. Left out when it is an object. */
  readonly answer: string;
  readonly redact: Redact;
}

/**
 * The JSON of an event without the provider's credentials, fields about the gateway's account, and the fields of `EventWords`.
 * Undefined when that is not possible.
 */
export function toEventJson(event: Json, { places, answer, redact }: EventWords): string | undefined {
  const isOwn = ([name, value]: readonly [string, unknown]): boolean =>
    !places.has(name) && !isOfTheGateway(name) && !(name === answer && typeof value === "object");
  const own = Object.entries(event).filter(isOwn);
  const text = toCallersJson(Object.fromEntries(own));
  const json = redact(text);
  return json === text || parsed(json) !== undefined ? json : undefined;
}
