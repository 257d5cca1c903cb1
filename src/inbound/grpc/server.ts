import { type AddressInfo, createServer, type Socket } from "node:net";
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
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/v1/model_pb.js";
import type { EdgeServices } from "../services.ts";
import { ConnectionGuard } from "./connection-guard.ts";
import { serviceDefinition } from "./definition.ts";
import { completionHandlers, keyHandlers, modelHandlers } from "./handlers.ts";
import { createHealthService } from "./health.ts";
import { PublicStreams } from "./public-streams.ts";
import { reflectionHandlers } from "./reflection.ts";

export interface GrpcOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** How long a connection takes new calls, give or take a tenth. */
  readonly maxConnectionAgeMs: number;
}

/** The gRPC entrance, listening. */
export interface GrpcServer {
  readonly port: number;
  /** Health turns to NOT_SERVING; everything is still served. */
  announce(): void;
  /**
   * Health turns to NOT_SERVING, no connection is accepted, and each is told to go (GOAWAY) with its next call or when it
   * has none: calls in flight go on. Resolves when all connections are closed.
   */
  drain(): Promise<void>;
  /** Ends what is left. */
  close(): void;
}

const MINUTE_MS = 60_000;

/** Starts the gRPC entrance: CompletionService, ModelService, KeyService, health and reflection. Rejects when it cannot listen. */
export async function startGrpcServer(
  services: EdgeServices,
  { host, port, maxReceiveBytes, maxSendBytes, maxConnectionAgeMs }: GrpcOptions,
): Promise<GrpcServer> {
  // What goes wrong reaches us as errors; the library's own lines on standard error are no log lines.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    "grpc.max_receive_message_length": maxReceiveBytes,
    "grpc.max_send_message_length": maxSendBytes,
    // Node's own default for a connection is four billion.
    "grpc.max_concurrent_streams": 1000,
    "grpc-node.max_session_memory": 64,
    // Age and dead connections are the guard's: the library would end streams that GOAWAY lets finish.
    "grpc.max_connection_idle_ms": 30 * MINUTE_MS,
  });
  const served = [CompletionService, ModelService, KeyService];
  const handlers = [completionHandlers(services), modelHandlers(services), keyHandlers(services)];
  served.forEach((service, index) => {
    server.addService(serviceDefinition(service), handlers[index] as unknown as UntypedServiceImplementation);
  });
  const openStreams = new PublicStreams();
  const health = createHealthService(["", ...served.map((service) => service.typeName)], openStreams);
  server.addService(serviceDefinition(Health), health.handlers);
  const reflection = reflectionHandlers([...served, Health], [file_google_rpc_error_details], openStreams);
  for (const definition of reflectionDefinitions()) {
    server.addService(definition, reflection);
  }

  const guard = new ConnectionGuard(services, { maxAgeMs: maxConnectionAgeMs });
  services.connections.onFull(() => guard.closeIdle());
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  // The library's own listener hands out no connections, which have to be guarded.
  const listener = createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: MINUTE_MS },
    (socket: Socket) => {
      if (!services.connections.add(socket)) return;
      guard.add(socket);
      injector.injectConnection(socket);
    },
  );
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
      listener.close();
      server.forceShutdown();
      guard.close();
    },
  };
}

/** Reflection has two names; tools ask for the older one when the newer is not there, and some for that one only. */
function reflectionDefinitions(): readonly ServiceDefinition[] {
  const definition = serviceDefinition(ServerReflection);
  const older = Object.entries(definition).map(([name, method]) => [
    name,
    { ...method, path: method.path.replace(".v1.", ".v1alpha.") },
  ]);
  return [definition, Object.fromEntries(older) as ServiceDefinition];
}
