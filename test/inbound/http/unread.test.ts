import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { createDocuments } from "../../../src/inbound/http/documents.ts";
import { startHttpServer } from "../../../src/inbound/http/server.ts";
import { TlsEntrance } from "../../../src/net/tls-entrance.ts";
import { WatchedTlsFiles } from "../../../src/net/tls-files.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../../support/certificates.ts";
import { idleServices } from "../../support/idle-services.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

/** TLS of the server, and how clients connect. */
async function openTls(): Promise<TlsEntrance> {
  const { cert_file: certFile, key_file: keyFile } = folder.writePair("a", authority.issue({ names: LOCAL_NAMES }));
  const report = { loaded: () => undefined, refused: () => undefined, expired: () => undefined };
  const files = await WatchedTlsFiles.open({ certFile, keyFile }, report);
  const told = { refused: () => undefined, abused: () => undefined };
  const clientOf = (address: string): string => address;
  return new TlsEntrance({ files, protocols: ["http/1.1"], clientCertificates: "required", clientOf, ...told });
}

const PLAIN = { tls: async () => undefined, dial: (port: number): Socket => connect(port, "127.0.0.1") };
const TLS = {
  tls: openTls,
  dial: (port: number): Socket => connectTls({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert }),
};

it("a connection that does not read a document is closed after a while, one that reads it is not, with and without TLS", async () => {
  await Promise.all([PLAIN, TLS].map(checkUnread));
}, 30_000);

async function checkUnread({ tls, dial }: typeof PLAIN | typeof TLS): Promise<void> {
  const server = await startHttpServer(idleServices(), {
    host: "127.0.0.1",
    port: 0,
    corsOrigins: [],
    // More than the kernel buffers.
    documents: createDocuments(new Map([["large.gz", Buffer.alloc(64 * 1024 * 1024)]])),
    stallMs: 500,
    tls: await tls(),
  });
  onTestFinished(() => server.close());
  const ask = () => {
    const socket = dial(server.port);
    onTestFinished(() => void socket.destroy());
    socket.write("GET /proto/large.gz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    return socket;
  };
  const silent = ask().pause();
  const reader = ask();
  let bytes = 0;
  reader.on("data", (piece: Buffer) => (bytes += piece.length));
  await expect.poll(() => bytes, { timeout: 10_000 }).toBeGreaterThan(64 * 1024 * 1024);
  // The rest is in the kernel: reading shows the end.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  silent.resume().on("error", () => undefined);
  await once(silent, "close");
  expect(silent.bytesRead).toBeLessThan(64 * 1024 * 1024);
  reader.write("GET /proto/large.gz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  await expect.poll(() => bytes, { timeout: 10_000 }).toBeGreaterThan(128 * 1024 * 1024);
}
