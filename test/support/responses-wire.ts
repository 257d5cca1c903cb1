import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, CompletionChunkSchema, CompletionSchema } from "../../gen/parley/v1/completion_pb.js";
import { ReportSchema } from "../../gen/parley/v1/report_pb.js";
import type { Answer as ReadAnswer } from "../../src/core/provider.ts";
import { parseExactly } from "../../src/encoding/exact-json.ts";
import { readResponsesRequest } from "../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../src/formats/openai-responses/response.ts";
import { EventStream } from "../../src/formats/openai-responses/stream.ts";
import { AnswerStream, toAnswer } from "../../src/providers/anthropic/response.ts";
import { SseParser } from "../../src/providers/wire/sse.ts";
import type { Answer } from "../../src/simulator/answer.ts";
import { encodeEvents, encodeMessage } from "../../src/simulator/anthropic/dialect.ts";

/*
 * Answers of the simulator in the wire format of OpenAI's Responses API. The simulator writes an answer in Anthropic's
 * dialect, and `formats/openai-responses` converts it.
 */

const ASKED = readResponsesRequest({ model: "m", input: "Hi", include: ["reasoning.encrypted_content"] });
const HEAD = { id: "chatcmpl-1", model: "m", createTime: { seconds: 1n } };

/** Returns an answer as the JSON text of a whole response. */
function writeWholeResponse({ choices, usage }: ReadAnswer): string {
  const completion = create(CompletionSchema, { ...HEAD, choices, ...(usage !== undefined && { usage }) });
  const json = writeResponse(completion, ASKED);
  return typeof json === "string" ? json : Buffer.concat(json).toString();
}

/** Returns the events of a streamed response, one text per chunk. */
function writeResponseEvents(chunks: readonly CompletionChunk[]): string[] {
  const start = create(CompletionChunkSchema, { event: { case: "start", value: HEAD } });
  const end = create(CompletionChunkSchema, { event: { case: "report", value: create(ReportSchema) } });
  const writer = new EventStream(ASKED, "request");
  return [start, ...chunks, end].map((chunk) => writer.write([chunk])).filter((text) => text !== "");
}

/** Returns an answer of the simulator as a whole response, parsed. */
export function encodeWholeResponse(answer: Answer): unknown {
  return parseExactly(writeWholeResponse(toAnswer(parseExactly(encodeMessage(answer)))));
}

/** Returns an answer of the simulator as the events of a streamed response. */
export function encodeResponseEvents(answer: Answer): { readonly text: string; readonly kind: "content" }[] {
  const reader = new AnswerStream();
  const chunks: CompletionChunk[] = [];
  const bytes = Buffer.from([...encodeEvents(answer)].map((event) => event.text).join(""));
  for (const event of new SseParser().push(bytes)) if (!reader.complete) reader.read(event, chunks);
  return writeResponseEvents(chunks).map((text) => ({ text, kind: "content" }));
}
