import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ImageSchema } from "../../gen/parley/v1/message_pb.js";
import { Base64, EncodedSource } from "../../src/encoding/base64.ts";

/** A text cut at these places, wherever they lie. */
function cut(text: string, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  return at.slice(1).map((to, index) => Buffer.from(text.slice(at[index], to)));
}

const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
const places = fc.array(fc.nat(), { maxLength: 8 });

describe("base64 in pieces", () => {
  it("stands for its bytes, however it is split", () => {
    fc.assert(
      fc.property(bytes, places, (data, at) => {
        const text = Buffer.from(data).toString("base64");
        const base64 = Base64.read(cut(text, at));
        expect(base64?.toString()).toBe(text);
        expect(JSON.stringify({ base64 })).toBe(JSON.stringify({ base64: text }));
        expect(Buffer.from(base64!.decode())).toEqual(Buffer.from(data));
      }),
    );
  });

  it("is nothing that our own encoder would write otherwise, however it is split", () => {
    const almost = fc
      .tuple(bytes, fc.nat(), fc.constantFrom("=", "-", "_", " ", "\n", "\\", "é", ""))
      .map(([data, at, character]) => {
        const text = Buffer.from(data).toString("base64");
        return text.slice(0, at % text.length) + character + text.slice((at % text.length) + 1);
      });
    fc.assert(
      fc.property(almost, places, (text, at) => {
        const isOurs = text !== "" && Buffer.from(text, "base64").toString("base64") === text;
        expect(Base64.read(cut(text, at)) !== undefined).toBe(isOurs);
      }),
    );
  });

  it.each(["", "QQ", "QQ=", "QR==", "====", "QQ==QUFB", "QUFBQ===", "QUJD QUJD"])("is not %j", (text) => {
    expect(Base64.read([Buffer.from(text)])).toBeUndefined();
  });

  it("may be longer than what is checked at once", () => {
    const text = Buffer.alloc(300_001, "picture").toString("base64");
    expect(Base64.read(cut(text, [100_001, 100_002, 250_003]))?.toString()).toBe(text);
    expect(Base64.read(cut(text.replace(/.{9}$/, "="), [100_001]))).toBeUndefined();
  });
});

describe("a picture whose bytes are still base64", () => {
  it("is the same message on the wire", () => {
    const data = Buffer.from("not really a picture");
    const image = create(ImageSchema, { mediaType: "image/png" });
    image.source = new EncodedSource(Base64.read([Buffer.from(data.toString("base64"))])!);
    const read = fromBinary(ImageSchema, toBinary(ImageSchema, image));
    expect(read.mediaType).toBe("image/png");
    expect(Buffer.from(read.source.value as Uint8Array)).toEqual(data);
  });
});
