import { expect } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Calls } from "../../src/inbound/calls.ts";
import type { EdgeServices } from "../../src/inbound/services.ts";
import { type GrpcServer, startGrpcServer } from "../../src/inbound/grpc/server.ts";
import { anyConnections, roomyAdmission } from "./admission.ts";

const never = (): never => expect.fail("nothing is completed here");

/** Services behind a listener that complete and authenticate nothing, without limits, with `own` in place of some. */
export function idleServices(own: Partial<EdgeServices> = {}): EdgeServices {
  return {
    completions: { create: never, stream: never, count: never, explain: never },
    embedder: { create: never },
    models: { list: never, page: never, get: never },
    requireRequestRate: () => undefined,
    limitsOf: never,
    authenticate: never,
    calls: new Calls(systemClock),
    admission: roomyAdmission(systemClock),
    connections: anyConnections(),
    clock: systemClock,
    refused: () => undefined,
    ...own,
  };
}

const MIB = 1024 * 1024;

/** Starts a server of gRPC with `idleServices`, on a free port unless one is given. */
export function startGrpc(
  own: Partial<EdgeServices> = {},
  options: Partial<Parameters<typeof startGrpcServer>[1]> = {},
): Promise<GrpcServer> {
  return startGrpcServer(idleServices(own), {
    host: "127.0.0.1",
    port: 0,
    maxReceiveBytes: 32 * MIB,
    maxSendBytes: 64 * MIB,
    maxConnectionAgeMs: 3_600_000,
    ...options,
  });
}
