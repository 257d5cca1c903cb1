import { create } from "@bufbuild/protobuf";
import { type sendUnaryData, type ServerUnaryCall, type ServerWritableStream, status } from "@grpc/grpc-js";
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  type HealthListRequest,
  type HealthListResponse,
  HealthListResponseSchema,
} from "../../../gen/health/v1/health_pb.js";
import type { Encoded } from "./definition.ts";
import type { PublicStreams } from "./public-streams.ts";
import { toRefusal } from "./status.ts";

type Check = ServerUnaryCall<Encoded<HealthCheckRequest>, HealthCheckResponse>;
type Watch = ServerWritableStream<Encoded<HealthCheckRequest>, HealthCheckResponse>;
type List = ServerUnaryCall<Encoded<HealthListRequest>, HealthListResponse>;

/** `grpc.health.v1.Health`: all services are SERVING, later all NOT_SERVING. */
export interface HealthService {
  /** Handlers for grpc-js. */
  readonly handlers: {
    check(call: Check, reply: sendUnaryData<HealthCheckResponse>): void;
    list(call: List, reply: sendUnaryData<HealthListResponse>): void;
    watch(call: Watch): void;
  };
  /** Sets NOT_SERVING and notifies watchers. */
  announceEnd(): void;
}

/**
 * `names`: services; the empty name is the whole server. `openStreams` limits the Watch streams.
 */
export function createHealthService(names: readonly string[], openStreams: PublicStreams): HealthService {
  /** Watching calls with their services. */
  const watching = new Map<Watch, string>();
  let state = ServingStatus.SERVING;
  const answer = (name: string): HealthCheckResponse =>
    create(HealthCheckResponseSchema, { status: names.includes(name) ? state : ServingStatus.SERVICE_UNKNOWN });
  return {
    handlers: {
      check(call, reply) {
        let service: string;
        try {
          ({ service } = call.request.read());
        } catch (reason) {
          return reply(toRefusal(reason, call));
        }
        if (names.includes(service)) reply(null, answer(service));
        else reply({ code: status.NOT_FOUND, details: "There is no such service here." });
      },
      list(_call, reply) {
        const statuses = Object.fromEntries(names.map((name) => [name, answer(name)]));
        reply(null, create(HealthListResponseSchema, { statuses }));
      },
      watch(call) {
        let service: string;
        try {
          ({ service } = call.request.read());
        } catch (reason) {
          return void call.emit("error", toRefusal(reason, call));
        }
        if (!openStreams.open(call)) return;
        watching.set(call, service);
        // grpc-js emits "cancelled" at every end of a call.
        call.on("cancelled", () => watching.delete(call));
        call.write(answer(service));
      },
    },
    announceEnd() {
      state = ServingStatus.NOT_SERVING;
      for (const [call, service] of watching) call.write(answer(service));
    },
  };
}
