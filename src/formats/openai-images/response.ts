import {
  type Completion,
  type CompletionChunk,
  FinishReason,
  type PartialImage,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Image } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../core/failure.ts";
import { type AnswerStream, EVENT_STREAM, type NameOf } from "../format.ts";
import { HeldStrings, type JsonText } from "../held-strings.ts";
import { base64, base64Of } from "../media.ts";
import { toErrorBody } from "../openai-error.ts";
import { writeReport } from "../report.ts";

/** Writes a completion as OpenAI's list of pictures; text beside them is left out. Throws a Failure for an answer without one. */
export function writeImages({ choices, createTime, usage, report }: Completion, nameOf: NameOf): JsonText {
  const images = choices.flatMap(({ message }) =>
    (message?.parts ?? []).flatMap(({ kind }) => (kind.case === "image" ? [kind.value] : [])),
  );
  const [first] = images;
  if (first === undefined) throw noPicture(choices.map(({ finishReason }) => finishReason));
  const held = new HeldStrings();
  const list = {
    created: Number(createTime?.seconds ?? 0n),
    data: images.map((image) => ({ b64_json: base64Of(image.source, held) })),
    output_format: formatOf(first),
    ...(usage !== undefined && { usage: toUsage(usage) }),
    ...(report !== undefined && { parley: writeReport(report, nameOf) }),
  };
  return held.putBack(JSON.stringify(list));
}

function noPicture(reasons: readonly FinishReason[]): Failure {
  return reasons.includes(FinishReason.CONTENT_FILTER)
    ? new Failure(
        "upstream_rejected",
        "The provider refused to make this picture: its content filter ended the answer.",
      )
    : new Failure("upstream_protocol", "The provider's answer has no picture.");
}

/** `png` of `image/png`. */
function formatOf({ mediaType }: Pick<Image, "mediaType">): string {
  return mediaType.replace(/^image\//, "") || "png";
}

function toUsage({ inputTokens, outputTokens, totalTokens, imageInputTokens = 0 }: Usage): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { text_tokens: inputTokens - imageInputTokens, image_tokens: imageInputTokens },
    output_tokens: outputTokens,
    total_tokens: totalTokens,
  };
}

/** Beginning of the names of the events of a stream. */
export type ImageEvent = "image_generation" | "image_edit";

/**
 * Writes each picture as a `completed` event, and previews as they arrive. The last event has the usage, so `completed` events wait for
 * the report.
 */
export class ImageWriter implements AnswerStream {
  readonly contentType = EVENT_STREAM;
  readonly keepAlive = ": keep-alive\n\n";
  readonly repeatsPictures = true;
  readonly #event: ImageEvent;
  readonly #nameOf: NameOf;
  readonly #images: Image[] = [];
  readonly #reasons: FinishReason[] = [];
  #created = 0;
  #usage: Usage | undefined;
  #ended = false;

  constructor(event: ImageEvent, nameOf: NameOf) {
    this.#event = event;
    this.#nameOf = nameOf;
  }

  get ended(): boolean {
    return this.#ended;
  }

  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const { event } of chunks) {
      if (event.case === "start") this.#created = Number(event.value.createTime?.seconds ?? 0n);
      else if (event.case === "usage") this.#usage = event.value;
      else if (event.case === "choiceFinish") this.#reasons.push(event.value.finishReason);
      else if (event.case === "partialImage") out += this.#partial(event.value);
      else if (event.case === "report") out += this.#end(event.value);
      else if (event.case === "partStart" && event.value.part?.kind.case === "image")
        this.#images.push(event.value.part.kind.value);
    }
    return out;
  }

  fail(failure: Failure): string {
    return `event: error\ndata: ${JSON.stringify(toErrorBody(failure))}\n\n`;
  }

  #end(report: Report): string {
    this.#ended = true;
    if (this.#images.length === 0) return this.fail(noPicture(this.#reasons));
    const last = this.#images.length - 1;
    return this.#images.map((image, index) => this.#completed(image, index === last ? report : undefined)).join("");
  }

  #partial({ data, index, mediaType }: PartialImage): string {
    const type = `${this.#event}.partial_image`;
    const partial = {
      type,
      b64_json: base64(data),
      partial_image_index: index,
      created_at: this.#created,
      output_format: formatOf({ mediaType }),
    };
    return `event: ${type}\ndata: ${JSON.stringify(partial)}\n\n`;
  }

  #completed(image: Image, report: Report | undefined): string {
    const type = `${this.#event}.completed`;
    const completed = {
      type,
      b64_json: base64Of(image.source),
      created_at: this.#created,
      output_format: formatOf(image),
      ...(report !== undefined && {
        ...(this.#usage !== undefined && { usage: toUsage(this.#usage) }),
        parley: writeReport(report, this.#nameOf),
      }),
    };
    return `event: ${type}\ndata: ${JSON.stringify(completed)}\n\n`;
  }
}
