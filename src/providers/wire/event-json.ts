import { tooComplex, unreadable } from "./response-failure.ts";
import { isTooComplex, parseExactly } from "./exact-json.ts";

/** Whether the data is OpenAI's end marker. Proxies add it to streams of the other dialects too. */
export function isEndMarker(data: string): boolean {
  return data.trim() === "[DONE]";
}

/**
 * Parses the data of a stream's events as JSON. Invalid JSON may be a truncated last event, so it is an error only once
 * another event follows; otherwise the end of the stream shows whether the answer is complete.
 */
export class EventJson {
  #broken = false;

  /**
   * Returns the parsed data; undefined if it is empty or not JSON. Throws `upstream_protocol` if an earlier event was
   * not JSON, or if this one exceeds MAX_RESPONSE_JSON.
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
