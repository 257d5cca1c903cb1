import { isUtf8 } from "node:buffer";
import { Failure } from "../../core/failure.ts";
import { MAX_REQUEST_JSON, measureJson } from "../../encoding/json-size.ts";

/** Parses a request's body. Throws `invalid_request` saying what is wrong with it. */
export function parseBody(body: Buffer): unknown {
  if (body.length === 0) throw unreadable("is empty; it must be a JSON object");
  if (!isUtf8(body)) throw unreadable("is not valid UTF-8");
  const text = body.toString("utf8");
  const { depth, values } = measureJson(text, MAX_REQUEST_JSON);
  if (depth > MAX_REQUEST_JSON.depth) throw unreadable(`is nested deeper than ${MAX_REQUEST_JSON.depth} levels`);
  if (values > MAX_REQUEST_JSON.values) throw unreadable(`has more than ${MAX_REQUEST_JSON.values} keys and values`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (reason) {
    throw unreadable(`is not valid JSON${positionOf(reason)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw unreadable("must be a JSON object");
  return value;
}

function unreadable(what: string): Failure {
  return new Failure("invalid_request", `The request body ${what}.`);
}

/** Where parsing stopped, without repeating any of the body. */
function positionOf(reason: unknown): string {
  const found = /at position (\d+)/.exec(String(reason));
  return found === null ? "" : ` (at character ${found[1]})`;
}
