import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { Calls, type OpenCall } from "../../../src/inbound/calls.ts";
import { openCall } from "../../../src/inbound/http/exchange.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** More than the kernel takes on loopback before anybody reads. */
const LARGE = Buffer.alloc(32 * 1024 * 1024);
const STALL_MS = 400;

interface Answered {
  readonly response: ServerResponse;
  readonly open: OpenCall;
  /** Ends the answer, and then the handler. */
  readonly answer: (body: string | Buffer) => void;
}

describe("the call of an exchange", () => {
  let calls: Calls;
  let server: Server;
  let socket: Socket;
  let exchanges: Answered[];
  beforeEach(async () => {
    calls = new Calls(new FakeClock());
    exchanges = [];
    server = createServer((_, response) => {
      const { open, done } = openCall(calls, { response, stallMs: STALL_MS }, undefined);
      const answer = (body: string | Buffer): void => {
        response.end(body);
        done();
      };
      exchanges.push({ response, open, answer });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
    await once(socket, "connect");
  });
  afterEach(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  const ask = async (): Promise<Answered> => {
    const before = exchanges.length;
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await expect.poll(() => exchanges.length).toBe(before + 1);
    return exchanges.at(-1)!;
  };
  const over = (): Promise<void> => expect.poll(() => calls.active, { timeout: 3_000 }).toBe(0);
  /** Reads some of what has come, again and again for longer than a caller may read nothing. */
  const readSlowly = async (): Promise<void> => {
    for (let round = 0; round < 12; round++) {
      socket.read(512 * 1024);
      await delay(STALL_MS / 5);
    }
  };

  it("is over when its answer is out, and leaves its connection open for Node's idle time", async () => {
    const { answer, response } = await ask();
    answer("small");
    await over();
    expect(response.writableFinished).toBe(true);
    socket.resume();
    // Longer than an unread answer would be kept.
    await delay(1.5 * STALL_MS);
    expect(socket.destroyed).toBe(false);
  });

  it("is over when its caller reads nothing of the end of the answer", async () => {
    const { answer, response } = await ask();
    answer(LARGE);
    await delay(STALL_MS / 2);
    expect([calls.active, response.destroyed]).toEqual([1, false]);
    await over();
    expect([response.destroyed, response.writableFinished]).toEqual([true, false]);
  });

  it("goes on as long as its caller reads, however slowly", async () => {
    const { answer, response } = await ask();
    answer(LARGE);
    await readSlowly();
    expect(response.writableLength).toBeGreaterThan(0);
    expect(calls.active).toBe(1);
    socket.resume();
    await over();
    expect(response.writableFinished).toBe(true);
  });

  it("is not over while the answer before it is being read, nor while its own is not there yet", async () => {
    const first = await ask();
    const second = await ask();
    const third = await ask();
    second.answer("small");
    first.answer(LARGE);
    expect(second.response.socket).toBeNull();
    await readSlowly();
    expect(calls.active).toBe(3);
    socket.resume();
    await expect.poll(() => calls.active).toBe(1);
    // The model of the next answer may take its time.
    await delay(2 * STALL_MS);
    expect([first, second].map(({ response }) => response.writableFinished)).toEqual([true, true]);
    expect(third.response.destroyed).toBe(false);
    third.answer("small");
    await over();
    expect(third.response.writableFinished).toBe(true);
  });

  it("that is ended ends the answer, too, which has a moment when it is what says so", async () => {
    const unread = await ask();
    unread.answer(LARGE);
    calls.abortAll();
    expect(unread.response.destroyed).toBe(true);
    await over();

    socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
    const told = await ask();
    told.open.end(new Failure("overloaded", "Later."));
    told.answer(LARGE);
    await delay(STALL_MS / 4);
    expect(told.response.destroyed).toBe(false);
    await over();
    expect(told.response.destroyed).toBe(true);
  });
});
