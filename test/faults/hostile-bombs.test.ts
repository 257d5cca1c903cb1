import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { RawConnection, rawRequest } from "../product/support/raw-http.ts";
import { answerText } from "../product/support/upstream.ts";
import { REQUEST } from "./hostile/floods.ts";
import { call } from "./hostile/grpc-session.ts";
import {
  dataFrame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  INITIAL_WINDOW_SIZE,
  RawHttp2,
  TYPE,
} from "./hostile/raw-http2.ts";
import { BODY, CHAT, CREATE, MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale } from "../support/scale.ts";

const INFLATED = scale(64, 1024) * MIB;
const AT_ONCE = scale(4, 16);

const GRPC = { OK: "0", INVALID_ARGUMENT: "3", RESOURCE_EXHAUSTED: "8", UNIMPLEMENTED: "12", UNAUTHENTICATED: "16" };
const FINISHED = { index: 0, message: { role: "assistant", content: "" }, finish_reason: "stop" };

let target: Target;
/** The provider's response, selected by a word in the prompt. */
const bombs = new Map<string, Buffer>();
const seenEncodings = new Set<string | undefined>();

beforeAll(async () => {
  target = await startTarget((exchange) => {
    const { request, response, body } = exchange;
    seenEncodings.add(request.headers["accept-encoding"]?.toString());
    const encoding = [...bombs.keys()].find((word) => body.includes(`bomb of ${word}`));
    if (encoding === undefined) return answerText(exchange, "hi");
    const isStream = body.includes('"stream":true');
    const type = isStream ? "text/event-stream" : "application/json";
    response.writeHead(200, { "content-type": type, "content-encoding": encoding });
    response.end(bombs.get(encoding));
  });
  // Valid at its beginning; endless when inflated.
  const answer = Buffer.concat([
    Buffer.from(`{"choices":[${JSON.stringify(FINISHED)}],"x":"`),
    Buffer.alloc(INFLATED, " "),
  ]);
  bombs.set("gzip", gzipSync(answer, { level: 1 }));
  bombs.set("br", brotliCompressSync(answer, { params: { 0: 0, 1: 1 } }));
});

afterAll(async () => {
  await target.stop();
});

/** Peak memory of the product during `work`, above the level before. */
async function mostMib(work: Promise<unknown>): Promise<number> {
  const before = target.product.rssBytes();
  let most = before;
  const look = setInterval(() => (most = Math.max(most, target.product.rssBytes())), 5);
  await work.finally(() => clearInterval(look));
  return Math.round((most - before) / MIB);
}

const authorized = (): { authorization: string } => ({ authorization: `Bearer ${target.product.firstKey}` });
const grpc = (path = CREATE): Record<string, string> => ({ ":path": path, "content-type": "application/grpc" });

