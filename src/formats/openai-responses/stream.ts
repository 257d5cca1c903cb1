import type {
  ChoiceFinish,
  CompletionChunk,
  CompletionStart,
  PartDelta,
  PartFinish,
  PartialImage,
  PartStart,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Citation, NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../core/failure.ts";
import { type AnswerStream, EVENT_STREAM } from "../format.ts";
import { LeftOut } from "../left-out.ts";
import {
  addFurther,
  annotation,
  fillImage,
  MAX_CHARS,
  newText,
  type ImageItem,
  type OutputItem,
  OutputItems,
  RepeatedLogprobs,
  tooLong,
} from "./answer.ts";
import { type State, writeState } from "./envelope.ts";
import { toResponseError } from "./error.ts";
import { EventWriter } from "./events.ts";
import { DIALECT } from "./native.ts";
import { OpenItem } from "./open-item.ts";
import type { ReadRequest } from "./request.ts";
import { endOf, reasoningState, ResponseWriter } from "./response.ts";

/** An unfinished native block, with the events about it. */
interface OpenNative {
  readonly dialect: string;
  json: string;
  readonly events: NativeBlock[];
}

type StreamedRequest = Pick<ReadRequest, "echo" | "isKept" | "names" | "nameOf" | "withState">;

/**
 * Writes chunks as the events of a response. One writer per stream. It opens an item for each part, joins neighbouring texts into one
 * message, ends items in their order, and repeats the whole answer in the last event, as clients expect.
 */
export class EventStream implements AnswerStream {
  readonly contentType = EVENT_STREAM;
  readonly repeatsPictures = true;
  readonly #read: StreamedRequest;
  readonly #requestId: string;
  readonly #events = new EventWriter();
  #writer: ResponseWriter | undefined;
  #items = new OutputItems("");
  /** Unfinished items, in order. */
  #open: OpenItem[] = [];
  /** Ended items as JSON text. */
  readonly #ended: string[] = [];
  /** The item of a picture of which only previews were received. */
  #making: OpenItem | undefined;
  /** Unfinished native blocks, by part index. */
  readonly #native = new Map<number, OpenNative>();
  /** Items of unfinished parts, by part index. The item of a text is its message. */
  readonly #parts = new Map<number, OpenItem>();
  #hasRefusal = false;
  #ending: ReturnType<typeof endOf> = { status: "completed" };
  #usage: Usage | undefined;
  readonly #leftOut = new LeftOut(DIALECT);
  #details: ChoiceFinish["providerDetailsJson"] = {};
  #isDone = false;
  /** Characters of the answer. */
  #chars = 0;
  readonly #repeated = new RepeatedLogprobs();
  /** The response object of the last event as JSON; empty before it. */
  response = "";

  /** `requestId`: names a response that failed before its model was known. */
  constructor(read: StreamedRequest, requestId: string) {
    this.#read = read;
    this.#requestId = requestId;
  }

  get ended(): boolean {
    return this.#isDone;
  }

  /** A comment before the first event; then an event, because for some clients only events reset the idle limit. */
  get keepAlive(): string {
    const mayWrite = this.#writer !== undefined && !this.#isDone;
    return mayWrite ? this.#events.write("keepalive", "") : ": keep-alive\n\n";
  }

  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const chunk of chunks) {
      const { event } = chunk;
      this.#leftOut.addChunk(chunk);
      if (event.case === "partDelta") {
        this.#count(event.value);
        out += this.#delta(event.value);
      } else if (event.case === "partStart") out += this.#startPart(event.value);
      else if (event.case === "partFinish") out += this.#finishPart(event.value);
      else if (event.case === "start") out += this.#start(event.value);
      else if (event.case === "choiceFinish") out += this.#finishChoice(event.value);
      else if (event.case === "usage") this.#usage = event.value;
      else if (event.case === "partialImage") out += this.#partialImage(event.value);
      else if (event.case === "nativeEvent") out += this.#events.writeOwn(event.value, "");
      else if (event.case === "report") out += this.#end(event.value);
    }
    return out;
  }

  /** Ends the stream with a failed response. Some clients would take an `error` event for a lost connection. */
  fail(failure: Failure): string {
    const id = this.#requestId.replace(/[^A-Za-z0-9]/g, "");
    // Clients require the start of a response before its failure. If only comments were sent, the response starts now.
    const begun =
      this.#writer === undefined ? this.#begin({ id, model: this.#read.echo.model, createdSeconds: 0 }) : "";
    const output = [...this.#ended, ...this.#open.map(({ item }) => JSON.stringify(item))];
    const state = { status: "failed", error: toResponseError(failure), attempts: failure.attempts } as const;
    return begun + this.#lifecycle("failed", state, output);
  }

  #start({ id, createTime, model }: CompletionStart): string {
    return this.#begin({ id, model, createdSeconds: Number(createTime?.seconds ?? 0n) });
  }

  #begin(facts: { readonly id: string; readonly model: string; readonly createdSeconds: number }): string {
    this.#items = new OutputItems(facts.id);
    this.#writer = new ResponseWriter(facts, this.#read);
    const state = { status: "in_progress" } as const;
    return this.#lifecycle("created", state) + this.#lifecycle("in_progress", state);
  }

  #lifecycle(name: string, state: Parameters<ResponseWriter["write"]>[1], output: readonly string[] = []): string {
    const response = this.#writer?.write(`[${output.join(",")}]`, state);
    if (this.#isDone && response !== undefined) this.response = response;
    return response === undefined ? "" : this.#events.write(`response.${name}`, `,"response":${response}`);
  }

  /** Starts a part. Texts start with their first piece, so that there are no empty texts. */
  #startPart({ partIndex, part }: PartStart): string {
    if (part === undefined) return "";
    const { kind, signature, providerDetailsJson } = part;
    switch (kind.case) {
      case "reasoning": {
        const item = this.#items.reasoning();
        addFurther(item, providerDetailsJson);
        const out = this.#add(partIndex, item);
        this.#setState(item, kind.value.redacted, signature);
        return out;
      }
      case "toolCall": {
        const { id, name, input } = kind.value;
        const out = signature === "" ? "" : this.#keep({ tool_call: id, signature });
        const given = this.#read.names.given(name);
        const isCustom = input.case === "customInput";
        return (
          out + this.#add(partIndex, isCustom ? this.#items.customCall(id, given) : this.#items.functionCall(id, given))
        );
      }
      case "image": {
        const { item, out } = this.#beginImage(partIndex);
        fillImage(item, kind.value);
        addFurther(item, providerDetailsJson);
        return (
          out +
          (this.#parts.get(partIndex)?.progress() ?? "") +
          (signature === "" ? "" : this.#keep({ image: item.id, signature }))
        );
      }
      case "native":
        this.#native.set(partIndex, { ...kind.value, events: [] });
        return "";
      default:
        return "";
    }
  }

  /** The item of a picture: the one that its previews began, or a new one. */
  #beginImage(partIndex: number): { readonly item: ImageItem; readonly out: string } {
    const making = this.#making;
    this.#making = undefined;
    if (making?.item.type === "image_generation_call") {
      this.#parts.set(partIndex, making);
      return { item: making.item, out: "" };
    }
    const item = this.#items.image();
    return { item, out: this.#add(partIndex, item) };
  }

  #partialImage(image: PartialImage): string {
    const begun = this.#making === undefined ? this.#add(undefined, this.#items.image()) : "";
    this.#making ??= this.#open.at(-1);
    return begun + (this.#making?.partialImage(image) ?? "");
  }

  /** Counts a delta. Throws `upstream_protocol` beyond MAX_CHARS. */
  #count({ content }: PartDelta): void {
    if (typeof content.value === "string") this.#chars += content.value.length;
    if (this.#chars > MAX_CHARS) throw tooLong();
  }

  #delta({ partIndex, content, logprobs }: PartDelta): string {
    if (content.case === "text" || content.case === "refusal") {
      if (content.value === "" && logprobs.length === 0) return "";
      const begun = this.#parts.has(partIndex) ? "" : this.#beginText(partIndex, content.case);
      return begun + this.#textDelta(partIndex, content, logprobs);
    }
    if (content.case === "citation") return this.#cite(partIndex, content.value);
    if (content.case === "nativeJson") {
      const native = this.#native.get(partIndex);
      if (native !== undefined) native.json += content.value;
      return "";
    }
    if (content.case === "nativeEvent") return this.#eventOf(partIndex, content.value);
    const open = this.#parts.get(partIndex);
    if (open === undefined) return "";
    const { item } = open;
    switch (content.case) {
      case "reasoning":
        return item.type === "reasoning" && content.value !== "" ? open.reasoning(item, content.value) : "";
      case "argumentsJson":
      case "customInput":
        return item.type === "function_call" || item.type === "custom_tool_call" ? open.input(item, content.value) : "";
      // The format has no place for speech. Images are whole here.
      default:
        return "";
    }
  }

  /** An event about an item. Events of a native item wait until the item is written, at its end. */
  #eventOf(partIndex: number, event: NativeBlock): string {
    const native = this.#native.get(partIndex);
    if (native === undefined) return this.#parts.get(partIndex)?.event(event) ?? "";
    native.events.push(event);
    return "";
  }

  #cite(partIndex: number, citation: Citation): string {
    if (annotation(citation, 0) === undefined) return "";
    const begun = this.#parts.has(partIndex) ? "" : this.#beginText(partIndex, "text");
    const open = this.#parts.get(partIndex);
    const last = open?.item.type === "message" ? open.item.content.at(-1) : undefined;
    return last?.type === "output_text" ? begun + (open?.cite(last, citation) ?? "") : begun;
  }

  #textDelta(partIndex: number, { value }: { readonly value: string }, logprobs: PartDelta["logprobs"]): string {
    const open = this.#parts.get(partIndex);
    const last = open?.item.type === "message" ? open.item.content.at(-1) : undefined;
    if (open === undefined || last === undefined) return "";
    return last.type === "output_text" ? open.text(last, value, logprobs) : open.refusal(last, value);
  }

  /** Adds a text to the last message, or begins one. */
  #beginText(partIndex: number, kind: "text" | "refusal"): string {
    if (kind === "refusal") this.#hasRefusal = true;
    const content = kind === "text" ? newText() : ({ type: "refusal", refusal: "" } as const);
    let out = "";
    let open = this.#open.at(-1);
    if (open === undefined || open.finished || open.item.type !== "message") {
      out += this.#add(partIndex, this.#items.message());
      open = this.#open.at(-1);
    }
    if (open?.item.type !== "message") return out;
    this.#parts.set(partIndex, open);
    return out + open.nextContent(open.item, content);
  }

  /** Writes an item that is whole. */
  #addNative({ events, ...block }: OpenNative): string {
    const item = this.#items.native(block);
    if (item === undefined) return "";
    const out = this.#add(undefined, item);
    const open = this.#open.at(-1);
    if (open === undefined) return out;
    open.finished = true;
    return out + (events.length === 0 ? open.progress() : events.map((event) => open.event(event)).join(""));
  }

  #finishPart({ partIndex, signature, providerDetailsJson }: PartFinish): string {
    const native = this.#native.get(partIndex);
    if (native !== undefined) {
      this.#native.delete(partIndex);
      return this.#addNative(native);
    }
    const open = this.#parts.get(partIndex);
    this.#parts.delete(partIndex);
    if (open === undefined) return signature === "" ? "" : this.#keep({ text: true, signature });
    const { item } = open;
    addFurther(item, providerDetailsJson);
    // The next text is added to the same message.
    if (item.type !== "message") open.finished = true;
    if (signature === "") return "";
    switch (item.type) {
      case "message":
        return this.#keep({ text: true, signature });
      case "reasoning":
        this.#setState(item, "", signature);
        return "";
      case "function_call":
      case "custom_tool_call":
        return this.#keep({ tool_call: item.call_id, signature });
      case "image_generation_call":
        return this.#keep({ image: item.id, signature });
      case "native":
        return "";
    }
  }

  #setState(item: Extract<OutputItem, { type: "reasoning" }>, redacted: string, signature: string): void {
    if (!this.#read.withState) return;
    const state = reasoningState(item.summary[0]?.text ?? "", redacted, signature);
    if (state !== undefined) item.encrypted_content = state;
  }

  /** Adds an item with state of the provider, if the caller keeps it. */
  #keep(state: State): string {
    const last = this.#open.at(-1);
    if (last?.item.type === "message") last.finished = true;
    if (!this.#read.withState) return "";
    const item = this.#items.reasoning();
    const out = this.#add(undefined, item);
    item.encrypted_content = writeState(state);
    const open = this.#open.at(-1);
    if (open !== undefined) open.finished = true;
    return out;
  }

  /** Opens an item, after ending the finished items before it. */
  #add(partIndex: number | undefined, item: OutputItem): string {
    const last = this.#open.at(-1);
    if (last?.item.type === "message") last.finished = true;
    const out = this.#flush();
    const open = new OpenItem(item, this.#items.list.length - 1, { events: this.#events, repeated: this.#repeated });
    this.#open.push(open);
    if (partIndex !== undefined) this.#parts.set(partIndex, open);
    return out + open.begin();
  }

  /** Ends items in their order, up to the first one that is not finished. */
  #flush(): string {
    const unfinished = this.#open.findIndex(({ finished }) => !finished);
    const finished = this.#open.splice(0, unfinished === -1 ? this.#open.length : unfinished);
    return finished.map((open) => this.#endItem(open, "completed")).join("");
  }

  #endItem(open: OpenItem, status: "completed" | "incomplete"): string {
    const { out, json } = open.end(status);
    this.#ended.push(json);
    return out;
  }

  /** Ends all items. The last one ends only now, because it may be incomplete. */
  #finishChoice({ finishReason, providerDetailsJson }: ChoiceFinish): string {
    this.#details = providerDetailsJson;
    this.#ending = endOf(finishReason, this.#hasRefusal);
    const open = this.#open;
    this.#open = [];
    this.#parts.clear();
    return open
      .map((each, at) => this.#endItem(each, at === open.length - 1 ? this.#ending.status : "completed"))
      .join("");
  }

  #end(report: Report): string {
    this.#isDone = true;
    const name = this.#ending.status;
    const said = { usage: this.#usage, report, details: this.#details, leftOut: this.#leftOut.names };
    return this.#lifecycle(name, { ...this.#ending, ...said }, this.#ended);
  }
}
