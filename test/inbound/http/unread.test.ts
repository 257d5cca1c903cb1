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
});

const REQUEST = "GET /proto/large.gz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
const LARGE_BYTES = 64 * 1024 * 1024;

/** Starts a server with a document that is larger than the buffers of the kernel. Returns how a client asks for it, `times` at once. */
async function serveLarge({ tls, dial }: typeof PLAIN | typeof TLS): Promise<(times?: number) => Socket> {
  const server = await startHttpServer(idleServices(), {
    host: "127.0.0.1",
    port: 0,
    corsOrigins: [],
    documents: createDocuments(new Map([["large.gz", Buffer.alloc(LARGE_BYTES)]])),
    stallMs: 500,
    tls: await tls(),
  });
  onTestFinished(() => server.close());
  return (times = 1) => {
    // A write to a closed connection resets it.
    const socket = dial(server.port).on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
    socket.write(REQUEST.repeat(times));
    return socket;
  };
}

async function checkUnread(entrance: typeof PLAIN | typeof TLS): Promise<void> {
  const ask = await serveLarge(entrance);
  const silent = ask().pause();
  const reader = ask();
  let bytes = 0;
  reader.on("data", (piece: Buffer) => (bytes += piece.length));
  await expect.poll(() => bytes, { timeout: 30_000 }).toBeGreaterThan(LARGE_BYTES);
  await closedWithoutReading(silent);
  expect(silent.bytesRead).toBeLessThan(LARGE_BYTES);
  reader.write(REQUEST);
  await expect.poll(() => bytes, { timeout: 30_000 }).toBeGreaterThan(2 * LARGE_BYTES);
}

/** The rest of what was sent is in the kernel, so only reading shows the end. */
async function closedWithoutReading(unread: Socket): Promise<void> {
  const closed = new Promise((resolve) => unread.once("close", resolve));
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  unread.resume();
  await closed;
}

it.each([
  ["PLAIN", PLAIN],
  ["TLS", TLS],
])("is closed also when it sends blank lines meanwhile (%s)", async (_, entrance) => {
  const ask = await serveLarge(entrance);
  const unread = ask().pause();
  const sending = setInterval(() => unread.write("\r\n"), 100);
  onTestFinished(() => clearInterval(sending));
  await closedWithoutReading(unread);
  expect(unread.bytesRead).toBeLessThan(LARGE_BYTES);
});

it("is closed when it does not read the second of two documents that it asked for at once", async () => {
  const ask = await serveLarge(PLAIN);
  const unread = ask(2);
  let bytes = 0;
  unread.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > LARGE_BYTES) unread.pause();
  });
  await expect.poll(() => bytes, { timeout: 30_000 }).toBeGreaterThan(LARGE_BYTES);
  unread.removeAllListeners("data");
  await closedWithoutReading(unread);
  expect(unread.bytesRead).toBeLessThan(2 * LARGE_BYTES);
});
