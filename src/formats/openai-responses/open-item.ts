import type { PartialImage } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation, NativeBlock, TokenLogprob } from "../../../gen/parley/v1/message_pb.js";
import { countCodePoints } from "../../encoding/code-points.ts";
import { base64 } from "../media.ts";
import * as write from "./answer.ts";
import type { EventWriter } from "./events.ts";

/** Writes the events of one item. */
export class OpenItem {
  readonly item: write.OutputItem;
  readonly #events: EventWriter;
  readonly #index: number;
  readonly #repeated: write.RepeatedLogprobs;
  /** Fields that name the item, and its last content, as JSON text. */
  readonly #place: string;
  #contentPlace = "";
  /** Number of code points of the last text. */
  #codePoints = 0;
  /** Number of written steps. */
  #steps = 0;
  /** Whether nothing more will be added to the item. */
  finished = false;

  /** `index`: place of the item; `events` and `repeated`: those of the stream. */
  constructor(
    item: write.OutputItem,
    index: number,
    { events, repeated }: { readonly events: EventWriter; readonly repeated: write.RepeatedLogprobs },
  ) {
    this.item = item;
    this.#events = events;
    this.#repeated = repeated;
    this.#index = index;
    this.#place = `,"item_id":${JSON.stringify(item.id)},"output_index":${index}`;
  }

  /** The beginning of the item. */
  begin(): string {
    const { item } = this;
    return this.#events.write(
      "response.output_item.added",
      `,"output_index":${this.#index},"item":${JSON.stringify(item instanceof write.NativeItem ? item.begun() : item)}`,
    );
  }

  /** The progress events of an item that arrives whole: a picture, or the work of a tool that the provider runs. */
  progress(): string {
    const { item } = this;
    const steps = item instanceof write.NativeItem ? item.steps() : write.stepsOf(item.type);
    const rest = steps.slice(this.#steps);
    this.#steps = steps.length;
    return rest.map((type) => this.#events.write(type, this.#place)).join("");
  }

  /** A preview of a picture, after the steps that precede its end. */
  partialImage({ index, data, mediaType }: PartialImage): string {
    const before = write.stepsOf(this.item.type).slice(this.#steps, -1);
    this.#steps += before.length;
    const format = mediaType.slice(mediaType.indexOf("/") + 1);
    const fields = `,"partial_image_index":${index},"output_format":${JSON.stringify(format)}`;
    return (
      before.map((type) => this.#events.write(type, this.#place)).join("") +
      this.#events.write(
        "response.image_generation_call.partial_image",
        `${this.#place}${fields},"partial_image_b64":"${base64(data)}"`,
      )
    );
  }

  /** A native event about the item, in the provider's JSON. */
  event(block: NativeBlock): string {
    return this.#events.writeOwn(block, this.#place);
  }

  /** Begins the next content of a message. */
  nextContent(item: write.MessageItem, content: write.MessageItem["content"][number]): string {
    const out = this.#endContent(item);
    this.#contentPlace = `${this.#place},"content_index":${item.content.length}`;
    this.#codePoints = 0;
    item.content.push(content);
    return (
      out + this.#events.write("response.content_part.added", `${this.#contentPlace},"part":${JSON.stringify(content)}`)
    );
  }

  /** More of the last text of a message. */
  text(content: write.OutputText, more: string, tokens: readonly TokenLogprob[]): string {
    content.text += more;
    this.#codePoints += countCodePoints(more);
    let logprobs = "[]";
    if (tokens.length > 0) {
      const list = tokens.map(write.logprob);
      logprobs = JSON.stringify(list);
      if (this.#repeated.take(tokens)) content.logprobs.push(...list);
      // A part of them would be taken for all.
      else content.logprobs.length = 0;
    }
    return this.#events.write(
      "response.output_text.delta",
      `${this.#contentPlace},"delta":${JSON.stringify(more)},"logprobs":${logprobs}`,
    );
  }

  /** More of the last refusal of a message. */
  refusal(content: write.Refusal, more: string): string {
    content.refusal += more;
    return this.#events.write("response.refusal.delta", `${this.#contentPlace},"delta":${JSON.stringify(more)}`);
  }

  /** A source of the last text of a message. */
  cite(content: write.OutputText, citation: Citation): string {
    const annotation = write.annotation(citation, this.#codePoints);
    if (annotation === undefined) return "";
    const index = content.annotations.push(annotation) - 1;
    return this.#events.write(
      "response.output_text.annotation.added",
      `${this.#contentPlace},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`,
    );
  }

  /** More reasoning. */
  reasoning(item: write.ReasoningItem, more: string): string {
    let out = "";
    let [summary] = item.summary;
    if (summary === undefined) {
      summary = { type: "summary_text", text: "" };
      item.summary.push(summary);
      out += this.#events.write(
        "response.reasoning_summary_part.added",
        `${this.#place},"summary_index":0,"part":${JSON.stringify(summary)}`,
      );
    }
    summary.text += more;
    const fields = `${this.#place},"summary_index":0,"delta":${JSON.stringify(more)}`;
    return out + this.#events.write("response.reasoning_summary_text.delta", fields);
  }

  /** More of a call's arguments, or of its input. */
  input(item: write.FunctionCallItem | write.CustomCallItem, more: string): string {
    const delta = `${this.#place},"delta":${JSON.stringify(more)}`;
    if (item.type === "function_call") {
      item.arguments += more;
      return this.#events.write("response.function_call_arguments.delta", delta);
    }
    item.input += more;
    return this.#events.write("response.custom_tool_call_input.delta", delta);
  }

  /** The end of the item; `json`: the item as JSON text. */
  end(status: write.Status): { readonly out: string; readonly json: string } {
    const before = this.#endParts();
    write.setStatus(this.item, status);
    const json = JSON.stringify(this.item);
    const done = this.#events.write("response.output_item.done", `,"output_index":${this.#index},"item":${json}`);
    return { out: before + done, json };
  }

  #endParts(): string {
    const { item } = this;
    switch (item.type) {
      case "message":
        return this.#endContent(item);
      case "reasoning": {
        const [summary] = item.summary;
        if (summary === undefined) return "";
        const place = `${this.#place},"summary_index":0`;
        return (
          this.#events.write(
            "response.reasoning_summary_text.done",
            `${place},"text":${JSON.stringify(summary.text)}`,
          ) + this.#events.write("response.reasoning_summary_part.done", `${place},"part":${JSON.stringify(summary)}`)
        );
      }
      case "function_call": {
        // Clients parse the arguments.
        const out = item.arguments === "" ? this.input(item, "{}") : "";
        const fields = `${this.#place},"arguments":${JSON.stringify(item.arguments)}`;
        return out + this.#events.write("response.function_call_arguments.done", fields);
      }
      case "custom_tool_call":
        return this.#events.write(
          "response.custom_tool_call_input.done",
          `${this.#place},"input":${JSON.stringify(item.input)}`,
        );
      case "image_generation_call":
      case "native":
        return "";
    }
  }

  #endContent({ content }: write.MessageItem): string {
    const last = content.at(-1);
    if (last === undefined) return "";
    const done =
      last.type === "output_text"
        ? this.#events.write(
            "response.output_text.done",
            `${this.#contentPlace},"text":${JSON.stringify(last.text)},"logprobs":${JSON.stringify(last.logprobs)}`,
          )
        : this.#events.write(
            "response.refusal.done",
            `${this.#contentPlace},"refusal":${JSON.stringify(last.refusal)}`,
          );
    return (
      done + this.#events.write("response.content_part.done", `${this.#contentPlace},"part":${JSON.stringify(last)}`)
    );
  }
}
