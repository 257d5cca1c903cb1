import {
  logVerbosity,
  Server,
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
import type { ClientCertificate } from "../../net/tls-entrance.ts";
import type { GuardOptions } from "../http2/connection-guard.ts";
import { MAX_STREAMS } from "../http2/guarded-connection.ts";
import { RESETS, SESSION_MB } from "../http2/session-options.ts";
import type { EdgeServices } from "../services.ts";
import { serviceDefinition } from "./definition.ts";
import { completionHandlers, embeddingHandlers, keyHandlers, modelHandlers } from "./handlers.ts";
import { createHealthService } from "./health.ts";
import { PublicStreams } from "./public-streams.ts";
import { reflectionHandlers } from "./reflection.ts";
import { StreamGuard } from "./stream-guard.ts";

export interface GrpcCallsOptions {
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** The certificate of a connection's client, by the connection's ID. */
  readonly certificateOf: (connectionId: string) => ClientCertificate | undefined;
}

/** The services of gRPC, without connections. */
export interface GrpcCalls {
  /** The library's server. */
  readonly server: Server;
  readonly guardStream: GuardOptions["guardStream"];
  /** Sets health to NOT_SERVING. */
  announce(): void;
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

/** Makes CompletionService, EmbeddingService, ModelService, KeyService, health and reflection. */
export function createGrpcCalls(
  services: EdgeServices,
  { maxReceiveBytes, maxSendBytes, certificateOf }: GrpcCallsOptions,
): GrpcCalls {
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
  const callServices = { ...services, certificateOf };
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
  return {
    server,
    guardStream: (stream, headers, facts) => new StreamGuard(stream, headers, { ...facts, services, maxReceiveBytes }),
    announce: () => health.announceEnd(),
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
