import type { Choice, CompletionChunk, PartDelta } from "../../gen/parley/v1/completion_pb.js";
import type { Citation } from "../../gen/parley/v1/message_pb.js";
import { readObject } from "./native.ts";

/** Limits of the number of listed names, which come from the provider, and of their length. */
const MAX_NAMES = 64;
const MAX_NAME_CHARS = 64;

/** Names the content of an answer that only other dialects can express, for `parley.left_out`. */
export class LeftOut {
  readonly #dialect: string;
  readonly #names = new Set<string>();
  /** Native blocks that have not ended: their dialect and JSON, by their place. */
  readonly #open = new Map<string, { readonly dialect: string; json: string }>();

  /** `dialect`: the format's own. */
  constructor(dialect: string) {
    this.#dialect = dialect;
  }

  /** Names such as `anthropic.server_tool_use` for a block, and `gemini.safety_ratings` for a detail of the answer. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  addWhole(choices: readonly Choice[]): this {
    for (const { message, providerDetailsJson } of choices) {
      for (const part of message?.parts ?? []) {
        if (part.kind.case === "native") this.#addBlock(part.kind.value);
        this.#addDetails(part.providerDetailsJson);
        this.#addCitations(part.citations);
      }
      this.#addDetails(providerDetailsJson);
    }
    return this;
  }

  addChunk({ event }: CompletionChunk): void {
    if (event.case === "choiceFinish") return this.#addDetails(event.value.providerDetailsJson);
    if (event.case === "nativeEvent") return this.#addBlock(event.value);
    if (event.case !== "partStart" && event.case !== "partDelta" && event.case !== "partFinish") return;
    if (event.case === "partDelta" && event.value.content.case !== "nativeJson") return this.#addDelta(event.value);
    const place = `${event.value.choiceIndex} ${event.value.partIndex}`;
    if (event.case === "partStart") {
      const { kind, providerDetailsJson = {} } = event.value.part ?? {};
      this.#addDetails(providerDetailsJson);
      if (kind?.case === "native" && kind.value.dialect !== this.#dialect) this.#open.set(place, { ...kind.value });
      return;
    }
    if (event.case === "partFinish") this.#addDetails(event.value.providerDetailsJson);
    const block = this.#open.get(place);
    if (block === undefined) return;
    if (event.case === "partDelta") block.json += event.value.content.value as string;
    else {
      this.#open.delete(place);
      this.#addBlock(block);
    }
  }

  #addDelta({ content }: PartDelta): void {
    if (content.case === "nativeEvent") this.#addBlock(content.value);
    else if (content.case === "citation") this.#addCitations([content.value]);
  }

  #addCitations(citations: readonly Citation[]): void {
    for (const { source } of citations) if (source.case === "native") this.#addBlock(source.value);
  }

  #addBlock({ dialect, json }: { readonly dialect: string; readonly json: string }): void {
    if (dialect === this.#dialect || this.#names.size >= MAX_NAMES) return;
    const block = readObject(json) ?? {};
    const type = typeof block["type"] === "string" ? block["type"] : (Object.keys(block)[0] ?? "");
    this.#add(`${dialect}.${type}`);
  }

  #addDetails(details: Readonly<Record<string, string>>): void {
    for (const name in details) if (!name.startsWith(`${this.#dialect}.`)) this.#add(name);
  }

  #add(name: string): void {
    if (this.#names.size < MAX_NAMES) this.#names.add(name.slice(0, MAX_NAME_CHARS).toWellFormed());
  }
}
