import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { ServerCredentials } from "@grpc/grpc-js";
import type { TlsEntrance } from "../../net/tls-entrance.ts";
import type { EdgeServices } from "../services.ts";
import { LISTEN_BACKLOG, quietTurn } from "../connections.ts";
import { ConnectionGuard } from "../http2/connection-guard.ts";
import { createGrpcCalls } from "./calls.ts";

export interface GrpcOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** Age at which a connection gets GOAWAY, ±10 %. */
  readonly maxConnectionAgeMs: number;
  /** Default: plain TCP. */
  readonly tls?: TlsEntrance | undefined;
}

/** The listening gRPC server. */
export interface GrpcServer {
  readonly port: number;
  /** Sets health to NOT_SERVING; all calls are still served. */
  announce(): void;
  /**
   * As `announce`; also refuses new connections and sends GOAWAY on each connection, with its next call or when it is idle.
   * Calls in flight continue. Resolves when all connections are closed.
   */
  drain(): Promise<void>;
  /** Closes all connections. */
  close(): void;
}

const MINUTE_MS = 60_000;

/**
 * Starts the gRPC server: CompletionService, EmbeddingService, ModelService, KeyService, health and reflection. Rejects when it
 * cannot listen.
 */
export async function startGrpcServer(
  services: EdgeServices,
  { host, port, maxReceiveBytes, maxSendBytes, maxConnectionAgeMs, tls }: GrpcOptions,
): Promise<GrpcServer> {
  const calls = createGrpcCalls(services, {
    maxReceiveBytes,
    maxSendBytes,
    certificateOf: (connectionId) => guard.certificateOf(connectionId),
  });
  const guard = new ConnectionGuard({
    clock: services.clock,
    maxAgeMs: maxConnectionAgeMs,
    tls,
    guardStream: calls.guardStream,
  });
  services.connections.onFull(() => guard.closeIdle());
  const injector = calls.server.createConnectionInjector(ServerCredentials.createInsecure());
  const accept = (socket: Socket): boolean => services.connections.add(socket);
  const open = (socket: Socket): void => {
    guard.add(socket);
    injector.injectConnection(socket);
  };
  const listenerOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: MINUTE_MS };
  // The library's listener does not expose connections, which the guard needs.
  const listener =
    tls === undefined
      ? createServer(listenerOptions, (socket) => void (accept(socket) && open(socket)))
      : createTlsServer(
          { ...listenerOptions, ...tls.serverOptions },
          (socket) => void (socket.destroyed || open(socket)),
        );
  tls?.guard(listener as TlsServer, accept);
  await new Promise<void>((resolve, reject) => {
    listener.on("error", reject);
    listener.listen({ port, host, backlog: LISTEN_BACKLOG }, () => resolve());
  });
  return {
    port: (listener.address() as AddressInfo).port,
    announce: () => calls.announce(),
    async drain() {
      calls.announce();
      await quietTurn();
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      guard.leave();
      await closed;
    },
    close() {
      tls?.close();
      listener.close();
      calls.server.forceShutdown();
      guard.close();
    },
  };
}
