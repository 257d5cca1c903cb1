import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import {
  AudioOptionsSchema,
  ChoiceSchema,
  CompletionChunkSchema,
  type CompletionChunk,
} from "../../gen/parley/v1/completion_pb.js";
import { AudioSchema } from "../../gen/parley/v1/message_pb.js";
import { SpeechType } from "../../src/core/speech.ts";

const speech = (mediaType = "") =>
  create(AudioSchema, { source: { case: "data", value: new Uint8Array([1]) }, mediaType });
const delta = (mediaType = ""): CompletionChunk =>
  create(CompletionChunkSchema, {
    event: { case: "partDelta", value: { content: { case: "audio", value: speech(mediaType) } } },
  });

it.each([
  ["mp3", "", "audio/mpeg"],
  ["wav", "audio/x-own", "audio/x-own"],
  ["other", "", ""],
])("speech asked for as %s, by a provider that says %j, has the media type %j", (format, said, mediaType) => {
  const type = new SpeechType(create(AudioOptionsSchema, { format }));
  const choice = create(ChoiceSchema, { message: { parts: [{ kind: { case: "audio", value: speech(said) } }] } });
  const chunk = delta(said);
  type.complete([choice]);
  type.completeChunks([chunk]);
  expect(choice.message!.parts[0]!.kind.value).toMatchObject({ mediaType });
  expect(chunk.event.value).toMatchObject({ content: { value: { mediaType } } });
});
