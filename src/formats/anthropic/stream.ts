import type {
  ChoiceFinish,
  CompletionChunk,
  CompletionStart,
  PartDelta,
  PartFinish,
  PartStart,
} from "../../../gen/parley/v1/completion_pb.js";
import type { NativeBlock, Part } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../core/failure.ts";
import { type AnswerStream, EVENT_STREAM } from "../format.ts";
import { LeftOut } from "../left-out.ts";
import { type FurtherFields, readFurther, readTyped } from "../native.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { DIALECT } from "./blocks.ts";
import { toErrorBody } from "./error.ts";
import type { AnswerForm } from "./response.ts";

/** Facts of a request on which the form of its stream depends. */
export interface StreamForm extends AnswerForm {
  readonly requestId: string;
}

/** An event of a part. */
type PartEvent = Extract<CompletionChunk["event"], { case: "partStart" | "partDelta" | "partFinish" }>;

/** A part whose block is being written. */
interface OpenPart {
  readonly partIndex: number;
  readonly kind: Part["kind"];
  signature: string;
  /** Fields that only this dialect has. */
  readonly further: FurtherFields;
  /** Index of its block; undefined until the block has begun. */
  block: number | undefined;
  /** Beginning of the events with its deltas, up to the text. */
  head: string;
  /** Whether a call has arguments. */
  written: boolean;
  /** JSON of a native block so far. */
  json: string;
}

/** Limit of the events that wait for the end of an earlier part: calls with 100,000 tokens have as many pieces. */
const MAX_HELD_EVENTS = 100_000;

function tooInterleaved(): Failure {
  return new Failure(
    "upstream_protocol",
    "The upstream provider's answer interleaves more pieces than this gateway holds.",
  );
}

/** The ending of a choice, with the provider's details of the answer. */
type Ending = write.Ended & Pick<ChoiceFinish, "providerDetailsJson">;

const NO_END: Ending = { finishReason: 0, nativeFinishReason: "", stopSequence: "", providerDetailsJson: {} };

/** Fields of a message that a stream has in the delta of its end. */
const IN_DELTA: ReadonlySet<string> = new Set(["container"]);

/**
 * Writes chunks as the events of a message. In this format a block ends before the next one begins: the events of a part that
 * begins while another one is open are held until that one ends.
 */
export class MessageWriter implements AnswerStream {
  readonly contentType = EVENT_STREAM;
  readonly keepAlive = event("ping", `{"type":"ping"}`);
  readonly #form: StreamForm;
  #blocks = 0;
  #open: OpenPart | undefined;
  /** Held events by part index, in the order in which the parts started. */
  readonly #held = new Map<number, PartEvent[]>();
  /** Number of events that were held so far. */
  #heldEvents = 0;
  #refusal = "";
  #ending = NO_END;
  readonly #leftOut = new LeftOut(DIALECT);
  #usage: Usage | undefined;
  #ended = false;

  constructor(form: StreamForm) {
    this.#form = form;
  }

