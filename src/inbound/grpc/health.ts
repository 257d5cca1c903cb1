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

/** `grpc.health.v1.Health` of services that all serve, until none does. */
export interface HealthService {
  /** In grpc-js's shape. */
  readonly handlers: {
    check(call: Check, reply: sendUnaryData<HealthCheckResponse>): void;
    list(call: List, reply: sendUnaryData<HealthListResponse>): void;
    watch(call: Watch): void;
  };
  /** From now on the answer is NOT_SERVING, and whoever watches hears of it. */
  announceEnd(): void;
}

/**
 * `names` are those of the services; the empty one is the server as a whole. `openStreams` bounds how many each connection
 * watches with.
 */
export function createHealthService(names: readonly string[], openStreams: PublicStreams): HealthService {
  /** Who watches, and which service. */
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
        // grpc-js says "cancelled" at every end of a call.
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
