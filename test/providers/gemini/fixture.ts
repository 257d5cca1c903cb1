import { readFileSync } from "node:fs";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerStream } from "../../../src/providers/gemini/response.ts";
import { type SseEvent, SseParser } from "../../../src/providers/wire/sse.ts";

const FOLDER = new URL("../../fixtures/", import.meta.url);

/** The bytes of a scenario's file. */
export function bytesOf(scenario: string, file: string): Buffer {
  return readFileSync(new URL(`${scenario}/${file}`, FOLDER));
}

/** A scenario's JSON file. */
export function jsonOf(scenario: string, file: string): unknown {
  return JSON.parse(bytesOf(scenario, file).toString("utf8"));
}

/** How bytes are cut into pieces; the length of the last one is what is left. */
export type Split = (left: number) => number;

/** Reads a stream's bytes in pieces. The chunks up to a failure are in `chunks`; the failure is thrown. */
export function readStream(bytes: Uint8Array, split: Split, chunks: CompletionChunk[] = []): CompletionChunk[] {
  const parser = new SseParser();
  const reader = new AnswerStream();
  const readAll = (events: readonly SseEvent[]): void => {
    for (const event of events) if (!reader.complete) reader.read(event, chunks);
  };
  for (let at = 0; at < bytes.length;) {
    const size = Math.max(1, split(bytes.length - at));
    readAll(parser.push(bytes.subarray(at, at + size)));
    at += size;
  }
  readAll(parser.end());
  if (!reader.complete) reader.end(chunks);
  return chunks;
}

/** Kinds of parts that arrive whole from this provider. */
const WHOLE_KINDS: ReadonlySet<string | undefined> = new Set(["image", "toolCall"]);

/** What chunks say, in short: the kind of each delta, and of each part that arrives whole. */
export function outlineOf(chunks: readonly CompletionChunk[]): string[] {
  return chunks.flatMap(({ event }) => {
    if (event.case === "partStart") return [event.value.part?.kind.case ?? ""].filter((kind) => WHOLE_KINDS.has(kind));
    if (event.case === "partDelta") return [event.value.content.case ?? ""].filter((kind) => kind !== "argumentsJson");
    return event.case === "partFinish" ? [] : [event.case ?? ""];
  });
}
