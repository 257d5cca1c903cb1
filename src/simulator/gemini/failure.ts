import { Refusal } from "../answer.ts";
import type { Flaw } from "../shape.ts";
import { toSnakeCase } from "./request.ts";

const STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  409: "ABORTED",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** Protocol buffer type names by zod's. */
const EXPECTED: Readonly<Record<string, string>> = {
  string: "TYPE_STRING",
  number: "TYPE_FLOAT",
  int: "TYPE_INT32",
  boolean: "TYPE_BOOL",
  array: "a list",
  object: "a message",
  record: "a message",
};

/** The error body. The retry delay is in `RetryInfo`, never in a header. */
export function encodeError(refusal: Refusal): unknown {
  const { retryAfterSeconds, code, field } = refusal.detail;
  const details = [
    ...(code === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: code, domain: "googleapis.com" }]),
    ...(field === undefined
      ? []
      : [
          {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            fieldViolations: [{ field, description: refusal.message }],
          },
        ]),
    ...(retryAfterSeconds === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfterSeconds}s` }]),
  ];
  return {
    error: {
      code: refusal.status,
      message: refusal.message,
      status: STATUSES[refusal.status] ?? (refusal.status < 500 ? "FAILED_PRECONDITION" : "UNKNOWN"),
      ...(details.length > 0 ? { details } : {}),
    },
  };
}

/** Formats a path, such as `contents[0].parts[1]`. */
function writePath(path: Flaw["path"]): string {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${toSnakeCase(step)}`))
    .join("")
    .slice(path.length > 0 && typeof path[0] === "string" ? 1 : 0);
}

function describe(flaw: Flaw): string {
  const path = writePath(flaw.path);
  switch (flaw.kind) {
    case "unknown": {
      const parent = writePath(flaw.path.slice(0, -1));
      const place = parent === "" ? "" : ` at '${parent}'`;
      return `Invalid JSON payload received. Unknown name "${String(flaw.path.at(-1))}"${place}: Cannot find field.`;
    }
    case "missing":
      return `* GenerateContentRequest.${path}: ${path} is not specified\n`;
    case "type":
      return `Invalid value at '${path}' (${EXPECTED[flaw.expected] ?? flaw.expected}), ${JSON.stringify(flaw.received)}`;
    case "choice":
    case "rule":
    case "too_big":
    case "too_small":
    default:
      return `Invalid value at '${path}': ${JSON.stringify(flaw.received)}`;
  }
}

/** Converts a validation error to the API's wording. */
export function refuseFlaw(flaw: Flaw): Refusal {
  const isUnknown = flaw.kind === "unknown";
  return new Refusal(400, describe(flaw), { field: writePath(isUnknown ? flaw.path.slice(0, -1) : flaw.path) });
}
