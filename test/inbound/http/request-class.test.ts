import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { requestClass } from "../../../src/inbound/http/request-class.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const HEAD = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
const END = "0\r\n\r\n";
/** The first of a body are not counted. */
const PASSED = 16;
/** Limit of a connection in a second. */
const TINY = 8 * 1024;

/** `count` chunks of `text` each. */
const chunks = (count: number, text = "x"): string => `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count);

/** What has come of a request's body. */
interface Arrived {
  readonly request: IncomingMessage;
  readonly pieces: Buffer[];
  readonly errors: unknown[];
  ended: boolean;
}

describe("a request", () => {
  let clock: FakeClock;
  let server: Server;
  let socket: Socket;
  let arrived: Arrived[];
  /** Begins to read a body. */
  let read: (request: IncomingMessage, one: Arrived) => void;
  beforeEach(async () => {
    clock = new FakeClock();
    arrived = [];
    read = (request, one) => {
      request.on("data", (piece: Buffer) => one.pieces.push(piece));
      request.on("error", (reason) => one.errors.push(reason));
      request.on("end", () => (one.ended = true));
    };
    const options = { IncomingMessage: requestClass({ clock, isFull: () => false }) };
    server = createServer(options, (request, response) => {
      const one = { request, pieces: [], errors: [], ended: false };
      arrived.push(one);
      read(request, one);
      request.on("end", () => response.end());
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
      .on("error", () => undefined)
      .resume();
    await once(socket, "connect");
  });
  afterEach(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  const ended = async (count: number): Promise<Arrived> => {
    await expect.poll(() => arrived[count - 1]?.ended, { timeout: 5_000 }).toBe(true);
    return arrived[count - 1]!;
  };
  const bytesOf = ({ pieces }: Arrived): number => pieces.reduce((sum, { length }) => sum + length, 0);

  it("has the pieces of its body as they come when they are few, and joined when they are many and small", async () => {
    socket.write(HEAD + chunks(3, "abc") + END);
    expect((await ended(1)).pieces.map(String)).toEqual(["abc", "abc", "abc"]);
    const digits = "0123456789".repeat(500);
    socket.write(HEAD + digits.replaceAll(/./g, (digit) => chunks(1, digit)) + chunks(1, "y".repeat(2000)) + END);
    const { pieces } = await ended(2);
    expect(Buffer.concat(pieces).toString()).toBe(digits + "y".repeat(2000));
    expect(pieces.length).toBeLessThan(PASSED + 10);
  });

  it("has a tiny piece that comes alone at once", async () => {
    socket.write(HEAD);
    for (let count = 1; count <= PASSED + 5; count++) {
      socket.write(chunks(1));
      await expect.poll(() => arrived[0] && bytesOf(arrived[0])).toBe(count);
    }
  });

  it("fails with what is wrong when its connection sends too many tiny pieces in a second", async () => {
    for (let count = 1; count <= 2; count++) {
      socket.write(HEAD + chunks(PASSED + TINY / 2) + END);
      await ended(count);
    }
    socket.write(HEAD + chunks(PASSED));
    await expect.poll(() => arrived[2] && bytesOf(arrived[2])).toBe(PASSED);
    socket.write(chunks(1, "z".repeat(64)));
    await expect.poll(() => arrived[2] && bytesOf(arrived[2])).toBe(PASSED + 64);
    socket.write(chunks(50));
    await expect.poll(() => arrived[2]!.errors.length).toBe(1);
    expect(arrived[2]!.errors[0]).toMatchObject({ code: "invalid_request", message: /chunks of less than 64 bytes/ });
    expect(bytesOf(arrived[2]!)).toBe(PASSED + 64);
  });

  it("may have as many again a second later", async () => {
    for (let count = 1; count <= 3; count++) {
      socket.write(HEAD + chunks(PASSED + TINY) + END);
      expect(bytesOf(await ended(count))).toBe(PASSED + TINY);
      clock.advance(1000);
    }
  });

  it("whose body is not read closes its connection when it has too many", async () => {
    read = (request) => void request.resume();
    socket.write(HEAD + chunks(PASSED + TINY));
    await expect.poll(() => arrived[0]?.request.socket.bytesRead).toBe(HEAD.length + chunks(PASSED + TINY).length);
    expect(socket.destroyed).toBe(false);
    socket.write(chunks(1));
    await expect.poll(() => socket.destroyed).toBe(true);
  });

  it("that waits to be read holds little of its body", async () => {
    let begin = (): void => undefined;
    read = (request, one) => {
      begin = () => {
        request.on("data", (piece: Buffer) => one.pieces.push(piece));
        request.on("end", () => (one.ended = true));
      };
    };
    // Larger pieces are joined, too, and not counted.
    const body = chunks(10_000, "a".repeat(100));
    socket.write(HEAD + body + END);
    await expect.poll(() => arrived[0]?.request.readableLength ?? 0).toBeGreaterThanOrEqual(64 * 1024);
    expect(arrived[0]!.request.socket.bytesRead).toBeLessThan(body.length);
    begin();
    const one = await ended(1);
    expect(bytesOf(one)).toBe(1_000_000);
    expect(one.pieces.length).toBeLessThan(200);
  });
});
