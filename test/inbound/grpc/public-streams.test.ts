import { EventEmitter } from "node:events";
import { Metadata, status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { PublicStreams } from "../../../src/inbound/grpc/public-streams.ts";

/** A stream as the library gives it: it ends with the error that it is given. */
class Call extends EventEmitter {
  readonly metadata = new Metadata();
  refusal: number | undefined;
  readonly #peer: string;

  constructor(peer: string) {
    super();
    this.#peer = peer;
    this.on("error", ({ code }: { readonly code: number }) => {
      this.refusal = code;
      this.emit("cancelled");
    });
  }

  getPeer(): string {
    return this.#peer;
  }
}

describe("streams without a key", () => {
  const open = (streams: PublicStreams, peer: string): Call => {
    const call = new Call(peer);
    streams.open(call);
    return call;
  };

  it("are 32 per connection", () => {
    const streams = new PublicStreams({ most: 1000, clientOf: () => undefined });
    const calls = Array.from({ length: 33 }, () => open(streams, "a"));
    expect(calls.map(({ refusal }) => refusal).indexOf(status.RESOURCE_EXHAUSTED)).toBe(32);
    calls[0]!.emit("cancelled");
    expect(open(streams, "a").refusal).toBeUndefined();
  });

  it("are ended for those of connections with fewer, oldest first", () => {
    const streams = new PublicStreams({ most: 6, clientOf: () => undefined });
    const many = [1, 2, 3, 4].map(() => open(streams, "many"));
    const pair = [1, 2].map(() => open(streams, "pair"));
    const late = [1, 2].map(() => open(streams, "late"));
    expect([...late, ...pair].map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined, undefined]);
    const ended = status.RESOURCE_EXHAUSTED;
    expect(many.map(({ refusal }) => refusal)).toEqual([ended, ended, undefined, undefined]);
    // All connections have two streams now, so that none is ended.
    expect(open(streams, "last").refusal).toBeUndefined();
    expect(open(streams, "last").refusal).toBe(ended);
  });

  it("leave room when they end", () => {
    const streams = new PublicStreams({ most: 2, clientOf: () => undefined });
    const first = open(streams, "a");
    open(streams, "b");
    expect(open(streams, "c").refusal).toBe(status.RESOURCE_EXHAUSTED);
    first.emit("cancelled");
    expect(open(streams, "c").refusal).toBeUndefined();
  });

  it("of one address on many connections are ended for those of another one", () => {
    const streams = new PublicStreams({ most: 4, clientOf: (address) => address });
    const many = [1, 2, 3, 4].map((port) => open(streams, `192.0.2.1:${port}`));
    const other = open(streams, "[2001:db8::1]:9");
    expect([...many, other].map(({ refusal }) => refusal)).toEqual([
      status.RESOURCE_EXHAUSTED,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    // On its own, as on a connection of its own.
    expect(open(streams, "192.0.2.1:5").refusal).toBe(status.RESOURCE_EXHAUSTED);
  });
});
