/** Limit of informational answers (1xx) to one request. */
export const MAX_INFORMATIONAL = 16;

/** A request of `node:http`. */
interface InformedRequest {
  on(event: "information", listener: () => void): unknown;
  destroy(error: Error): unknown;
}

/** Ends a request with an error when a server sends more informational answers than this: it may send them without an end. */
export function limitInformational(request: InformedRequest): void {
  let count = 0;
  request.on("information", () => {
    if (++count > MAX_INFORMATIONAL) request.destroy(new Error(TOO_MANY));
  });
}

/** What a person is told of it. */
export const TOO_MANY = `There are more than ${MAX_INFORMATIONAL} informational answers.`;
