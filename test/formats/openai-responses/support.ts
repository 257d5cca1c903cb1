import { create } from "@bufbuild/protobuf";
import {
  type Completion,
  CompletionSchema,
  type CompletionChunk,
  type PartDelta,
} from "../../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../../src/core/answer-builder.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../../src/formats/openai-responses/response.ts";
import { EventStream } from "../../../src/formats/openai-responses/stream.ts";
import { anyStream as anyChatStream } from "../openai-chat/any-stream.ts";

export type Json = Readonly<Record<string, unknown>>;

/** A request that asks for state of the provider. */
export const ASKED = { model: "a", input: "Hi", include: ["reasoning.encrypted_content"] };

/** A stream with one choice, as the format can ask for, whose calls have IDs, and whose texts have the probabilities. */
export const anyStream = anyChatStream.map(({ chunks }) =>
  chunks.filter(({ event }) => {
    if (event.case === "partStart" && event.value.part?.kind.case === "toolCall")
      event.value.part.kind.value.id = `call_${event.value.partIndex}`;
    if (event.case === "partDelta" && event.value.content.case !== "text") event.value.logprobs = [];
    return event.value === undefined || !("choiceIndex" in event.value && (event.value as PartDelta).choiceIndex > 0);
  }),
);

/** Items without what a stream knows only later: where a citation of the whole text ends. */
export function settled(output: unknown): unknown {
  return JSON.parse(JSON.stringify(output), (key, value: unknown) => (key === "end_index" ? undefined : value));
}

/** The text of a stream, with chunks in batches of these sizes. */
export function streamOf(
  chunks: readonly CompletionChunk[],
  asked: object = ASKED,
  sizes: readonly number[] = [1],
): string {
  const writer = new EventStream(readResponsesRequest(asked), "req_1");
  let out = "";
  for (let at = 0, turn = 0; at < chunks.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    out += writer.write(chunks.slice(at, at + size));
    at += size;
  }
  return out;
}

/** The events of a stream. Throws for what is none, and for a gap in their numbers. */
export function eventsOf(stream: string): Json[] {
  return stream
    .split("\n\n")
    .slice(0, -1)
    .map((block, at) => {
      const [, type, data] = /^event: (\S+)\ndata: ([^\r\n]+)$/.exec(block) ?? [];
      const event = JSON.parse(data ?? "null") as Json;
      if (event["type"] !== type || event["sequence_number"] !== at) throw new Error(`not event ${at}: ${block}`);
      return event;
    });
}

/** The whole answer that chunks make. */
export function completionOf(chunks: readonly CompletionChunk[]): Completion {
  const builder = new AnswerBuilder();
  for (const chunk of chunks) builder.add(chunk);
  const { choices, usage } = builder.build();
  return create(CompletionSchema, {
    id: "chatcmpl-FIXTURE",
    model: "a",
    choices,
    ...(usage && { usage }),
  });
}

/** The response object of a whole answer. */
export function wholeOf(completion: Completion, asked: object = ASKED): Json {
  const text = writeResponse(completion, readResponsesRequest(asked));
  return JSON.parse(typeof text === "string" ? text : Buffer.concat(text).toString()) as Json;
}
