import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Closes connections whose idle time is over, unless a request has arrived on them: after a time in which the event loop was busy, timers
 * run before sockets are read, and Node would reset the connection of a request that was sent in time.
 */
export function closeIdleAfterRead(server: Server): void {
  server.on("timeout", (socket: Socket) => {
    const { bytesRead } = socket;
    // Sockets are read between timers and immediates.
    setImmediate(() => {
      if (socket.bytesRead === bytesRead) socket.destroy();
    });
  });
}
