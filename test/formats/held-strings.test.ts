import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ChoiceSchema, type Completion, CompletionSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Image, ImageSchema, PartSchema } from "../../gen/parley/v1/message_pb.js";
import { Base64, EncodedSource } from "../../src/encoding/base64.ts";
import { toChatCompletion, writeChatCompletion } from "../../src/formats/openai-chat/response.ts";

const pieces = (text: string): Buffer[] => text.split("").map((character) => Buffer.from(character));

function picture(text: string): Image {
  const image = create(ImageSchema, { mediaType: "image/png" });
  image.source = new EncodedSource(Base64.read(pieces(Buffer.from(text).toString("base64")))!);
  return image;
}

function completionOf(...texts: readonly string[]): Completion {
  const choices = texts.map((text, index) => {
    const choice = create(ChoiceSchema, { index, message: {} });
    for (const value of [text, `${text} again`]) {
      choice.message!.parts.push(create(PartSchema, { kind: { case: "text", value: `$& é "${value}"` } }));
      choice.message!.parts.push(
        create(PartSchema, { kind: { case: "image", value: picture(value) }, signature: "s" }),
      );
    }
    return choice;
  });
  return create(CompletionSchema, { id: "chatcmpl-1", choices });
}

describe("pictures that are still base64", () => {
  it("are written as those that are not, each in its place, without being copied", () => {
    const completion = completionOf("one", "two");
    const written = writeChatCompletion(completion, (path) => path) as readonly Buffer[];
    expect(Buffer.concat([...written]).toString()).toBe(JSON.stringify(toChatCompletion(completion, (path) => path)));
    const { source } = picture("one");
    expect(written.length).toBeGreaterThan(4 * (source as EncodedSource).base64.pieces.length);
  });

  it("make pieces of nothing else", () => {
    const completion = create(CompletionSchema, { id: "chatcmpl-1" });
    expect(writeChatCompletion(completion, (path) => path)).toBe(
      JSON.stringify(toChatCompletion(completion, (path) => path)),
    );
  });
});
