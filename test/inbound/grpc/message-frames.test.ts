import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageFrames } from "../../../src/inbound/grpc/message-frames.ts";
import { grpcMessage } from "../../faults/hostile/raw-http2.ts";

const MANY = { messages: 100, bytes: 1000 };

/** Positions at which messages end in all bytes of these pieces. */
function endsOf(frames: MessageFrames, pieces: readonly Buffer[]): number[] {
  let before = 0;
  return pieces.flatMap((piece) => {
    const ends = frames.endsIn(piece).map((end) => before + end);
    before += piece.length;
    return ends;
  });
}

describe("the messages of a request", () => {
  it("are found in pieces of any size", () => {
    const sizes = fc.array(fc.nat({ max: 300 }), { maxLength: 20 });
    const cuts = fc.array(fc.nat(), { maxLength: 50 });
    fc.assert(
      fc.property(sizes, cuts, (lengths, at) => {
        const bytes = Buffer.concat(lengths.map((length) => grpcMessage(Buffer.alloc(length, 0xff))));
        const edges = [0, ...at.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
        const pieces = edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
        let end = 0;
        const frames = new MessageFrames(MANY);
        expect(endsOf(frames, pieces)).toEqual(lengths.map((length) => (end += 5 + length)));
        expect(frames.declaredBytes ?? 0).toBe(bytes.length);
      }),
    );
  });

  it("have a length before they have arrived", () => {
    const frames = new MessageFrames(MANY);
    const message = grpcMessage(Buffer.alloc(0), { length: 700 });
    frames.endsIn(message.subarray(0, 4));
    expect(frames.declaredBytes).toBeUndefined();
    frames.endsIn(message.subarray(4));
    expect(frames.declaredBytes).toBe(705);
  });

  it("are refused when they are too large, or too many", () => {
    const large = grpcMessage(Buffer.alloc(0), { length: 1001 });
    const tooLarge = expect.objectContaining({ code: "request_too_large", message: expect.stringContaining("1001") });
    expect(() => new MessageFrames(MANY).endsIn(large)).toThrow(tooLarge);
    const second = expect.objectContaining({ code: "invalid_request" });
    const tooMany = expect.objectContaining({ code: "rate_limited" });
    const one = new MessageFrames({ ...MANY, messages: 1 });
    expect(one.endsIn(Buffer.alloc(5))).toEqual([5]);
    expect(() => one.endsIn(Buffer.alloc(1))).toThrow(second);
    expect(() => new MessageFrames(MANY).endsIn(Buffer.alloc(501))).toThrow(tooMany);
  });
});
