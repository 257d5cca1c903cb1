import { Refusal } from "../answer.ts";
import type { Flaw } from "../shape.ts";

const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Pydantic's type names by zod's. */
const EXPECTED: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  int: "integer",
  boolean: "boolean",
  array: "list",
  object: "dictionary",
  record: "dictionary",
};

/** The error body. An error during a stream has the same. */
export function encodeError(refusal: Refusal, requestId?: string) {
  const { code } = refusal.detail;
  return {
    type: "error" as const,
    error: {
      type: TYPES[refusal.status] ?? (refusal.status < 500 ? "invalid_request_error" : "api_error"),
      message: refusal.message,
      ...(code === undefined ? {} : { details: { error_code: code } }),
    },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  };
}

function describe(flaw: Flaw): string {
  switch (flaw.kind) {
    case "unknown":
      return "Extra inputs are not permitted";
    case "missing":
      return "Field required";
    case "type":
      return `Input should be a valid ${EXPECTED[flaw.expected] ?? flaw.expected}`;
    case "choice":
      return `Input should be ${flaw.expected}`;
    case "too_small":
      return `Input should be greater than or equal to ${flaw.expected}`;
    case "too_big":
      return `Input should be less than or equal to ${flaw.expected}`;
    case "rule":
    default:
      return flaw.expected;
  }
}

/** Converts a validation error to Anthropic's wording: `messages.0.content: Field required`. */
export function refuseFlaw(flaw: Flaw): Refusal {
  const field = flaw.path.join(".");
  return new Refusal(400, field === "" ? describe(flaw) : `${field}: ${describe(flaw)}`, { field });
}