describe("decompression bombs", () => {
  it.each(["gzip", "deflate"])(
    "a gRPC message in %s is not inflated, with or without a valid key",
    async (encoding) => {
      // Smaller than the messages for which the key is checked first.
      const bomb = encoding === "gzip" ? gzipSync(Buffer.alloc(15 * MIB)) : deflateSync(Buffer.alloc(15 * MIB));
      const body = grpcMessage(bomb, { compressed: true });
      const headers = { ...grpc(), "grpc-encoding": encoding };
      const callers = scale(32, 128);
      const ends: unknown[] = [];
      const memory = await mostMib(
        Promise.all(
          Array.from({ length: callers }, async () => ends.push((await call(target, headers, { body })).grpcStatus)),
        ),
      );
      expect(new Set(ends)).toEqual(new Set([GRPC.UNIMPLEMENTED]));
      figure({
        name: `${callers} messages without a key in ${encoding} over gRPC: memory`,
        value: memory,
        unit: "MiB",
        atMost: 64,
      });
    },
  );

  it.each(["gzip", "br", "deflate", "zstd", "gzip, gzip"])("an HTTP body in %s is not read", async (encoding) => {
    const bytes = rawRequest(CHAT, target.chatHeaders(`content-encoding: ${encoding}`), bombs.get("gzip"));
    const memory = await mostMib(
      new RawConnection(target.product.httpPort)
        .write(bytes)
        .response()
        .then(({ status }) => expect(status).toBe(400)),
    );
    figure({ name: `a body over HTTP in ${encoding}: memory`, value: memory, unit: "MiB", atMost: 48 });
  });

  it.each([
    ["larger than a request may be", 33 * MIB, 429],
    ["as large as a request may be", 31 * MIB, 400],
  ])(
    "requests of one key over Connect that are %s use at most the memory of their bodies",
    async (_, bytes, status) => {
      const body = gzipSync(Buffer.alloc(bytes, " "));
      const ask = async (): Promise<number> => {
        const response = await fetch(`${target.product.url}/parley.v1.CompletionService/Create`, {
          method: "POST",
          headers: { ...authorized(), "content-type": "application/json", "content-encoding": "gzip" },
          body,
        });
        await response.arrayBuffer();
        return response.status;
      };
      const statuses: number[] = [];
      const requests = Array.from({ length: scale(32, 128) }, async () => void statuses.push(await ask()));
      const memory = await mostMib(Promise.all(requests));
      expect(new Set(statuses).difference(new Set([status, 429]))).toEqual(new Set());
      figure({ name: `gzip of ${bytes / MIB} MiB over Connect: memory`, value: memory, unit: "MiB", atMost: 256 });
    },
  );

  it.each(["gzip", "br"])("a provider's response in %s is neither requested nor inflated", async (encoding) => {
    const ask = async (stream: boolean): Promise<void> => {
      const content = `bomb of ${encoding}`;
      const body = JSON.stringify({ model: "local/test", stream, messages: [{ role: "user", content }] });
      const response = await fetch(`${target.product.url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...authorized(), "content-type": "application/json" },
        body,
      });
      const text = await response.text();
      expect({ status: response.status, text }).toMatchObject({ status: 500 });
      expect(text).toContain("upstream_invalid_response");
    };
    const memory = await mostMib(Promise.all(Array.from({ length: AT_ONCE }, (_, index) => ask(index % 2 === 0))));
    figure({ name: `a provider's bombs in ${encoding}: memory`, value: memory, unit: "MiB", atMost: 64 });
    expect([...seenEncodings]).toEqual(["identity"]);
  });
});

/** As many empty messages as fit into the bytes that are read without a key. */
const EMPTY_MESSAGES = Buffer.alloc(16_380);
const CHECK = "/grpc.health.v1.Health/Check";
const REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

describe("empty messages without a key", () => {
  it.each([
    ["reflection streams whose answers are not read", REFLECT, 8, 32, EMPTY_MESSAGES],
    ["reflection streams with as many questions as one may have", REFLECT, 8, 32, EMPTY_MESSAGES.subarray(0, 256 * 5)],
    ["calls that take one message", CREATE, 100, 4, EMPTY_MESSAGES],
  ])("hold little memory in %s", async (what, path, connections, streams, body) => {
    const block = headerBlock(grpcHeaders(path));
    const frames = Array.from({ length: streams }, (_, index) =>
      Buffer.concat([
        headersFrame(2 * index + 1, block, "body follows"),
        dataFrame(2 * index + 1, body, "more follows"),
      ]),
    );
    const attackers = Array.from({ length: connections }, () =>
      new RawHttp2(target.product.grpcPort).hello([[INITIAL_WINDOW_SIZE, 0]]),
    );
    const memory = await mostMib(
      (async () => {
        // A connection may send 64 KB until the server has read them.
        for (const frame of frames) {
          for (const attacker of attackers) attacker.write(frame);
          expect((await call(target, grpc(CHECK), { body: grpcMessage(Buffer.alloc(0)) })).grpcStatus).toBe(GRPC.OK);
        }
      })(),
    );
    for (const attacker of attackers) attacker.close();
    figure({ name: `${what}, with empty messages: memory`, value: memory, unit: "MiB", atMost: 96 });
  });
});

/** Below the allowance of a connection for small pieces, after which it is closed: 1,000 at once and 0.5 a millisecond. */
const SMALL_PIECES = { atOnce: 500, perMs: 0.45 } as const;

/**
 * Sends a byte of a message with every read of the socket, whose other bytes are of refused calls, as fast as SMALL_PIECES has it.
 * Returns whether all were sent.
 */
async function sendBytesWithOthers(pieces: number): Promise<boolean> {
  const block = headerBlock(grpcHeaders(CREATE));
  const attacker = new RawHttp2(target.product.grpcPort).hello();
  const begun = dataFrame(1, grpcMessage(Buffer.alloc(0), { length: 16_000 }), "more follows");
  attacker.write(Buffer.concat([headersFrame(1, block, "body follows"), begun]));
  const oneByte = dataFrame(1, Buffer.alloc(1), "more follows");
  const more = Buffer.alloc(16_000);
  /** Bytes that the connection's window has room for. */
  const room = (sent: number): number =>
    attacker.arrived
      .filter(({ type, stream }) => type === TYPE.windowUpdate && stream === 0)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 65_535 - sent * 3 * more.length);
  let left: number = SMALL_PIECES.atOnce;
  let atMs = performance.now();
  const isAllowed = (): boolean => {
    const nowMs = performance.now();
    // No more after a pause of this process: the server's allowance has a limit, too.
    left = Math.min(left + (nowMs - atMs) * SMALL_PIECES.perMs, SMALL_PIECES.atOnce);
    atMs = nowMs;
    return left >= 1;
  };
  for (let sent = 0; sent < pieces && !attacker.closed; sent++) {
    // A refused call is closed after a second, and there may be a hundred.
    const stream = 2 * Math.floor(sent / 20) + 3;
    const begin = sent % 20 === 0 ? [headersFrame(stream, block, "body follows")] : [];
    const others = Array<Buffer>(3).fill(dataFrame(stream, more, "more follows"));
    const mayGo = (): boolean => attacker.closed || (isAllowed() && room(sent) > 3 * more.length + 1000);
    await vi.waitUntil(mayGo, { timeout: 20_000, interval: 1 });
    left -= 1;
    attacker.write(Buffer.concat([oneByte, ...begin, ...others]));
  }
  const { closed } = attacker;
  attacker.close();
  return !closed;
}

it("bytes of a message without a key keep no others that arrive with them", { timeout: 60_000 }, async () => {
  // Each kept with its read would be 150 MiB; 50 come and go with the garbage collector.
  const memory = await mostMib(sendBytesWithOthers(2_400).then((sent) => expect(sent).toBe(true)));
  figure({ name: "2,400 bytes of a message between others: memory", value: memory, unit: "MiB", atMost: 96 });
});

describe("a message of gRPC", () => {
  it("with a declared length of 1 GiB is refused after its first five bytes", async () => {
    const body = grpcMessage(Buffer.alloc(0), { length: 1024 * MIB });
    const bytesBefore = target.product.rssBytes();
    const end = await call(target, { ...grpc(), ...authorized() }, { body, ends: false });
    expect(end.grpcStatus).toBe(GRPC.RESOURCE_EXHAUSTED);
    const grownMib = Math.round((target.product.rssBytes() - bytesBefore) / MIB);
    figure({ name: "a message with a declared length of 1 GiB: memory", value: grownMib, unit: "MiB", atMost: 16 });
    figure({
      name: "a message with a declared length of 1 GiB: refused",
      value: Math.round(end.elapsedMs),
      unit: "ms",
      atMost: 1000,
    });
  });

  it("without a valid key is not buffered", { timeout: 60_000 }, async () => {
    const body = grpcMessage(Buffer.alloc(31 * MIB));
    const headers = { ...grpc(), authorization: "Bearer nobody" };
    const ends: unknown[] = [];
    const callers = scale(16, 64);
    const memory = await mostMib(
      Promise.all(
        Array.from({ length: callers }, async () => ends.push((await call(target, headers, { body })).grpcStatus)),
      ),
    );
    expect(new Set(ends)).toEqual(new Set([GRPC.UNAUTHENTICATED]));
    figure({
      name: `${callers} callers without a key who send 31 MiB each: memory`,
      value: memory,
      unit: "MiB",
      // Buffering would hold 31 MiB of each; what is read and dropped is garbage until V8 collects it.
      atMost: 160,
    });
  });
});

describe("an invalid call over gRPC", () => {
  it.each([
    ["an unknown service", { ":path": "/no.Service/Get" }, { grpcStatus: GRPC.UNIMPLEMENTED }],
    ["an unknown method", { ":path": "/parley.v1.CompletionService/Delete" }, { grpcStatus: GRPC.UNIMPLEMENTED }],
    ["no path of a method", { ":path": "/" }, { grpcStatus: GRPC.UNIMPLEMENTED }],
    ["JSON", { "content-type": "application/json" }, { httpStatus: 415 }],
    ["no content type", { "content-type": "" }, { httpStatus: 415 }],
    ["a compression that is not used", { "grpc-encoding": "lzma" }, { grpcStatus: GRPC.OK }],
    ["PUT", { ":method": "PUT" }, {}],
    ["metadata that is no base64", { "x-facts-bin": "%%%%" }, { grpcStatus: GRPC.OK }],
    ["reserved metadata", { "grpc-status": "0", "grpc-message": "x" }, { grpcStatus: GRPC.OK }],
  ])("is refused, or the invalid part ignored: %s", async (_name, headers, expected) => {
    const body = grpcMessage(REQUEST);
    const end = await call(target, { ...grpc(), ...authorized(), ...headers }, { body });
    expect(end).toMatchObject(expected);
  });

  it("is HTTP/1.1, and the connection is closed", async () => {
    const connection = new RawConnection(target.product.grpcPort).write(rawRequest(CHAT, target.chatHeaders(), BODY));
    await expect.poll(() => connection.closed, { timeout: 3000, interval: 10 }).toBe(true);
  });

  it.each([
    ["a thousand keys", Array.from({ length: 1000 }, (_, index) => [`x-${index}`, "1"] as const)],
    ["two credentials", [["authorization", "Bearer other"] as const]],
    ["bytes beyond ASCII", [["x-text", "\xff\xfe"] as const]],
    ["a NUL", [["x-text", "a\0b"] as const]],
    ["a line end", [["x-text", "a\r\nb: c"] as const]],
    ["capitals", [["X-Text", "a"] as const]],
    ["a header of a connection", [["connection", "close"] as const]],
    ["a pseudo-header at the end", [[":path", "/x"] as const]],
    ["a header without a name", [["", "x"] as const]],
  ])("causes no fault: %s", async (_, more) => {
    const heardBefore = target.heard();
    const headers = [...grpcHeaders(CREATE, { authorization: `Bearer ${target.product.firstKey}` }), ...more];
    const connection = new RawHttp2(target.product.grpcPort).hello();
    connection.write(headersFrame(1, headerBlock(headers), "ends"));
    const isOver = (): boolean =>
      connection.closed ||
      connection.arrived.some(({ stream, type, flags }) => stream === 1 && (type === 3 || (flags & 1) === 1));
    await expect.poll(isOver, { timeout: 3000, interval: 10 }).toBe(true);
    connection.close();
    expect(target.heard()).toBe(heardBefore);
  });

  it("causes no fault", () => {
    expect(target.product.output.stderr).not.toMatch(/"level":"fatal"|unexpected fault|Warning/);
  });
});
