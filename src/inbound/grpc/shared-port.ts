import type { Http2Server } from "node:http2";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import type { ConnectionGuard } from "../http2/connection-guard.ts";
import type { GrpcOnHttp } from "../http2/shared-port.ts";
import type { EdgeServices } from "../services.ts";
import { createGrpcCalls } from "./calls.ts";
import type { GrpcOptions } from "./server.ts";

/** gRPC on the connections of the HTTP server, which opens, guards and closes them. */
export interface SharedGrpc extends GrpcOnHttp {
  /** Sets health to NOT_SERVING; all calls are still served. */
  announce(): void;
  close(): void;
}

/** Makes gRPC for the HTTP server's port. */
export function createSharedGrpc(
  services: EdgeServices,
  {
    maxReceiveBytes,
    maxSendBytes,
    maxConnectionAgeMs,
  }: Pick<GrpcOptions, "maxReceiveBytes" | "maxSendBytes" | "maxConnectionAgeMs">,
): SharedGrpc {
  let guard: Pick<ConnectionGuard, "certificateOf"> | undefined;
  const certificateOf = (connectionId: string) => guard?.certificateOf(connectionId);
  const calls = createGrpcCalls(services, { maxReceiveBytes, maxSendBytes, certificateOf });
  const http2 = http2ServerOf(calls.server);
  return {
    maxConnectionAgeMs,
    guardStream: calls.guardStream,
    guardedBy: (given) => void (guard = given),
    serve: (stream, headers) => void http2.emit("stream", stream, headers),
    announce: () => calls.announce(),
    close: () => calls.server.forceShutdown(),
  };
}

/** The library has no public way to serve a stream: its server of HTTP/2 has a listener for them. */
function http2ServerOf(server: Server): Http2Server {
  const internals = server as unknown as { createHttp2Server(credentials: ServerCredentials): Http2Server };
  return internals.createHttp2Server(ServerCredentials.createInsecure());
}
