import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { once } from "node:events";
import { get } from "node:https";
import { connect } from "node:tls";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { ListModelsResponseSchema } from "../../gen/parley/v1/model_pb.js";
import { systemClock } from "../../src/core/clock.ts";
import { Failure } from "../../src/core/failure.ts";
import { Calls } from "../../src/inbound/calls.ts";
import { startGrpcServer } from "../../src/inbound/grpc/server.ts";
import { startHttpServer } from "../../src/inbound/http/server.ts";
import type { EdgeServices } from "../../src/inbound/services.ts";
import { TlsEntrance, type TlsEntranceOptions } from "../../src/net/tls-entrance.ts";
import { WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { anyConnections, roomyAdmission } from "../support/admission.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { FACTS, somebody } from "../support/core-ports.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

const KEY = "Bearer known";

const services = {
  models: { list: async () => [], page: async () => create(ListModelsResponseSchema) },
  authenticate: async ({ authorization }: { readonly authorization: string | undefined }) => {
    if (authorization !== KEY) throw new Failure("unauthenticated", "No.");
    return somebody;
  },
  requireRequestRate: () => undefined,
  limitsOf: () => FACTS,
  calls: new Calls(systemClock),
  admission: roomyAdmission(systemClock),
  connections: anyConnections(),
  clock: systemClock,
  refused: () => undefined,
} as Partial<Record<keyof EdgeServices, unknown>> as EdgeServices;

const LISTENERS = {
  async http(tls: TlsEntrance) {
    const parts = { corsOrigins: [], documents: undefined, stallMs: 10_000, tls };
    return startHttpServer(services, { host: "127.0.0.1", port: 0, ...parts });
  },
  async grpc(tls: TlsEntrance) {
    const limits = { maxReceiveBytes: 65_536, maxSendBytes: 65_536, maxConnectionAgeMs: 3_600_000 };
    return startGrpcServer(services, { host: "127.0.0.1", port: 0, ...limits, tls });
  },
};

const STATUS = new Map<number, unknown>([
  [status.OK, 200],
  [status.UNAUTHENTICATED, 401],
  [status.UNAVAILABLE, "closed"],
]);

/** Lists the models over a new connection; returns the status, or "closed" when the connection is closed. */
const CALLS = {
  async http(port: number, authorization: string): Promise<unknown> {
    const options = { port, host: "127.0.0.1", ca: authority.cert, agent: false, headers: { authorization } };
    const { promise, resolve } = Promise.withResolvers<unknown>();
    get({ ...options, path: "/v1/models" }, (response) => resolve(response.resume().statusCode)).on("error", () =>
      resolve("closed"),
    );
    return promise;
  },
  async grpc(port: number, authorization: string): Promise<unknown> {
    const client = new Client(`127.0.0.1:${port}`, credentials.createSsl(Buffer.from(authority.cert)), {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.ssl_target_name_override": "localhost",
    });
    onTestFinished(() => client.close());
    const asIs = (bytes: Buffer): Buffer => bytes;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const metadata = new Metadata();
    metadata.set("authorization", authorization);
    client.makeUnaryRequest("/parley.v1.ModelService/List", asIs, asIs, Buffer.alloc(0), metadata, (error) =>
      resolve(STATUS.get(error?.code ?? status.OK)),
    );
    return promise;
  },
};

async function start(kind: "http" | "grpc") {
  const { cert_file: certFile, key_file: keyFile } = folder.writePair(kind, authority.issue({ names: LOCAL_NAMES }));
  const caFile = folder.write("clients.pem", authority.cert);
  const files = await WatchedTlsFiles.open(
    { certFile, keyFile, caFile },
    { loaded: () => undefined, refused: () => undefined, expired: () => undefined },
  );
  const abused = vi.fn<TlsEntranceOptions["abused"]>();
  const tls = new TlsEntrance({
    files,
    protocols: kind === "http" ? ["h2", "http/1.1"] : ["h2"],
    clientCertificates: "optional",
    clientOf: (address) => address,
    refused: () => undefined,
    abused,
  });
  const server = await LISTENERS[kind](tls);
  onTestFinished(() => server.close());
  return { port: server.port, abused };
}

/** Connects with a chain of certificates that takes long to verify. */
async function attack(port: number): Promise<void> {
  const pair = foreign.issue();
  const options = { host: "127.0.0.1", servername: "localhost", ca: authority.cert, ALPNProtocols: ["h2", "http/1.1"] };
  const socket = connect({ port, ...options, key: pair.key, cert: pair.cert + foreign.cert.repeat(8) });
  socket.on("error", () => undefined).resume();
  await once(socket, "close");
}

describe.each(["http", "grpc"] as const)(
  "an address that callers of %s share with a client that abuses TLS",
  (kind) => {
    it("stays open once one of them was authenticated", async () => {
      const { port, abused } = await start(kind);
      expect(await CALLS[kind](port, KEY)).toBe(200);
      await attack(port);
      expect(await CALLS[kind](port, KEY)).toBe(200);
      expect(abused.mock.calls).toEqual([["COSTLY_CERTIFICATES", "127.0.0.1"]]);
    });

    it("is blocked when none of them has a key", async () => {
      const { port } = await start(kind);
      expect(await CALLS[kind](port, "Bearer unknown")).toBe(401);
      await attack(port);
      expect(await CALLS[kind](port, KEY)).toBe("closed");
    });
  },
);
