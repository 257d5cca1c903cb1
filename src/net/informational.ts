/** Limit of informational answers (1xx) to one request. */
export const MAX_INFORMATIONAL = 16;

/** Error message for more than MAX_INFORMATIONAL. */
export const TOO_MANY = `There are more than ${MAX_INFORMATIONAL} informational answers.`;

/** A request of `node:http`. */
interface InformedRequest {
  on(event: "information", listener: () => void): unknown;
  destroy(error: Error): unknown;
}

/**
 * Ends a request when a server sends more informational answers than MAX_INFORMATIONAL: it could send them forever. `failed` is called
 * before the "response" event, even when the response arrived together with them.
 */
export function limitInformational(request: InformedRequest, failed: (error: Error) => void): void {
  let count = 0;
  request.on("information", () => {
    if (++count !== MAX_INFORMATIONAL + 1) return;
    const error = new Error(TOO_MANY);
    failed(error);
    request.destroy(error);
  });
}
