import { deflateRawSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { gunzip } from "../../../src/inbound/http/body.ts";

const KIB = 1024;
const TEXT = Buffer.from('{"messages":[]}'.repeat(100));

/** A gzip member whose trailer declares another size. */
function lying(content: Buffer, bytes: number): Buffer {
  const member = gzipSync(content);
  member.writeUInt32LE(bytes, member.length - 4);
  return member;
}

describe("a compressed body", () => {
  it("is decompressed, after its size was measured", async () => {
    const measured: number[] = [];
    const member = gzipSync(TEXT);
    const content = await gunzip(member, { maxBytes: KIB * 64, meter: { received: (bytes) => measured.push(bytes) } });
    expect(content).toEqual(TEXT);
    expect(measured).toEqual([member.length + TEXT.length]);
  });

  it("may be empty", async () => {
    expect(await gunzip(gzipSync(""), { maxBytes: KIB })).toHaveLength(0);
  });

  it("is not decompressed when the meter refuses its size", async () => {
    const refuse = (): void => {
      throw new RangeError("no room");
    };
    await expect(gunzip(gzipSync(TEXT), { maxBytes: KIB * 64, meter: { received: refuse } })).rejects.toThrow(
      "no room",
    );
  });

  it("is too large by what it declares", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * KIB));
    await expect(gunzip(bomb, { maxBytes: 63 * KIB })).rejects.toMatchObject({ code: "request_too_large" });
  });

  it.each([
    ["says too little of itself", lying(Buffer.alloc(64 * KIB), 100)],
    ["says too much of itself", lying(TEXT, TEXT.length + 1)],
    ["has two members", Buffer.concat([gzipSync(Buffer.alloc(KIB)), gzipSync(TEXT)])],
    ["is broken", gzipSync(TEXT).fill(0, 12, 20)],
    ["is cut", Buffer.concat([gzipSync(TEXT).subarray(0, 20), gzipSync(TEXT).subarray(-4)])],
    ["is not gzip", deflateRawSync(Buffer.alloc(KIB)).subarray(0, 4)],
    ["is text", TEXT],
  ])("is refused when it %s", async (_, body) => {
    await expect(gunzip(body, { maxBytes: 64 * KIB })).rejects.toMatchObject({ code: "invalid_request" });
  });
});