  get ended(): boolean {
    return this.#ended;
  }

  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const chunk of chunks) {
      const { event: said } = chunk;
      this.#leftOut.addChunk(chunk);
      switch (said.case) {
        case "partDelta":
        case "partStart":
        case "partFinish":
          if (said.value.choiceIndex === 0) out += this.#part(said);
          break;
        case "start":
          out += this.#start(said.value);
          break;
        case "choiceFinish":
          if (said.value.choiceIndex === 0) this.#ending = said.value;
          break;
        case "usage":
          this.#usage = said.value;
          break;
        case "report":
          out += this.end(said.value);
          break;
        case "nativeEvent":
          out += ownEvent(said.value);
          break;
        // The format has no place for pictures.
        case "partialImage":
        case undefined:
      }
    }
    return out;
  }

  fail(failure: Failure): string {
    return event("error", JSON.stringify(toErrorBody(failure, this.#form.requestId)));
  }

  #start({ id, model }: CompletionStart): string {
    const message = {
      id: write.messageId(id),
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: write.estimatedUsage(this.#form.inputTokens, 1),
    };
    return event("message_start", `{"type":"message_start","message":${JSON.stringify(message)}}`);
  }

  #part(said: PartEvent): string {
    const { partIndex } = said.value;
    if (this.#open === undefined || this.#open.partIndex === partIndex) return this.#write(said) + this.#writeHeld();
    this.#heldEvents += 1;
    if (this.#heldEvents > MAX_HELD_EVENTS) throw tooInterleaved();
    const held = this.#held.get(partIndex);
    if (held === undefined) this.#held.set(partIndex, [said]);
    else held.push(said);
    return "";
  }

  /** Writes the held events, up to the first part that is not complete. */
  #writeHeld(): string {
    let out = "";
    while (this.#open === undefined) {
      const [next] = this.#held;
      if (next === undefined) break;
      this.#held.delete(next[0]);
      for (const said of next[1]) out += this.#write(said);
    }
    return out;
  }

  #write(said: PartEvent): string {
    if (said.case === "partDelta") return this.#delta(said.value);
    if (said.case === "partStart") return this.#begin(said.value);
    return this.#finish(said.value);
  }

  #begin({ partIndex, part }: PartStart): string {
    if (part === undefined) return "";
    const { kind, signature, providerDetailsJson } = part;
    const further = readFurther(providerDetailsJson, { dialect: DIALECT });
    this.#open = { partIndex, kind, signature, further, block: undefined, head: "", written: false, json: "" };
    if (kind.case !== "toolCall") return "";
    const { id, name } = kind.value;
    const state = signature === "" ? "" : this.#state(signature, id);
    return state + this.#openBlock(this.#open, JSON.stringify({ ...further, type: "tool_use", id, name, input: {} }));
  }

  #delta({ content }: PartDelta): string {
    const open = this.#open;
    if (open === undefined) return "";
    switch (content.case) {
      case "text":
        return content.value === "" ? "" : this.#text(open) + `${open.head}${JSON.stringify(content.value)}}}\n\n`;
      case "reasoning":
        if (content.value === "" || this.#form.hidesThinking) return "";
        return this.#thinking(open) + `${open.head}${JSON.stringify(content.value)}}}\n\n`;
      case "argumentsJson":
        open.written ||= content.value !== "";
        return content.value === "" ? "" : `${open.head}${JSON.stringify(content.value)}}}\n\n`;
      case "citation": {
        const cited = write.citation(content.value);
        if (cited === undefined) return "";
        return this.#text(open) + blockDelta(open, `{"type":"citations_delta","citation":${JSON.stringify(cited)}}`);
      }
      case "refusal":
        this.#refusal += content.value;
        return "";
      case "nativeJson":
        open.json += content.value;
        return "";
      case "nativeEvent":
        return open.block === undefined ? "" : ownEvent(content.value, open.block);
      // The format has no place for pictures and recordings.
      case "customInput":
      case "audio":
      case "imageData":
      case undefined:
        return "";
    }
  }

  #finish({ signature }: PartFinish): string {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return "";
    const { kind } = open;
    // A signature that was sent with the start of a call is not repeated.
    if (signature !== "") open.signature = signature;
    switch (kind.case) {
      case "text":
        return blockStop(open) + (open.signature === "" ? "" : this.#state(open.signature));
      case "reasoning":
        return this.#finishReasoning(open, kind.value.redacted);
      case "toolCall": {
        const input = open.written ? "" : `${open.head}"{}"}}\n\n`;
        return input + blockStop(open) + (signature === "" ? "" : this.#state(signature, kind.value.id));
      }
      case "native":
        return this.#native(open, kind.value);
      default:
        return "";
    }
  }

  #finishReasoning(open: OpenPart, redacted: string): string {
    if (redacted !== "")
      return (
        this.#openBlock(open, JSON.stringify({ ...open.further, type: "redacted_thinking", data: redacted })) +
        blockStop(open)
      );
    if (open.signature === "") return blockStop(open);
    const signed = `{"type":"signature_delta","signature":${JSON.stringify(open.signature)}}`;
    return this.#thinking(open) + blockDelta(open, signed) + blockStop(open);
  }

  /** A native block. The input of a server tool's call is sent in a delta, as the vendor does. */
  #native(open: OpenPart, { dialect, json }: NativeBlock): string {
    const block = write.nativeBlock({ dialect, json: json + open.json });
    if (block === undefined) return "";
    const { input } = block;
    if (typeof input !== "object" || input === null)
      return this.#openBlock(open, JSON.stringify(block)) + blockStop(open);
    const begun = this.#openBlock(open, JSON.stringify({ ...block, input: {} }));
    const given = JSON.stringify({ type: "input_json_delta", partial_json: JSON.stringify(input) });
    return begun + blockDelta(open, given) + blockStop(open);
  }

  /** Begins the block of a text, if it has not begun. */
  #text(open: OpenPart): string {
    if (open.block !== undefined) return "";
    return this.#openBlock(open, JSON.stringify({ ...open.further, type: "text", text: "" }));
  }

  /** Begins the block of reasoning, if it has not begun. */
  #thinking(open: OpenPart): string {
    if (open.block !== undefined) return "";
    return this.#openBlock(open, JSON.stringify({ ...open.further, type: "thinking", thinking: "", signature: "" }));
  }

  #openBlock(open: OpenPart, block: string): string {
    const index = this.#blocks++;
    open.block = index;
    open.head = deltaHead(open.kind.case, index);
    return blockStart(index, block);
  }

  /** A whole block with the state of a text or a call. */
  #state(signature: string, toolCall?: string): string {
    const index = this.#blocks++;
    const { signature: state } = write.stateBlock(signature, toolCall);
    return (
      blockStart(index, `{"type":"thinking","thinking":"","signature":""}`) +
      blockDelta({ block: index }, `{"type":"signature_delta","signature":"${state}"}`) +
      blockStop({ block: index })
    );
  }

  /** The end of the stream; without a report, it has no `parley` fields. */
  end(report?: Report): string {
    const { nameOf, inputTokens } = this.#form;
    const counted = this.#usage === undefined ? write.estimatedUsage(inputTokens, 0) : write.usage(this.#usage);
    const details = this.#ending.providerDetailsJson;
    const further = Object.entries(readFurther(details, { dialect: DIALECT }));
    const ofDelta = further.filter(([name]) => IN_DELTA.has(name));
    const ended = {
      ...Object.fromEntries(further.filter(([name]) => !IN_DELTA.has(name))),
      type: "message_delta",
      delta: { ...Object.fromEntries(ofDelta), ...write.stop(this.#ending, this.#refusal) },
      usage: { ...readFurther(details, { dialect: DIALECT, place: "usage" }), ...counted },
    };
    const leftOut = this.#leftOut.names;
    const routing = report === undefined ? "" : `,"parley":${JSON.stringify(writeReport(report, nameOf, leftOut))}`;
    this.#ended = true;
    return event("message_delta", JSON.stringify(ended)) + event("message_stop", `{"type":"message_stop"${routing}}`);
  }
}

/** An event; clients skip those without a name. */
function event(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`;
}

/** An event that only this dialect has, in the provider's JSON. `index`: index of the block that it is about. */
function ownEvent(block: NativeBlock, index?: number): string {
  const words = readTyped(block, DIALECT);
  if (words === undefined) return "";
  const { type, ...fields } = words;
  return event(type, JSON.stringify({ type, ...(index !== undefined && { index }), ...fields }));
}

function blockStart(index: number, block: string): string {
  return event("content_block_start", `{"type":"content_block_start","index":${index},"content_block":${block}}`);
}

type Placed = Pick<OpenPart, "block">;

function blockDelta({ block }: Placed, delta: string): string {
  return event("content_block_delta", `{"type":"content_block_delta","index":${block},"delta":${delta}}`);
}

/** The end of a block; empty for a part without one. */
function blockStop({ block }: Placed): string {
  return block === undefined ? "" : event("content_block_stop", `{"type":"content_block_stop","index":${block}}`);
}

/** A delta up to its text: only the text differs between the deltas of a block. */
function deltaHead(kind: Part["kind"]["case"], index: number): string {
  const delta =
    kind === "reasoning"
      ? `"thinking_delta","thinking":`
      : kind === "toolCall"
        ? `"input_json_delta","partial_json":`
        : `"text_delta","text":`;
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":${delta}`;
}
