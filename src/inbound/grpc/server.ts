import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import {
  logVerbosity,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  setLogVerbosity,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingService } from "../../../gen/parley/v1/embedding_pb.js";
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/v1/model_pb.js";
import type { TlsEntrance } from "../../net/tls-entrance.ts";
import type { EdgeServices } from "../services.ts";
import { ConnectionGuard } from "../http2/connection-guard.ts";
import { MAX_STREAMS } from "../http2/guarded-connection.ts";
import { RESETS, SESSION_MB } from "../http2/session-options.ts";
import { serviceDefinition } from "./definition.ts";
import { completionHandlers, embeddingHandlers, keyHandlers, modelHandlers } from "./handlers.ts";
import { createHealthService } from "./health.ts";
import { PublicStreams } from "./public-streams.ts";
import { reflectionHandlers } from "./reflection.ts";
import { StreamGuard } from "./stream-guard.ts";

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

/** Watch streams in the process: a client has one per connection. */
const MAX_WATCHES = 4_096;
/** Reflection streams in the process: tools use them by hand. */
const MAX_REFLECTIONS = 256;

/** The library has no public option for options of its HTTP/2 server. */
function allowResets(server: Server): void {
  const { commonServerOptions } = server as unknown as { readonly commonServerOptions: object };
  Object.assign(commonServerOptions, RESETS);
}

/**
 * Starts the gRPC server: CompletionService, EmbeddingService, ModelService, KeyService, health and reflection. Rejects when it
 * cannot listen.
 */
export async function startGrpcServer(
  services: EdgeServices,
  { host, port, maxReceiveBytes, maxSendBytes, maxConnectionAgeMs, tls }: GrpcOptions,
): Promise<GrpcServer> {
  // Errors are handled; the library's own lines on standard error are not JSON.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    "grpc.max_receive_message_length": maxReceiveBytes,
    "grpc.max_send_message_length": maxSendBytes,
    // The guard raises it.
    "grpc.max_concurrent_streams": MAX_STREAMS.first,
    "grpc-node.max_session_memory": SESSION_MB,
    // The guard limits age and detects dead connections: the library would end streams that may finish after GOAWAY.
    "grpc.max_connection_idle_ms": 30 * MINUTE_MS,
  });
  allowResets(server);
  const served = [CompletionService, EmbeddingService, ModelService, KeyService];
  const guard = new ConnectionGuard({
    clock: services.clock,
    maxAgeMs: maxConnectionAgeMs,
    tls,
    guardStream: (stream, headers, facts) =>
      new StreamGuard(stream, headers, { ...facts, services, maxReceiveBytes }),
  });
  const callServices = { ...services, certificateOf: (connectionId: string) => guard.certificateOf(connectionId) };
  const handlers = [completionHandlers, embeddingHandlers, modelHandlers, keyHandlers].map((make) =>
    make(callServices),
  );
  served.forEach((service, index) => {
    server.addService(serviceDefinition(service), handlers[index] as unknown as UntypedServiceImplementation);
  });
  const clientOf = (address: string): string | undefined => services.connections.clientOf(address);
  const names = ["", ...served.map((service) => service.typeName)];
  const health = createHealthService(names, new PublicStreams({ most: MAX_WATCHES, clientOf }));
  server.addService(serviceDefinition(Health), health.handlers);
  const reflection = reflectionHandlers(
    [...served, Health],
    [file_google_rpc_error_details],
    new PublicStreams({ most: MAX_REFLECTIONS, clientOf }),
  );
  for (const definition of reflectionDefinitions()) {
    server.addService(definition, reflection);
  }

  services.connections.onFull(() => guard.closeIdle());
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
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
    listener.listen(port, host, () => resolve());
  });
  return {
    port: (listener.address() as AddressInfo).port,
    announce: () => health.announceEnd(),
    async drain() {
      health.announceEnd();
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      guard.leave();
      await closed;
    },
    close() {
      tls?.close();
      listener.close();
      server.forceShutdown();
      guard.close();
    },
  };
}

/** Reflection under both of its names: v1, and v1alpha for older tools. */
function reflectionDefinitions(): readonly ServiceDefinition[] {
  const definition = serviceDefinition(ServerReflection);
  const older = Object.entries(definition).map(([name, method]) => [
    name,
    { ...method, path: method.path.replace(".v1.", ".v1alpha.") },
  ]);
  return [definition, Object.fromEntries(older) as ServiceDefinition];
}
