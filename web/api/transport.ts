import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { askForPassword } from "./password-request.ts";
import { queryClient } from "./query-client.ts";

/** A call that finds the session ended lets the app find out too, which then shows the sign-in. */
const noticeEnd: Interceptor = (next) => async (request) => {
  const notice = (reason: unknown): void => {
    const isEnded = reason instanceof ConnectError && reason.code === Code.Unauthenticated;
    if (isEnded && request.method !== SessionService.method.signIn) {
      void queryClient.invalidateQueries({ queryKey: ["session"] });
    }
  };
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: noticed(response.message, notice) } : response;
  } catch (reason) {
    notice(reason);
    throw reason;
  }
};

/** A stream whose failure is told of. */
async function* noticed<T>(messages: AsyncIterable<T>, notice: (reason: unknown) => void): AsyncGenerator<T> {
  try {
    for await (const message of messages) yield message;
  } catch (reason) {
    notice(reason);
    throw reason;
  }
}

/** The pages' only way to the server. */
export const transport = createConnectTransport({
  baseUrl: location.origin,
  interceptors: [noticeEnd, askForPassword],
  // Passwords are hashed one after another when many people sign in.
  defaultTimeoutMs: 30_000,
});
