import type { AudioOptions, Choice, CompletionChunk } from "../../gen/parley/v1/completion_pb.js";

/** Media types of the formats of `AudioOptions.format`. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ["wav", "audio/wav"],
  ["aac", "audio/aac"],
  ["mp3", "audio/mpeg"],
  ["flac", "audio/flac"],
  ["opus", "audio/opus"],
  ["pcm16", "audio/pcm"],
]);

/** Sets the media type of spoken answers from the requested format when the provider does not state it. */
export class SpeechType {
  readonly #mediaType: string | undefined;

  constructor(options: AudioOptions | undefined) {
    this.#mediaType = options && MEDIA_TYPES.get(options.format);
  }

  complete(choices: readonly Choice[]): void {
    if (this.#mediaType === undefined) return;
    for (const { message } of choices)
      for (const { kind } of message?.parts ?? [])
        if (kind.case === "audio" && kind.value.source.case === "data") kind.value.mediaType ||= this.#mediaType;
  }

  /** Sets the media type of every delta with bytes; consumers use the first one of a part. */
  completeChunks(chunks: readonly CompletionChunk[]): void {
    if (this.#mediaType === undefined) return;
    for (const { event } of chunks) {
      const content = event.case === "partDelta" ? event.value.content : undefined;
      if (content?.case === "audio" && content.value.source.case === "data")
        content.value.mediaType ||= this.#mediaType;
    }
  }
}
