import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Checks within the time without progress after which a connection closes. */
const LOOKS = 4;

/** A socket's handle, whose bytes in the kernel's queue have no public property. */
interface Handle {
  readonly writeQueueSize: number;
}

const limited = new WeakSet<ServerResponse>();

/**
 * Closes the connection of a response that is written without a call when its caller reads nothing for `stallMs`. Each response has a
 * timer of its own. Node's timeout of a socket would not do: whatever the caller sends renews it, such as blank lines, and all responses of
 * a connection share it.
 */
export function limitUnread(response: ServerResponse, stallMs: number): void {
  // Over HTTP/2 the guard of the stream limits it.
  if (response.req.httpVersionMajor === 2 || response.closed || limited.has(response)) return;
  limited.add(response);
  const limit = (socket: Socket): void => {
    let seen = progressOf(socket);
    let looks = 0;
    const timer = setInterval(() => {
      const progress = progressOf(socket);
      looks = progress === seen ? looks + 1 : 0;
      seen = progress;
      if (looks === LOOKS) socket.destroy();
    }, stallMs / LOOKS).unref();
    response.once("close", () => clearInterval(timer));
  };
  // Without a socket, pipelining: the previous response is not sent yet.
  if (response.socket === null) response.once("socket", limit);
  else limit(response.socket);
}

/** Changes with each write, and while the kernel takes one over. */
function progressOf(socket: Socket): string {
  const { _handle: handle } = socket as unknown as { readonly _handle: Handle | null };
  return `${socket.bytesWritten} ${handle?.writeQueueSize}`;
}
