import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createSecureContext, createServer, type TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectUpstream, UNLIMITED } from "../../../src/providers/transport/http.ts";
import { localhost } from "./localhost-certificate.ts";

/** Frames of HTTP/2: the server's settings, and of stream 1 the status 200, the head of a DATA frame of FRAME_BYTES, and the end. */
const SETTINGS = Buffer.from("000000040000000000", "hex");
const STATUS_200 = Buffer.from("00000101040000000188", "hex");
const DATA_HEAD = Buffer.from("002000000000000001", "hex");
const END = Buffer.from("000000000100000001", "hex");
const FRAME_BYTES = 8_192;

/** A provider that sends a body of `frames` times FRAME_BYTES in TLS records of this size, to whatever it is asked. Returns its port. */
async function startProvider(recordBytes: number, frames: number): Promise<number> {
  const answer = async (socket: TLSSocket): Promise<void> => {
    const write = (bytes: Buffer): Promise<void> => new Promise((resolve) => socket.write(bytes, () => resolve()));
    const isHttp2 = socket.alpnProtocol === "h2";
    await once(socket, "data");
    if (isHttp2) {
      await write(SETTINGS);
      await once(socket, "data");
      await write(STATUS_200);
    } else
      await write(
        Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${frames * FRAME_BYTES}\r\n\r\n`),
      );
    for (let frame = 0; frame < frames; frame++) {
      if (isHttp2) await write(DATA_HEAD);
      for (let sent = 0; sent < FRAME_BYTES && !socket.destroyed; sent += recordBytes)
        await write(Buffer.alloc(recordBytes, " "));
    }
    if (isHttp2) await write(END);
  };
  const server = createServer({ ...localhost, ALPNProtocols: ["h2", "http/1.1"] }, (socket) => {
    socket.on("error", () => undefined);
    void answer(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** The length of a body that a provider sends. */
async function bodyOf(http2: boolean, ...sent: Parameters<typeof startProvider>): Promise<number> {
  const port = await startProvider(...sent);
  const upstream = connectUpstream({
    baseUrl: `https://localhost:${port}`,
    allowPrivate: true,
    connectMs: 5_000,
    connections: { ...UNLIMITED, http2 },
    egress: { secureContext: createSecureContext({ ca: localhost.cert }) },
  });
  onTestFinished(() => upstream.close());
  const { signal } = new AbortController();
  const request = { path: "/x", headers: {}, body: http2 ? "" : "{}", signal, idleMs: 5_000 };
  const response = await upstream.post(request, "text/plain");
  const pieces = await response.body();
  return pieces.reduce((bytes, { length }) => bytes + length, 0);
}

describe.each([
  ["HTTP/1.1", false],
  ["HTTP/2", true],
])("a connection to a provider over TLS with %s", (_, http2) => {
  it("is closed when its server sends records that carry hardly any data", async () => {
    await expect(bodyOf(http2, 1, 100)).rejects.toMatchObject({
      code: "upstream_protocol",
      providerError: "The TLS records of the connection are more than its data accounts for.",
    });
  });

  it("stays open with records as small as those of a stream's events", async () => {
    expect(await bodyOf(http2, 64, 100)).toBe(100 * FRAME_BYTES);
  });
});
