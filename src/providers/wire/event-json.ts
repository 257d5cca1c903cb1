import { tooComplex, unreadable } from "./response-failure.ts";
import { isTooComplex, parseExactly } from "./exact-json.ts";

/** One dialect's marker for the end of a stream, which proxies add to the others' streams as well. */
export function isEndMarker(data: string): boolean {
  return data.trim() === "[DONE]";
}

/**
 * Reads the data of a stream's events as JSON. One that is none may be the half of a last event, so it only counts as
 * broken once another event follows; otherwise the end of the stream tells whether anything is missing.
 */
export class EventJson {
  #broken = false;

  /**
   * The event's data; undefined when it is empty or not JSON. Throws `upstream_protocol` when an event before it was
   * not JSON, or when this one is larger than MAX_RESPONSE_JSON.
   */
  read(data: string): unknown {
    if (this.#broken) throw unreadable();
    if (isTooComplex(data)) throw tooComplex();
    try {
      return parseExactly(data);
    } catch {
      this.#broken = data.trim() !== "";
      return undefined;
    }
  }
}
