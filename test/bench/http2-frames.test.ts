import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  clientPreface,
  encodeFrame,
  FLAG,
  type Frame,
  FRAME,
  FrameReader,
  grpcHeaders,
  grpcMessage,
} from "../../bench/load/http2-frames.ts";

describe("the load generator's HTTP/2", () => {
  it("reads the frames that were written, however they are cut", () => {
    const frame = fc.record({
      type: fc.nat({ max: 9 }),
      flags: fc.nat({ max: 255 }),
      stream: fc.nat({ max: 0x7fff_ffff }),
      payload: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 50 }), (frames, step) => {
        const bytes = Buffer.concat(frames.map(encodeFrame));
        const reader = new FrameReader();
        const read: Frame[] = [];
        for (let at = 0; at < bytes.length; at += step) {
          reader.push(bytes.subarray(at, at + step), (one) => read.push({ ...one, payload: Buffer.from(one.payload) }));
        }
        expect(read).toEqual(frames);
      }),
    );
  });

  it("is understood by a real server as a gRPC call", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, "127.0.0.1");
    try {
      const headers = grpcHeaders({ path: "/a.Service/Call", authority: `127.0.0.1:${port}`, key: "secret" });
      socket.write(clientPreface());
      socket.write(encodeFrame({ type: FRAME.headers, flags: FLAG.endHeaders, stream: 1, payload: headers }));
      const payload = grpcMessage(Buffer.from("hi"));
      socket.write(encodeFrame({ type: FRAME.data, flags: FLAG.endStream, stream: 1, payload }));

      const [stream, received] = (await once(server, "stream")) as [AsyncIterable<Buffer>, IncomingHttpHeaders];
      expect(received).toMatchObject({
        ":method": "POST",
        ":path": "/a.Service/Call",
        "content-type": "application/grpc",
        authorization: "Bearer secret",
        te: "trailers",
      });
      const pieces: Buffer[] = [];
      for await (const piece of stream) pieces.push(piece);
      expect(Buffer.concat(pieces)).toEqual(Buffer.from([0, 0, 0, 0, 2, ...Buffer.from("hi")]));
    } finally {
      socket.destroy();
      server.close();
    }
  });
});
