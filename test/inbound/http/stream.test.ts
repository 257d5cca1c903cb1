import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Calls } from "../../../src/inbound/calls.ts";
import { KEEP_ALIVE_MS, StreamWriter } from "../../../src/inbound/http/stream.ts";
import { FakeClock } from "../../support/fake-clock.ts";

let clock: FakeClock;
let server: Server;
let writer: StreamWriter;
let stream: ReadableStreamDefaultReader<string>;

beforeEach(async () => {
  clock = new FakeClock();
  const opened = Promise.withResolvers<StreamWriter>();
  server = createServer((_, response) => {
    const call = new Calls(clock).open(undefined);
    opened.resolve(
      new StreamWriter(response, {
        clock,
        call,
        keepAlive: () => ": keep-alive\n\n",
        head: () => ["content-type", "text/event-stream"],
      }),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const answered = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  writer = await opened.promise;
  clock.advance(KEEP_ALIVE_MS);
  stream = (await answered).body!.pipeThrough(new TextDecoderStream()).getReader();
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const next = async (): Promise<string | undefined> => (await stream.read()).value;

describe("a silent stream", () => {
  it("traps 6 and 16: has a comment every 15 seconds, before its first content too, and no data in it", async () => {
    expect(KEEP_ALIVE_MS).toBe(15_000);
    expect(await next()).toBe(": keep-alive\n\n");
    await writer.write("data: 1\n\n");
    expect(await next()).toBe("data: 1\n\n");
    clock.advance(KEEP_ALIVE_MS - 1);
    await writer.write("data: 2\n\n");
    expect(await next()).toBe("data: 2\n\n");
    clock.advance(KEEP_ALIVE_MS);
    expect(await next()).toBe(": keep-alive\n\n");
  });

  it("has no more comments when it has ended", async () => {
    expect(await next()).toBe(": keep-alive\n\n");
    writer.end("data: [DONE]\n\n");
    expect(clock.pending).toBe(0);
    expect(await next()).toBe("data: [DONE]\n\n");
    expect(await next()).toBeUndefined();
  });
});
