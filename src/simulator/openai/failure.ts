import { Refusal } from "../answer.ts";
import type { Flaw } from "../shape.ts";

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

/** Formats a path, such as `messages[0].content`. */
function writePath(path: Flaw["path"]): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`));
  return steps.join("").replace(/^\./u, "");
}

/** Converts a validation error to OpenAI's wording, with the field in `param` and the kind in `code`. */
export function refuseFlaw(flaw: Flaw): Refusal {
  const field = writePath(flaw.path);
  switch (flaw.kind) {
    case "unknown":
      return new Refusal(400, `Unknown parameter: '${field}'.`, { field, code: "unknown_parameter" });
    case "missing": {
      const message = `Missing required parameter: '${field}'.`;
      return new Refusal(400, message, { field, code: "missing_required_parameter" });
    }
    case "type": {
      const message = `Invalid type for '${field}': expected ${flaw.expected}, but got ${typeof flaw.received} instead.`;
      return new Refusal(400, message, { field, code: "invalid_type" });
    }
    case "choice": {
      const message = `Invalid value for '${field}'. Supported values are: ${flaw.expected}.`;
      return new Refusal(400, message, { field, code: "invalid_value" });
    }
    case "too_small": {
      const message = `Invalid '${field}': expected a value >= ${flaw.expected}.`;
      return new Refusal(400, message, { field, code: "integer_below_min_value" });
    }
    case "too_big": {
      const message = `Invalid '${field}': expected a value <= ${flaw.expected}.`;
      return new Refusal(400, message, { field, code: "integer_above_max_value" });
    }
    case "rule":
    default:
      return new Refusal(400, `Invalid '${field}': ${flaw.expected}`, { field, code: "invalid_value" });
  }
}
