import { once } from "node:events";
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

const MAX_CALLS = 20;
const MAX_CONNECTIONS = 60;

/** Calls that are no completions take no slot: what they hold has to be small, and must not keep completions out. */
describe("calls that are not completions", () => {
  let product: Product;
  const opened: (Socket | ClientHttp2Session)[] = [];
  beforeAll(async () => {
    product = await startProduct({ config: { overload: { max_calls: MAX_CALLS, max_connections: MAX_CONNECTIONS } } });
  });
  afterAll(async () => {
    for (const one of opened) one.destroy();
    await product.stop();
  });

  const authorization = (): string => `authorization: Bearer ${product.firstKey}`;
  const post = (path: string, body: string): Promise<Response> =>
    fetch(product.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
      body,
    });
  const complete = async (): Promise<number> => {
    const messages = [{ role: "user", content: "hi" }];
    return (await post("/v1/chat/completions", JSON.stringify({ model: "alpha-haiku-4.5", messages }))).status;
  };
  /** A request whose body does not come. */
  const beginUpload = async (path: string, ...headers: string[]): Promise<void> => {
    const socket = connect(product.httpPort, "127.0.0.1").on("error", () => undefined);
    opened.push(socket);
    await once(socket, "connect");
    const head = [`POST ${path} HTTP/1.1`, `host: 127.0.0.1:${product.httpPort}`, "content-length: 1000", ...headers];
    socket.write(`${[...head, "content-type: application/json"].join("\r\n")}\r\n\r\n{`);
  };

  it.each(["/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"])(
    "have at most 32 streams on a connection: %s",
    async (path) => {
      const session = connectHttp2(`http://127.0.0.1:${product.grpcPort}`).on("error", () => undefined);
      opened.push(session);
      let refused = 0;
      const open = (): ClientHttp2Stream => {
        const stream = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": "application/grpc",
          te: "trailers",
        });
        const count = (headers: IncomingHttpHeaders): void => void (refused += headers["grpc-status"] === "8" ? 1 : 0);
        stream
          .on("response", count)
          .on("trailers", count)
          .on("error", () => undefined)
          .resume();
        // An empty message: all services, or nothing that reflection knows.
        stream.write(Buffer.alloc(5));
        if (path.endsWith("Watch")) stream.end();
        return stream;
      };
      const streams = Array.from({ length: 40 }, open);
      await expect.poll(() => refused).toBe(8);
      for (const stream of streams) stream.close();
      await expect.poll(() => streams.every((stream) => stream.closed)).toBe(true);
      // Those that ended make room.
      for (let count = 0; count < 32; count++) open();
      await expect.poll(async () => (await complete()) === 200 && refused).toBe(8);
      session.destroy();
    },
  );

  it("of reflection have at most 256 streams in all", async () => {
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    let refused = 0;
    const sessions = Array.from({ length: 9 }, () => {
      const session = connectHttp2(`http://127.0.0.1:${product.grpcPort}`).on("error", () => undefined);
      opened.push(session);
      for (let count = 0; count < 32; count++) {
        const note = (received: IncomingHttpHeaders): void => void (refused += received["grpc-status"] === "8" ? 1 : 0);
        const stream = session.request(headers).on("response", note).on("trailers", note);
        stream.on("error", () => undefined).resume();
        stream.write(Buffer.alloc(5));
      }
      return session;
    });
    await expect.poll(() => refused).toBe(32);
    expect(await complete()).toBe(200);
    for (const session of sessions) session.destroy();
  });

  it.each([
    [256, "0", 256 * 5_000],
    [300, "8", 0],
  ])("of reflection are answered up to 256 times on a stream: %i questions", async (questions, ended, leastBytes) => {
    const session = connectHttp2(`http://127.0.0.1:${product.grpcPort}`).on("error", () => undefined);
    opened.push(session);
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const file = Buffer.from("parley/v1/completion.proto");
    // file_by_filename, with its tag and length, in a message with its prefix.
    const question = Buffer.concat([Buffer.from([0, 0, 0, 0, file.length + 2, 0x1a, file.length]), file]);
    let bytes = 0;
    let status: string | undefined;
    const note = (headers: IncomingHttpHeaders): void => void (status ??= headers["grpc-status"]?.toString());
    stream
      .on("response", note)
      .on("trailers", note)
      .on("error", () => undefined);
    stream.end(Buffer.concat(Array.from({ length: questions }, () => question)));
    stream.on("data", (piece: Buffer) => (bytes += piece.length));
    await once(stream, "close");
    expect(status).toBe(ended);
    expect(bytes).toBeGreaterThanOrEqual(leastBytes);
    session.destroy();
  });

  it.each(["KeyService/GetCurrent", "ModelService/List", "ModelService/Get"])(
    "have no large bodies: %s",
    async (method) => {
      const response = await post(`/parley.v1.${method}`, `{"id":"${"a".repeat(20_000)}"}`);
      expect(await response.json()).toMatchObject({
        code: "resource_exhausted",
        message: expect.stringContaining("16 KiB"),
      });
    },
  );

  it.each(["KeyService/GetCurrent", "ModelService/List", "ModelService/Get"])(
    "have no large messages over gRPC, which are refused before they arrive: %s",
    async (method) => {
      const session = connectHttp2(`http://127.0.0.1:${product.grpcPort}`).on("error", () => undefined);
      opened.push(session);
      const stream = session.request({
        ":method": "POST",
        ":path": `/parley.v1.${method}`,
        "content-type": "application/grpc",
        te: "trailers",
        authorization: `Bearer ${product.firstKey}`,
      });
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(20_000, 1);
      stream.on("error", () => undefined).write(prefix);
      const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
      expect([headers["grpc-status"], headers["grpc-message"]]).toEqual(["8", expect.stringContaining("16384")]);
      session.destroy();
    },
  );

  it.each([
    ["with a key", "/parley.v1.KeyService/GetCurrent", true],
    ["of callers without a session at the dashboard", "/parley.console.v1.SessionService/GetSession", false],
  ])("and are not complete take nothing from completions: %s", async (_, path, hasKey) => {
    for (let count = 0; count < MAX_CALLS + 5; count++) await beginUpload(path, ...(hasKey ? [authorization()] : []));
    expect(await complete()).toBe(200);
    for (const one of opened.splice(0)) one.destroy();
  });

  it("and idle gRPC connections are closed at the limit of connections", async () => {
    const sessions = Array.from({ length: MAX_CONNECTIONS }, () => {
      const session = connectHttp2(`http://127.0.0.1:${product.grpcPort}`).on("error", () => undefined);
      opened.push(session);
      return session;
    });
    await Promise.all(
      sessions.map((session) => Promise.race([once(session, "remoteSettings"), once(session, "close")])),
    );
    await expect.poll(() => complete().catch(() => 0), { timeout: 10_000, interval: 200 }).toBe(200);
  });
});
