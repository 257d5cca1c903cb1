import type { Server } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Http2Sessions } from "./http2-sessions.ts";
import type { Prefaces } from "./prefaces.ts";

/** Passes connections on whose clients have chosen HTTP/2. Node's own listener would serve them as HTTP/1.1. */
export function shareByAlpn(server: TlsServer, http2: Http2Sessions): void {
  const [serveHttp1] = server.listeners("secureConnection") as ((socket: TLSSocket) => void)[];
  server.removeAllListeners("secureConnection").on("secureConnection", (socket) => {
    if (socket.alpnProtocol !== "h2") serveHttp1!.call(server, socket);
    else if (!socket.destroyed) http2.open(socket);
  });
}

interface PlainSharing {
  readonly http2: Http2Sessions;
  readonly prefaces: Prefaces;
  readonly accept: (socket: Socket) => boolean;
}

/** Over plain TCP clients of HTTP/2 choose it without asking ("prior knowledge"). */
export function shareByPreface(server: Server, { http2, prefaces, accept }: PlainSharing): void {
  const [serveHttp1] = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection").on("connection", (socket) => {
    if (!accept(socket)) return;
    prefaces.read(socket, (protocol) => {
      if (protocol === "http2") http2.open(socket);
      else serveHttp1!.call(server, socket);
    });
  });
}
