import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { AnswerBuilder } from "../../../src/core/answer-builder.ts";
import { toMessage } from "../../../src/formats/anthropic/response.ts";
import { MessageWriter, type StreamForm } from "../../../src/formats/anthropic/stream.ts";

export type Json = Record<string, unknown>;

export const FORM: StreamForm = {
  nameOf: (path) => path,
  hidesThinking: false,
  inputTokens: 25,
  requestId: "req_1",
};

export const START = create(CompletionChunkSchema, {
  event: { case: "start", value: { id: "chatcmpl-1", createTime: { seconds: 1n }, model: "m" } },
});
export const REPORT = create(CompletionChunkSchema, { event: { case: "report", value: {} } });

/** The stream of these chunks as text. */
export function streamOf(chunks: readonly CompletionChunk[], form: Partial<StreamForm> = {}): string {
  return new MessageWriter({ ...FORM, ...form }).write([START, ...chunks, REPORT]);
}

/** The same chunks as a whole answer. */
export function wholeOf(chunks: readonly CompletionChunk[], form: Partial<StreamForm> = {}): Json {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  const { choices, usage } = builder.build();
  const completion = {
    $typeName: "parley.v1.Completion",
    id: "chatcmpl-1",
    model: "m",
    choices,
    ...(usage !== undefined && { usage }),
  } as const;
  return toMessage(completion, { ...FORM, ...form }) as Json;
}

/** The parts of these chunks. */
export function partsOf(chunks: readonly CompletionChunk[]): Part[] {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  return builder.build().choices.flatMap(({ message }) => message?.parts ?? []);
}

/** The data of each event. Throws when an event has another name than its data, or no name. */
export function eventsOf(stream: string): Json[] {
  if (stream === "") return [];
  if (!stream.endsWith("\n\n")) throw new Error("the stream ends in the middle of an event");
  return stream
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const [, name, data = ""] = /^event: (\w+)\ndata: ([^\r\n]+)$/.exec(block) ?? [];
      const event = JSON.parse(data) as Json;
      if (event["type"] !== name) throw new Error(`not an event of its name: ${block}`);
      return event;
    });
}

/** Puts a stream together as the official client does. Throws when blocks are not one after the other. */
export function messageOf(stream: string): Json {
  const [start, ...events] = eventsOf(stream);
  const message = (start as { message: Json }).message;
  const content = message["content"] as Json[];
  let open: number | undefined;
  for (const event of events) {
    const index = event["index"] as number;
    switch (event["type"]) {
      case "content_block_start":
        if (open !== undefined || index !== content.length) throw new Error(`block ${index} begins out of order`);
        open = index;
        content.push({ ...(event["content_block"] as Json) });
        break;
      case "content_block_delta":
        if (open !== index) throw new Error(`block ${index} is not open`);
        addDelta(content[index]!, event["delta"] as Json);
        break;
      case "content_block_stop":
        if (open !== index) throw new Error(`block ${index} is not open`);
        open = undefined;
        if ("json" in content[index]!) content[index]["input"] = JSON.parse(String(content[index]["json"]));
        delete content[index]!["json"];
        break;
      case "message_delta":
        if (open !== undefined) throw new Error("the message ends in a block");
        Object.assign(message, event["delta"], { usage: event["usage"] });
    }
  }
  return message;
}

const PLACES: Readonly<Record<string, readonly [type: string, field: string]>> = {
  text_delta: ["text", "text"],
  thinking_delta: ["thinking", "thinking"],
};

function addDelta(block: Json, delta: Json): void {
  const [type, field] = PLACES[delta["type"] as string] ?? [];
  if (field !== undefined) {
    if (block["type"] !== type) throw new Error(`a ${String(delta["type"])} in a block of ${String(block["type"])}`);
    block[field] = `${String(block[field])}${String(delta[field])}`;
  } else if (delta["type"] === "input_json_delta")
    block["json"] = `${"json" in block ? String(block["json"]) : ""}${String(delta["partial_json"])}`;
  else if (delta["type"] === "signature_delta") block["signature"] = delta["signature"];
  else if (delta["type"] === "citations_delta")
    block["citations"] = [...((block["citations"] as Json[] | undefined) ?? []), delta["citation"]];
}
