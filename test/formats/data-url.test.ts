import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readBase64, readDataUrl } from "../../src/formats/data-url.ts";
import { compareCpuMs } from "../support/cpu-time.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1");

describe("a data URL", () => {
  it.each([
    ["data:text/plain;base64,aGk=", "text/plain"],
    ["DATA:Text/Plain;BASE64,aGk=", "text/plain"],
    ["data:text/plain;charset=utf-8;base64,aGk=", "text/plain"],
    ["data:text/plain; base64,aGk=", "text/plain"],
    ["data: text/plain ;base64,aGk=", "text/plain"],
    ["data:text/plain;base64,aG\r\n k=\n", "text/plain"],
    ["data:text/plain;base64,aGk", "text/plain"],
  ])("%j is read", (url, mediaType) => {
    expect(readDataUrl(url)).toEqual({ mediaType, data: Buffer.from("hi") });
  });

  it.each([
    "",
    "data:",
    "data:text/plain;base64",
    "data:text/plain;base64,",
    "data:text/plain,aGk=",
    "data:text/plain;base64,a",
    "data:text/plain;base64,a===",
    "data:text/plain;base64,aGk=aGk=",
    "data:text/plain;base64,aG*k",
    "data:text/plain;base64,%61%47%6b%3d",
    "data:text/plain;base64,====",
    "date:text/plain;base64,aGk=",
    "https://example.com/a.png",
    `data:image/png;name=${"x".repeat(1024)};base64,aGk=`,
  ])("%j is none", (url) => {
    expect(readDataUrl(url)).toBeUndefined();
  });

  it.each([
    ["image/png", PNG],
    ["image/jpeg", Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ["image/gif", Buffer.from("GIF89a")],
    ["image/webp", Buffer.from("RIFF\0\0\0\0WEBPVP8 ", "latin1")],
    ["application/pdf", Buffer.from("%PDF-1.7")],
  ])("holds %s when its first bytes say so, whatever it is called", (mediaType, data) => {
    expect(readDataUrl(`data:image/bmp;base64,${data.toString("base64")}`)).toEqual({ mediaType, data });
  });

  it.each([
    Buffer.from("\x89PN", "latin1"),
    Buffer.from("RIFF\0\0\0\0WAVE"),
    Buffer.from("xGIF89a"),
    Buffer.from("RIFF"),
  ])("is what it is called when its first bytes say nothing: %s", (data) => {
    expect(readDataUrl(`data:image/bmp;base64,${data.toString("base64")}`)?.mediaType).toBe("image/bmp");
  });
});

describe("base64", () => {
  it("of any bytes is read, padded or not, broken into lines or not", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 80 }),
        (bytes, padded, width) => {
          const base64 = Buffer.from(bytes).toString("base64");
          const text = (padded ? base64 : base64.replace(/=+$/, "")).replace(new RegExp(`.{${width}}`, "g"), "$&\r\n");
          expect(readBase64(text)).toEqual(Buffer.from(bytes));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("with white space after every character is read as fast as it is decoded", () => {
    const text = "A ".repeat(4_000_000);
    const decode = (): Buffer => Buffer.from(text, "base64");
    expect(readBase64(text)?.equals(decode())).toBe(true);
    const bound = (referenceMs: number): number => 20 * referenceMs + 100;
    const { workMs, referenceMs } = compareCpuMs(
      () => readBase64(text),
      decode,
      (least) => least.workMs <= bound(least.referenceMs),
    );
    expect(workMs).toBeLessThanOrEqual(bound(referenceMs));
  });

  it("with a character that does not belong there is not read", () => {
    const wrong = fc.constantFrom("*", "!", ".", "%", "\0", "ä", "😀", "=");
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 3, maxLength: 60 }), fc.nat(), wrong, (bytes, at, character) => {
        const base64 = Buffer.from(bytes).toString("base64").replace(/=+$/, "");
        const place = at % (base64.length - 1);
        expect(readBase64(base64.slice(0, place) + character + base64.slice(place))).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });
});
