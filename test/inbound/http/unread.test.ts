import { once } from "node:events";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { createDocuments } from "../../../src/inbound/http/documents.ts";
import { startHttpServer } from "../../../src/inbound/http/server.ts";
import { anyConnections, roomyAdmission } from "../../support/admission.ts";

const never = (): never => expect.fail("nothing is completed here");

it("a connection that does not read a document is closed after a while, one that reads it is not", async () => {
  const server = await startHttpServer(
    {
      completions: { create: never, stream: never, count: never, explain: never },
      embedder: { create: never },
      models: { list: never, get: never },
      requireRequestRate: () => undefined,
      limitsOf: never,
      authenticate: never,
      calls: new Calls(systemClock),
      admission: roomyAdmission(systemClock),
      connections: anyConnections(),
      clock: systemClock,
      refused: () => undefined,
    },
    {
      host: "127.0.0.1",
      port: 0,
      corsOrigins: [],
      // More than the kernel buffers.
      documents: createDocuments(new Map([["large.gz", Buffer.alloc(64 * 1024 * 1024)]])),
      stallMs: 500,
    },
  );
  onTestFinished(() => server.close());
  const ask = () => {
    const socket = connect(server.port, "127.0.0.1");
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
}, 30_000);
