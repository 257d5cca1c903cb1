import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { startGrpcServer } from "../../../src/inbound/grpc/server.ts";
import { startHttpServer } from "../../../src/inbound/http/server.ts";
import type { EdgeServices } from "../../../src/inbound/services.ts";
import { TlsEntrance } from "../../../src/net/tls-entrance.ts";
import { WatchedTlsFiles } from "../../../src/net/tls-files.ts";
import { anyConnections } from "../../support/admission.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../../support/certificates.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { askHttp2 } from "../../support/http2-client.ts";
import { callGrpc } from "../../support/tls-client.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

async function openTls(): Promise<TlsEntrance> {
  const { cert_file: certFile, key_file: keyFile } = folder.writePair("own", authority.issue({ names: LOCAL_NAMES }));
  const ignore = (): undefined => undefined;
  return new TlsEntrance({
    files: await WatchedTlsFiles.open({ certFile, keyFile }, { loaded: ignore, refused: ignore, expired: ignore }),
    protocols: ["h2"],
    clientCertificates: "optional",
    refused: ignore,
    abused: ignore,
    clientOf: ignore,
  });
}

/** Finishes the handshake of a connection. */
async function shakeHands(socket: Socket): Promise<ClientHttp2Session> {
  const tls = connectTls({ socket, servername: "localhost", ca: authority.cert, ALPNProtocols: ["h2"] });
  await once(tls, "secureConnect");
  const session = connectHttp2("https://localhost", { createConnection: () => tls }).on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

const ADDRESS = { host: "127.0.0.1", port: 0 } as const;
const MIB = 1024 * 1024;
const LIMITS = { maxReceiveBytes: MIB, maxSendBytes: MIB, maxConnectionAgeMs: 3_600_000 };
type Client = (session: ClientHttp2Session) => Promise<object>;

it.each([
  [
    "HTTP",
    (services: EdgeServices, tls: TlsEntrance) => startHttpServer(services, { ...ADDRESS, corsOrigins: [], tls }),
    ((session) => askHttp2(session, { ":path": "/healthz" })) satisfies Client,
    { status: 200 },
  ],
  [
    "gRPC",
    (services: EdgeServices, tls: TlsEntrance) => startGrpcServer(services, { ...ADDRESS, ...LIMITS, tls }),
    ((session) => callGrpc(session, "/grpc.health.v1.Health/Check")) satisfies Client,
    { status: "0" },
  ],
])(
  "%s: a connection whose handshake ends after a drain began gets GOAWAY with its call",
  async (_, start, ask, answer) => {
    const connections = anyConnections();
    const accepted = vi.spyOn(connections, "add");
    const services: Partial<EdgeServices> = {
      clock: new FakeClock(),
      connections,
      refused: () => undefined,
    };
    const server = await start(services as EdgeServices, await openTls());
    onTestFinished(() => server.close());
    const socket = connectTcp(server.port, "127.0.0.1").on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
    await expect.poll(() => accepted.mock.calls.length).toBe(1);
    const drained = server.drain();
    const session = await shakeHands(socket);
    const left = once(session, "goaway");
    expect(await ask(session)).toMatchObject(answer);
    await left;
    await drained;
  },
);
