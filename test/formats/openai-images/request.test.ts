import { describe, expect, it } from "vitest";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { readImageRequest } from "../../../src/formats/openai-images/request.ts";
import { toImageOptions } from "../../../src/formats/openai-images/size.ts";
import { failureOf } from "../../support/errors.ts";

const refusalOf = (json: object): Failure => failureOf(() => readImageRequest({ json }));

describe("a request for pictures", () => {
  it("is one user message whose answer has pictures", () => {
    const json = { model: "m", prompt: "A dot", n: 2, size: "1536x1024", user: "u", quality: "high", stream: true };
    const { request, stream, unrecognized, nameOf } = readImageRequest({ json });
    expect(request).toMatchObject({
      model: "m",
      messages: [{ parts: [{ kind: { case: "text", value: "A dot" } }] }],
      modalities: [Modality.TEXT, Modality.IMAGE],
      imageOptions: { aspectRatio: "3:2", size: "1K" },
      choiceCount: 2,
      endUserId: "u",
    });
    expect({ stream, unrecognized }).toEqual({ stream: true, unrecognized: ["quality"] });
    expect(
      ["choice_count", "end_user_id", "image_options.size", "messages[0].parts[0].text", "model"].map(nameOf),
    ).toEqual(["n", "user", "size", "prompt", "model"]);
  });

  it.each([
    [{ model: "m" }, "prompt: is required."],
    [{ prompt: "a" }, "model: is required."],
    [{ model: "m", prompt: "" }, "prompt: must not be empty."],
    [{ model: "m", prompt: "a", n: 11 }, "n: must be from 1 to 10."],
    [{ model: "m", prompt: "a", size: "large" }, "size: must be auto, or a width and a height such as 1024x1024."],
    [{ model: "m", prompt: "a", size: "0x5" }, "size: must be auto, or a width and a height such as 1024x1024."],
    [
      { model: "m", prompt: "a", response_format: "url" },
      "response_format: must be b64_json: Parley keeps no pictures that an address could point to.",
    ],
  ])("is refused: %j", (json, message) => {
    expect(refusalOf(json)).toMatchObject({ code: "invalid_request", message });
  });

  it.each([
    ["256x256", { aspectRatio: "1:1", size: "1K" }],
    ["1024x1536", { aspectRatio: "2:3", size: "1K" }],
    ["1792x1024", { aspectRatio: "16:9", size: "2K" }],
    ["4000x1700", { aspectRatio: "21:9", size: "4K" }],
  ])("of the size %s has the nearest shape and size", (size, expected) => {
    expect(toImageOptions(size, { mask: undefined, partialCount: 0 })).toMatchObject(expected);
  });

  it("of the size auto has none", () => {
    expect(toImageOptions("auto", { mask: undefined, partialCount: 0 })).toBeUndefined();
  });
});
