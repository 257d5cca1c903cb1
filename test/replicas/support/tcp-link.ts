import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** A way to a server that can be cut. */
export interface TcpLink {
  readonly port: number;
  /** Closes all connections, and refuses new ones. */
  cut(): void;
  mend(): void;
  close(): void;
}

/** Forwards connections to a port of this machine. */
export async function openTcpLink(to: number): Promise<TcpLink> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((caller) => {
    if (isCut) return caller.destroy();
    const callee = connect(to, "127.0.0.1");
    for (const [one, other] of [
      [caller, callee],
      [callee, caller],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const drop = (): void => sockets.forEach((socket) => void socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
      drop();
    },
    mend: () => void (isCut = false),
    close() {
      server.close();
      drop();
    },
  };
}
