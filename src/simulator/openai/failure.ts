import { Refusal } from "../answer.ts";
import type { BodyReader, Path } from "../body.ts";

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

/** Formats a path, such as `messages[0].content`. */
function writePath(path: Path): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`));
  return steps.join("").replace(/^\./u, "");
}

/** How OpenAI refuses bodies, with the field in `param` and the kind in `code`. */
export const BODY_REFUSALS: Pick<BodyReader<unknown>, "refuseUnknown" | "refuseFlaw"> = {
  refuseUnknown(path) {
    const field = writePath(path);
    return new Refusal(400, `Unknown parameter: '${field}'.`, { field, code: "unknown_parameter" });
  },
  refuseFlaw({ field, description, value }) {
    if (value === undefined)
      return new Refusal(400, `Missing required parameter: '${field}'.`, { field, code: "missing_required_parameter" });
    const kind = typeof value === "string" ? "value" : "type";
    return new Refusal(400, `Invalid ${kind} for '${field}': ${description}.`, { field, code: `invalid_${kind}` });
  },
};
