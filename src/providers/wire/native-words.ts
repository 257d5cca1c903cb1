import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { type Json, parsed, string } from "./json.ts";
import type { Redact } from "./redaction.ts";
import { isOfTheGateway, toCallersJson } from "./further-fields.ts";

/*
 * Citations and events of types that the contract has no word for, as the provider wrote them, for callers of its dialect. State is taken
 * out, which would reach them without a seal, and what is about the gateway's account.
 */

const MAX_CITATION_CHARS = 16 * 1024;
const MAX_EVENT_CHARS = 64 * 1024;

/** A citation of a type that the contract does not have; undefined for one without a type, and a too large one. */
export function toNativeCitation(dialect: string, citation: Json): Citation | undefined {
  if (string(citation["type"]) === "") return undefined;
  const json = toCallersJson(citation);
  if (json.length > MAX_CITATION_CHARS) return undefined;
  const value = { $typeName: "parley.v1.NativeBlock", dialect, json } as const;
  return { $typeName: "parley.v1.Citation", source: { case: "native", value }, title: "", citedText: "" };
}

/** Whether an event is small enough to be passed on. */
export const isSmallEvent = (data: string): boolean => data.length <= MAX_EVENT_CHARS;

/** What is left out of an event. */
interface EventWords {
  /** Fields that say where it belongs. */
  readonly places: ReadonlySet<string>;
  /** The field that is the provider's whole answer so far, with its ID, upstream model and account, when it is an object. */
  readonly answer: string;
  readonly redact: Redact;
}

/**
 * The JSON of an event, without the provider's credentials, what is about the gateway's account, and the fields of `EventWords`.
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
