import { type Choice, type CompletionChunk, FinishReason, type PartDelta } from "../../gen/parley/v1/completion_pb.js";
import { type Audio, type Part, Role } from "../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { EncodedSource } from "../encoding/base64.ts";
import { toPart } from "./chunks.ts";
import { Failure } from "./failure.ts";
import type { Answer } from "./provider.ts";

/** Limit of a joined answer, and of a provider's stream, in bytes: twice that of a response that a provider sends as a whole. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/** Memory of a chunk and of a token's log probability beside their texts. */
const CHUNK_BYTES = 64;
const LOGPROB_BYTES = 128;

/** Approximate memory that a chunk adds to an answer. Pictures in base64 are not counted: their response has its own limit. */
function sizeOfChunk({ event }: CompletionChunk): number {
  if (event.case === "partStart") {
    const { kind, signature = "", providerDetailsJson = {} } = event.value.part ?? {};
    const bytes = CHUNK_BYTES + signature.length + sizeOfDetails(providerDetailsJson);
    if (kind?.case === "toolCall") return bytes + kind.value.id.length + kind.value.name.length;
    if (kind?.case === "reasoning") return bytes + kind.value.redacted.length;
    if (kind?.case !== "image" || kind.value.source instanceof EncodedSource) return bytes;
    return bytes + (kind.value.source.value?.length ?? 0);
  }
  if (event.case === "partFinish") {
    const { signature, providerDetailsJson } = event.value;
    return CHUNK_BYTES + signature.length + sizeOfDetails(providerDetailsJson);
  }
  if (event.case === "nativeEvent") return CHUNK_BYTES + event.value.json.length;
  if (event.case !== "partDelta") return CHUNK_BYTES;
  const { content, logprobs } = event.value;
  let bytes = CHUNK_BYTES;
  for (const { token, top } of logprobs) bytes += token.length + LOGPROB_BYTES * (1 + top.length);
  if (typeof content.value === "string") return bytes + content.value.length;
  if (content.case === "audio") return bytes + (content.value.source.value?.length ?? 0);
  if (content.case === "nativeEvent") return bytes + content.value.json.length;
  if (content.case !== "citation") return bytes;
  const { source, title, citedText } = content.value;
  const native = source.case === "native" ? source.value.json.length : 0;
  return bytes + citedText.length + title.length + (source.case === "url" ? source.value.length : native);
}

function sizeOfDetails(details: Readonly<Record<string, string>>): number {
  let chars = 0;
  for (const name in details) chars += details[name]!.length;
  return chars;
}

/** Joins the chunks of a stream into the whole answer. Does not change the chunks. */
export class AnswerBuilder {
  #bytes = 0;
  readonly #choices = new Map<number, Choice>();
  /** Pieces of recordings that came in several: `build` joins them once. */
  #pieces: Map<Audio, Uint8Array[]> | undefined;
  #usage: Usage | undefined;

