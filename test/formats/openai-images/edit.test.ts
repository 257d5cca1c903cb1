import { describe, expect, it } from "vitest";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { FormField } from "../../../src/formats/format.ts";
import { readImageEdit } from "../../../src/formats/openai-images/edit.ts";
import { failureOf } from "../../support/errors.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n...", "latin1");
const DATA_URL = `data:image/png;base64,${PNG.toString("base64")}`;

const text = (name: string, value: string): FormField => ({ name, data: Buffer.from(value), mediaType: "" });
const file = (name: string, data = PNG, mediaType = "application/octet-stream"): FormField => ({
  name,
  data,
  mediaType,
});
const TEXTS = [text("model", "m"), text("prompt", "Remove it")];

const ofForm = (...form: FormField[]) => readImageEdit({ json: undefined, form });

/** The message of an edit with these pictures. */
const shown = (...pictures: object[]) => [{ parts: [...pictures, { kind: { case: "text", value: "Remove it" } }] }];
const picture = (source: object, mediaType = "image/png") => ({
  kind: { case: "image", value: { source, mediaType } },
});
const DATA = { case: "data", value: PNG };

describe("an edit as a form", () => {
  it("is one user message of the pictures and the prompt", () => {
    const { request, stream, unrecognized, nameOf } = ofForm(
      text("model", "m"),
      file("image[]"),
      text("n", "2"),
      file("image[]", Buffer.from("heif"), "image/heic"),
      text("prompt", "Remove it"),
      text("size", "1536x1024"),
      text("stream", "true"),
      text("user", "u"),
      text("fallback_models[]", "b"),
      text("fallback_models[]", "c"),
      text("parley[strict]", "true"),
      text("input_fidelity", "high"),
      file("markup", Buffer.from([255])),
      file("markup", Buffer.from([255])),
      text("__proto__", "x"),
    );
    expect(request).toMatchObject({
      model: "m",
      messages: shown(picture(DATA), picture({ case: "data", value: Buffer.from("heif") }, "image/heic")),
      modalities: [Modality.TEXT, Modality.IMAGE],
      imageOptions: { aspectRatio: "3:2", size: "1K" },
      choiceCount: 2,
      endUserId: "u",
      fallbackModels: ["b", "c"],
      strict: true,
    });
    expect({ stream, unrecognized }).toEqual({
      stream: true,
      unrecognized: ["input_fidelity", "markup", "__proto__"],
    });
    expect(
      ["messages[0].parts[1].image.url", "messages[0].parts[2].text", "messages[0]", "image_options.mask", "model"].map(
        nameOf,
      ),
    ).toEqual(["image[1]", "prompt", "prompt", "mask", "model"]);
  });

  it("of one picture names it image", () => {
    expect(ofForm(...TEXTS, file("image")).nameOf("messages[0].parts[0]")).toBe("image");
  });

  it("has a mask, with a size or without", () => {
    const sized = ofForm(...TEXTS, file("image"), file("mask"), text("size", "1024x1024"));
    expect(sized.request.imageOptions).toMatchObject({ aspectRatio: "1:1", size: "1K", mask: { source: DATA } });
    const { request } = ofForm(...TEXTS, file("image"), file("mask"));
    expect(request.imageOptions).toMatchObject({ aspectRatio: "", size: "", mask: { mediaType: "image/png" } });
  });

  it.each<[string, FormField[], string]>([
    ["without a model", [text("prompt", "a"), file("image")], "model: is required."],
    ["without a prompt", [text("model", "m"), file("image")], "prompt: is required."],
    ["without a picture", TEXTS, "image: is required: a picture as a file."],
    [
      "of 17 pictures",
      [...TEXTS, ...Array.from({ length: 17 }, () => file("image"))],
      "image: must be at most 16 pictures.",
    ],
    [
      "of an address as picture",
      [...TEXTS, text("image", "https://a.example/a.png")],
      "image: must be the file of a picture, such as PNG, JPEG, GIF or WebP.",
    ],
    [
      "of a document among pictures",
      [...TEXTS, file("image"), file("image", Buffer.from("%PDF-1.4"), "image/png")],
      "image[1]: must be the file of a picture, such as PNG, JPEG, GIF or WebP.",
    ],
    [
      "of an empty mask",
      [...TEXTS, file("image"), file("mask", Buffer.alloc(0), "image/png")],
      "mask: must be the file of a picture, such as PNG, JPEG, GIF or WebP.",
    ],
    ["of two masks", [...TEXTS, file("image"), file("mask"), file("mask")], "mask: must be given once."],
    ["of two prompts", [...TEXTS, text("prompt", "b"), file("image")], "prompt: must be given once."],
    ["of a wrong number", [...TEXTS, text("n", "two"), file("image")], "n: must be a whole number."],
    ["of too many", [...TEXTS, text("n", "11"), file("image")], "n: must be from 1 to 10."],
    ["with a wrong truth", [...TEXTS, text("stream", "1"), file("image")], "stream: must be true or false."],
    ["of bytes as text", [...TEXTS, file("user", Buffer.from([255])), file("image")], "user: must be text in UTF-8."],
    [
      "with addresses wanted",
      [...TEXTS, text("response_format", "url"), file("image")],
      "response_format: must be b64_json: Parley keeps no pictures that an address could point to.",
    ],
  ])("%s is refused", (_what, form, message) => {
    expect(failureOf(() => ofForm(...form))).toMatchObject({ code: "invalid_request", message });
  });
});

describe("an edit as JSON", () => {
  const json = { model: "m", prompt: "Remove it", images: [{ image_url: DATA_URL }] };

  it("is the same message", () => {
    const images = [{ image_url: "https://a.example/a.png" }, { image_url: DATA_URL }];
    const { request, unrecognized, nameOf } = readImageEdit({
      json: { ...json, images, mask: { image_url: DATA_URL }, quality: "high" },
    });
    expect(request).toMatchObject({
      messages: shown(picture({ case: "url", value: "https://a.example/a.png" }, ""), picture(DATA)),
      imageOptions: { aspectRatio: "", size: "", mask: { source: DATA } },
    });
    expect(unrecognized).toEqual(["quality"]);
    expect(["messages[0].parts[1]", "messages[0].parts[2]"].map(nameOf)).toEqual(["images[1].image_url", "prompt"]);
  });

  const NO_FILES =
    "is not supported, because Parley keeps no files: send the picture as image_url, a data URL or an https address.";

  it.each([
    [{ images: undefined }, "images: is required."],
    [{ images: [] }, "images: must not be empty."],
    [{ images: [{}] }, "images[0].image_url: is required."],
    [{ images: Array.from({ length: 17 }, () => ({ image_url: DATA_URL })) }, "images: must hold at most 16 entries."],
    [{ images: [{ image_url: DATA_URL }, { file_id: "file-1" }] }, `images[1].file_id: ${NO_FILES}`],
    [{ mask: { file_id: "file-1" } }, `mask.file_id: ${NO_FILES}`],
    [{ mask: {} }, "mask.image_url: is required."],
    [
      { images: [{ image_url: "data:image/png,%00" }] },
      "images[0].image_url: must be an https address or data:<media type>;base64,<data>.",
    ],
  ])("is refused: %j", (changes, message) => {
    expect(failureOf(() => readImageEdit({ json: { ...json, ...changes } }))).toMatchObject({
      code: "invalid_request",
      message,
    });
  });
});
