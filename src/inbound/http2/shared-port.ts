import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { ConnectionGuard, GuardOptions } from "./connection-guard.ts";

/** gRPC on the connections of the HTTP server. */
export interface GrpcOnHttp {
  /** Age at which a connection gets GOAWAY, ±10 %. */
  readonly maxConnectionAgeMs: number;
  /** Guards a stream that carries a call of gRPC. */
  readonly guardStream: GuardOptions["guardStream"];
  /** Called once, before the first call. */
  guardedBy(guard: Pick<ConnectionGuard, "certificateOf">): void;
  /** Serves a call. */
  serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
}

/** Whether a stream carries a call of gRPC. gRPC-Web is served over HTTP. */
export function isGrpc({ "content-type": type = "" }: IncomingHttpHeaders): boolean {
  return /^application\/grpc($|[+;])/i.test(type);
}
