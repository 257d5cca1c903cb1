import type { Failure } from "../../core/failure.ts";
import { Refusal } from "../answer.ts";

function nameType(status: number): string {
  if (status === 429) return "requests";
  return status < 500 ? "invalid_request_error" : "server_error";
}

const CODES: Readonly<Record<number, string>> = { 401: "invalid_api_key", 429: "rate_limit_exceeded" };

/** The error body. An error during a stream has the same. */
export function encodeError({ status, message, detail }: Refusal): unknown {
  const code = detail.code ?? CODES[status] ?? null;
  const type = code === "insufficient_quota" ? code : nameType(status);
  return { error: { message, type, param: detail.field ?? null, code } };
}

/** An error during a stream. */
export function encodeStreamError(refusal: Refusal): string {
  return `data: ${JSON.stringify(encodeError(refusal))}\n\n`;
}

/** Converts the failure of the format's reader to OpenAI's wording, with the field in `param` and the kind in `code`. */
export function refuseFailure({ violations: [first], message }: Failure, body: unknown): Refusal {
  if (first === undefined) return new Refusal(400, message);
  const { field, description } = first;
  const value = valueAt(body, field);
  if (value === undefined) {
    const missing = `Missing required parameter: '${field}'.`;
    return new Refusal(400, missing, { field, code: "missing_required_parameter" });
  }
  const kind = typeof value === "string" ? "value" : "type";
  return new Refusal(400, `Invalid ${kind} for '${field}': ${description}.`, { field, code: `invalid_${kind}` });
}

/** The value at a path such as `messages[0].content`. */
function valueAt(body: unknown, path: string): unknown {
  return path
    .split(/[.[\]]+/u)
    .filter(Boolean)
    .reduce<unknown>((value, step) => (value as Record<string, unknown> | null | undefined)?.[step], body);
}
