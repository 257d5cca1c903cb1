import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { isFormType, parseForm } from "../../../src/inbound/http/form.ts";
import { failureOf } from "../../support/errors.ts";

const TYPE = "multipart/form-data; boundary=b";

const refusalOf = (body: string | Buffer, type = TYPE): Failure => failureOf(() => parseForm(Buffer.from(body), type));

const field = (name: string, value: string): string =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

describe("a form", () => {
  it("as fetch writes it has its fields in their order, with types", async () => {
    const form = new FormData();
    form.append("prompt", "A dot – „“ \r\n--b");
    form.append("image[]", new File([Buffer.from([0, 255, 13, 10])], 'a "b";.png', { type: "image/png" }));
    form.append("image[]", new File([], "empty"));
    const request = new Response(form);
    const body = Buffer.from(await request.arrayBuffer());
    expect(parseForm(body, request.headers.get("content-type")!)).toEqual([
      { name: "prompt", data: Buffer.from("A dot – „“ \r\n--b"), mediaType: "" },
      { name: "image[]", data: Buffer.from([0, 255, 13, 10]), mediaType: "image/png" },
      { name: "image[]", data: Buffer.alloc(0), mediaType: "application/octet-stream" },
    ]);
  });

  it("shares the memory of the body", () => {
    const body = Buffer.from(`${field("a", "xyz")}--b--`);
    expect(parseForm(body, TYPE)[0]!.data.buffer).toBe(body.buffer);
  });

  it("may be without fields", () => {
    expect(parseForm(Buffer.from("--b--\r\n"), TYPE)).toEqual([]);
  });

  const NOT_VALID =
    "The request body is not valid multipart/form-data: it must begin with the boundary of its content type, and end with it and two hyphens.";
  const NO_NAME = 'The request body has no name for its part 1: a part needs content-disposition: form-data; name="…".';

  it.each([
    ["without content", "", "The request body is empty; it must be a form."],
    ["with another boundary", "--c\r\n\r\n\r\n--c--", NOT_VALID],
    ["that is JSON", "{}", NOT_VALID],
    ["without an end", field("a", "x"), NOT_VALID],
    ["that ends in a header", "--b\r\ncontent-disposition", NOT_VALID],
    ["of a part without headers", "--b\r\n\r\n\r\n\r\n--b--", NO_NAME],
    ["of a part without a name", "--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--", NO_NAME],
    ["of a part with an empty name", `${field("", "x")}--b--`, NO_NAME],
    ["of a part whose name is not UTF-8", Buffer.from(`${field("\xff", "x")}--b--`, "latin1"), NO_NAME],
    ["of too many parts", `${field("a", "x").repeat(101)}--b--`, "The request body has more than 100 parts."],
    [
      "of long headers",
      `${field("a".repeat(2_100), "x")}--b--`,
      "The request body has a part with more than 2 KiB of headers, or one without an end.",
    ],
  ])("%s is refused", (_what, body, message) => {
    expect(refusalOf(body)).toMatchObject({ code: "invalid_request", message });
  });

  it.each(["multipart/form-data", "multipart/form-data; boundary=", `multipart/form-data; boundary=${"b".repeat(71)}`])(
    "of the type %s is refused",
    (type) => {
      expect(refusalOf(field("a", "x"), type)).toMatchObject({
        message: expect.stringContaining("must have a boundary of 1 to 70 characters") as unknown,
      });
    },
  );

  it("is recognised by its content type", () => {
    expect([TYPE, "Multipart/Form-Data", "multipart/form-datas", "multipart/mixed", undefined].map(isFormType)).toEqual(
      [true, true, false, false, false],
    );
  });

  it("of any bytes is parsed or refused", () => {
    const piece = fc.constantFrom(
      "--b",
      "--",
      "\r\n",
      "\r\n--b",
      "content-disposition: ",
      'form-data; name="',
      '"',
      "é",
      ";",
      "\\",
    );
    const text = fc.array(fc.oneof(piece, fc.string({ maxLength: 4 })), { maxLength: 30 });
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 20 }), (pieces, tail) => {
        const body = Buffer.concat([Buffer.from(`--b\r\n${pieces.join("")}`), tail]);
        try {
          parseForm(body, TYPE);
        } catch (reason) {
          return reason instanceof Failure;
        }
        return true;
      }),
      { numRuns: 2_000, seed: 21 },
    );
  });
});