  /**
   * Adds one chunk; `start` and `report` are not part of the answer and ignored. Throws `upstream_protocol` beyond MAX_ANSWER_BYTES: a
   * stream may never end.
   */
  add(chunk: CompletionChunk): void {
    const { event } = chunk;
    this.#bytes += sizeOfChunk(chunk);
    if (this.#bytes > MAX_ANSWER_BYTES)
      throw new Failure("upstream_protocol", "The upstream provider's answer is larger than this gateway reads.");
    switch (event.case) {
      case "partStart": {
        const { choiceIndex, partIndex, part } = event.value;
        if (part !== undefined) this.#choice(choiceIndex).message!.parts[partIndex] = copyPart(part);
        break;
      }
      case "partDelta":
        this.#addDelta(event.value);
        break;
      case "partFinish": {
        const { choiceIndex, partIndex, signature, providerDetailsJson: details } = event.value;
        const part = this.#choice(choiceIndex).message!.parts[partIndex];
        if (part === undefined) break;
        if (signature !== "") part.signature = signature;
        for (const name in details) part.providerDetailsJson[name] = details[name]!;
        break;
      }
      case "choiceFinish": {
        const { choiceIndex, finishReason, nativeFinishReason, stopSequence, providerDetailsJson } = event.value;
        const choice = this.#choice(choiceIndex);
        Object.assign(choice, { finishReason, nativeFinishReason, stopSequence, providerDetailsJson });
        break;
      }
      case "usage":
        this.#usage = event.value;
        break;
      default:
    }
  }

  /** The answer so far: choices by index. */
  build(): Answer {
    for (const [audio, pieces] of this.#pieces ?? []) audio.source = { case: "data", value: Buffer.concat(pieces) };
    this.#pieces = undefined;
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    return { choices, usage: this.#usage };
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = newChoice(index);
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #addDelta({ choiceIndex, partIndex, content, logprobs }: PartDelta): void {
    const part = this.#choice(choiceIndex).message!.parts[partIndex];
    if (part === undefined) return;
    if (content.case === "audio" && part.kind.case === "audio") this.#addAudio(part.kind.value, content.value);
    else addContent(part, content);
    for (const token of logprobs) part.logprobs.push(token);
  }

  #addAudio(audio: Audio, piece: Audio): void {
    if (piece.source.case !== undefined) this.#addSource(audio, piece.source);
    audio.transcript += piece.transcript;
    audio.id ||= piece.id;
    audio.mediaType ||= piece.mediaType;
    if (piece.expireTime !== undefined) audio.expireTime = piece.expireTime;
  }

  /** Appends bytes to those already received. An address replaces them. */
  #addSource(audio: Audio, source: Audio["source"]): void {
    if (audio.source.case !== "data" || source.case !== "data") {
      this.#pieces?.delete(audio);
      audio.source = source;
      return;
    }
    const pieces = this.#pieces?.get(audio);
    if (pieces === undefined) (this.#pieces ??= new Map()).set(audio, [audio.source.value, source.value]);
    else pieces.push(source.value);
  }
}

function newChoice(index: number): Choice {
  return {
    $typeName: "parley.v1.Choice",
    index,
    message: { $typeName: "parley.v1.Message", role: Role.ASSISTANT, parts: [] },
    finishReason: FinishReason.UNSPECIFIED,
    nativeFinishReason: "",
    stopSequence: "",
    providerDetailsJson: {},
  };
}

/** A part to which deltas can be added without changing `part`. */
function copyPart({ kind, citations, signature, providerDetailsJson }: Part): Part {
  const part = toPart(kind, signature, { ...providerDetailsJson });
  if (citations.length > 0) part.citations = [...citations];
  // The other kinds have no deltas, or are replaced as a whole.
  if (kind.case === "toolCall") {
    const { input } = kind.value;
    part.kind = { case: "toolCall", value: { ...kind.value, input: { ...input } } };
  } else if (kind.case === "reasoning") part.kind = { case: "reasoning", value: { ...kind.value } };
  else if (kind.case === "audio") part.kind = { case: "audio", value: { ...kind.value } };
  else if (kind.case === "native") part.kind = { case: "native", value: { ...kind.value } };
  else if (kind.case === "text" || kind.case === "refusal") part.kind = { ...kind };
  return part;
}

function addContent({ kind, citations }: Part, content: PartDelta["content"]): void {
  switch (content.case) {
    case "text":
    case "refusal":
      if (kind.case === content.case) kind.value += content.value;
      break;
    case "reasoning":
      if (kind.case === "reasoning") kind.value.text += content.value;
      break;
    case "argumentsJson":
    case "customInput":
      if (kind.case === "toolCall" && kind.value.input.case === content.case) kind.value.input.value += content.value;
      break;
    case "nativeJson":
      if (kind.case === "native") kind.value.json += content.value;
      break;
    case "citation":
      citations.push(content.value);
      break;
    // `AnswerBuilder` adds recordings; pieces of images are only on the wire, see `inbound/image-pieces.ts`.
    case "audio":
    case "imageData":
    // Native events are only in streams.
    case "nativeEvent":
    case undefined:
      break;
  }
}
