import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { Calls } from "../../../src/inbound/calls.ts";
import { readBody } from "../../../src/inbound/http/body.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** Reads a body that arrives in these pieces. */
function read(pieces: readonly Buffer[]): Promise<Buffer> {
  const stream = new Readable({ read: () => undefined });
  const request = Object.assign(stream, { headers: { "transfer-encoding": "chunked" } }) as unknown as IncomingMessage;
  const exchange = { request, response: {} as ServerResponse };
  const body = readBody(exchange, new Calls(new FakeClock()).open(undefined), { maxBytes: 1024 * 1024 });
  for (const piece of pieces) stream.push(piece);
  stream.push(null);
  return body;
}

it("a body of one piece is not copied", async () => {
  const piece = Buffer.from("{}");
  expect(await read([piece])).toBe(piece);
});

it("a body has all of its pieces in their order, however many and small", async () => {
  const sizes = [
    1,
    3,
    2000,
    ...Array.from({ length: 500 }, () => 1),
    70_000,
    ...Array.from({ length: 300 }, () => 900),
  ];
  const pieces = sizes.map((size, index) => Buffer.alloc(size, index));
  expect((await read(pieces)).equals(Buffer.concat(pieces))).toBe(true);
});
