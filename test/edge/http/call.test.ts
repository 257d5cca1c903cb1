import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Calls } from "../../../src/edge/calls.ts";
import { openCall } from "../../../src/edge/http/call.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** More than the kernel takes on loopback before anybody reads. */
const LARGE = Buffer.alloc(32 * 1024 * 1024);

describe("the call of an exchange", () => {
  let clock: FakeClock;
  let calls: Calls;
  let server: Server;
  let socket: Socket;
  let response: ServerResponse;
  let answers: number;
  beforeEach(async () => {
    clock = new FakeClock();
    calls = new Calls(clock);
    answers = 0;
    server = createServer((_, made) => {
      response = made;
      const { done } = openCall(calls, { response }, { clock, deadlineMs: undefined });
      // The first is what a test looks at, and its caller may be slow.
      response.end(answers++ === 0 ? LARGE : "small");
      done();
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
  const ask = async (): Promise<void> => {
    const before = calls.opened;
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await expect.poll(() => calls.opened).toBe(before + 1);
  };
  /** What is left to be written, when it is the same for a moment. */
  const stalled = async (): Promise<number> => {
    let last = -1;
    await expect
      .poll(() => {
        const isSame = last === response.writableLength;
        last = response.writableLength;
        return isSame;
      })
      .toBe(true);
    return last;
  };

  it("is over, and keeps no timer, when its answer is out", async () => {
    answers = 1;
    await ask();
    await expect.poll(() => calls.active).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it("is over when its caller reads nothing of the end of the answer", async () => {
    await ask();
    expect(await stalled()).toBeGreaterThan(1_000_000);
    expect(calls.active).toBe(1);
    clock.advance(60_000_000);
    await expect.poll(() => calls.active).toBe(0);
    expect(clock.pending).toBe(0);
    expect(response.destroyed).toBe(true);
  });

  it("goes on as long as its caller reads", async () => {
    await ask();
    await stalled();
    socket.resume();
    await expect.poll(() => calls.active).toBe(0);
    expect(response.writableFinished).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it("is not over while the answer before it on its connection is being read", async () => {
    await ask();
    const first = response;
    await ask();
    expect(response.socket).toBeNull();
    expect(calls.active).toBe(2);
    // It has fewer bytes, so that its time is over earlier.
    clock.advance(40_000);
    expect([first.destroyed, response.destroyed]).toEqual([false, false]);
    socket.resume();
    await expect.poll(() => calls.active).toBe(0);
    expect(response.writableFinished).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
