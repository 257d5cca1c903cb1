import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { askForPassword } from "./password-request.ts";
import { queryClient } from "./query-client.ts";

/** Refetches the session when a call fails as unauthenticated, so that the app shows the sign-in page. */
const detectSessionEnd: Interceptor = (next) => async (request) => {
  const notice = (reason: unknown): void => {
    const isEnded = reason instanceof ConnectError && reason.code === Code.Unauthenticated;
    if (isEnded && request.method !== SessionService.method.signIn) {
      void queryClient.invalidateQueries({ queryKey: ["session"] });
    }
  };
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: watchFailure(response.message, notice) } : response;
  } catch (reason) {
    notice(reason);
    throw reason;
  }
};

/** Yields the messages of a stream, and calls `notice` if it fails. */
async function* watchFailure<T>(messages: AsyncIterable<T>, notice: (reason: unknown) => void): AsyncGenerator<T> {
  try {
    for await (const message of messages) yield message;
  } catch (reason) {
    notice(reason);
    throw reason;
  }
}

/** Transport of all calls to the server. */
export const transport = createConnectTransport({
  baseUrl: location.origin,
  interceptors: [detectSessionEnd, askForPassword],
  // Passwords are hashed one at a time, so concurrent sign-ins queue.
  defaultTimeoutMs: 30_000,
});
