import { Refusal } from "../answer.ts";
import type { BodyReader } from "../body.ts";

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

/** The error body. An error during a stream has the same, without the ID of the request. */
export function encodeError(refusal: Refusal, requestId?: string): unknown {
  const { code } = refusal.detail;
  return {
    type: "error",
    error: {
      type: TYPES[refusal.status] ?? (refusal.status < 500 ? "invalid_request_error" : "api_error"),
      message: refusal.message,
      ...(code === undefined ? {} : { details: { error_code: code } }),
    },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  };
}

/** An error during a stream. */
export function encodeStreamError(refusal: Refusal): string {
  return `event: error\ndata: ${JSON.stringify(encodeError(refusal))}\n\n`;
}

/** How Anthropic refuses bodies: `messages.0.content: Field required`. */
export const BODY_REFUSALS: Pick<BodyReader<unknown>, "refuseUnknown" | "refuseFlaw"> = {
  refuseUnknown(path) {
    const field = path.join(".");
    return new Refusal(400, `${field}: Extra inputs are not permitted`, { field });
  },
  refuseFlaw({ field, description, value }) {
    const wrong = description.replace(/^must be /u, "Input should be ");
    return new Refusal(400, `${field}: ${value === undefined ? "Field required" : wrong}`, { field });
  },
};
