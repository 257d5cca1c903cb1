import { clone, create } from "@bufbuild/protobuf";
import {
  type Choice,
  ChoiceSchema,
  type Completion,
  type CompletionChunk,
  CompletionSchema,
  type PartDelta,
} from "./gen/parley/v1/completion_pb.js";
import { type Audio, type Image, type Part, PartSchema, Role } from "./gen/parley/v1/message_pb.js";

/** Joins the chunks of a stream to the completion that `create` returns. The chunks are not changed. */
export class CompletionAccumulator {
  readonly #completion = create(CompletionSchema);
  /** The bytes of pictures and recordings, joined when they are asked for: joining each piece is quadratic. */
  readonly #pieces = new Map<Image | Audio, Uint8Array[]>();

  /** Whether the stream has ended with its report. */
  get isComplete(): boolean {
    return this.#completion.report !== undefined;
  }

  /** The completion as far as the chunks go. */
  get completion(): Completion {
    for (const [owner, pieces] of this.#pieces) setBytes(owner, concat([bytesOf(owner), ...pieces]));
    this.#pieces.clear();
    return this.#completion;
  }

  /** Adds the next chunk of the stream. Content that this version does not know is skipped. */
  add({ event }: CompletionChunk): void {
    const completion = this.#completion;
    switch (event.case) {
      case "start": {
        const { id, createTime, model } = event.value;
        Object.assign(completion, { id, createTime, model });
        break;
      }
      case "partStart": {
        const { choiceIndex, partIndex, part } = event.value;
        if (part !== undefined) this.#choice(choiceIndex).message!.parts[partIndex] = clone(PartSchema, part);
        break;
      }
      case "partDelta":
        this.#addDelta(event.value);
        break;
      case "partFinish": {
        const { choiceIndex, partIndex, signature, providerDetailsJson } = event.value;
        const part = this.#choice(choiceIndex).message!.parts[partIndex];
        if (part === undefined) break;
        if (signature !== "") part.signature = signature;
        Object.assign(part.providerDetailsJson, providerDetailsJson);
        break;
      }
      case "choiceFinish": {
        const { choiceIndex, finishReason, nativeFinishReason, stopSequence, providerDetailsJson } = event.value;
        const choice = this.#choice(choiceIndex);
        Object.assign(choice, { finishReason, nativeFinishReason, stopSequence, providerDetailsJson });
        break;
      }
      case "usage":
        completion.usage = event.value;
        break;
      case "report":
        completion.report = event.value;
        break;
      // Events of a stream alone: what the whole answer has of them comes in its parts.
      case "nativeEvent":
      case "partialImage":
      case undefined:
        break;
      default:
        event satisfies never;
    }
  }

  #choice(index: number): Choice {
    const { choices } = this.#completion;
    let choice = choices.find((each) => each.index === index);
    if (choice === undefined) {
      choice = create(ChoiceSchema, { index, message: { role: Role.ASSISTANT } });
      choices.push(choice);
      choices.sort((a, b) => a.index - b.index);
    }
    return choice;
  }

  #addDelta({ choiceIndex, partIndex, content, logprobs }: PartDelta): void {
    const part = this.#choice(choiceIndex).message!.parts[partIndex];
    if (part === undefined) return;
    this.#addContent(part, content);
    part.logprobs.push(...logprobs);
  }

  #addContent({ kind, citations }: Part, content: PartDelta["content"]): void {
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
        if (kind.case === "toolCall") {
          const value = (kind.value.input.value ?? "") + content.value;
          kind.value.input = { case: content.case, value };
        }
        break;
      case "audio":
        if (kind.case === "audio") this.#addAudio(kind.value, content.value);
        break;
      case "citation":
        citations.push(content.value);
        break;
      case "imageData":
        if (kind.case === "image") this.#addBytes(kind.value, content.value);
        break;
      case "nativeJson":
        if (kind.case === "native") kind.value.json += content.value;
        break;
      case "nativeEvent":
      case undefined:
        break;
      default:
        // A new member of the contract fails to compile here.
        content satisfies never;
    }
  }

  #addAudio(audio: Audio, { source, transcript, id, mediaType, expireTime }: Audio): void {
    if (source.case === "data") this.#addBytes(audio, source.value);
    audio.transcript += transcript;
    audio.id ||= id;
    audio.mediaType ||= mediaType;
    if (expireTime !== undefined) audio.expireTime = expireTime;
  }

  #addBytes(owner: Image | Audio, piece: Uint8Array): void {
    const pieces = this.#pieces.get(owner);
    if (pieces === undefined) this.#pieces.set(owner, [piece]);
    else pieces.push(piece);
  }
}

function bytesOf(owner: Image | Audio): Uint8Array {
  return owner.source.case === "data" ? owner.source.value : new Uint8Array();
}

function setBytes(owner: Image | Audio, bytes: Uint8Array): void {
  owner.source = { case: "data", value: bytes };
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}
