import { existsSync, readdirSync, readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Answer } from "../../../src/core/provider.ts";
import { AnswerStream, toAnswer as readAnthropic } from "../../../src/providers/anthropic/response.ts";
import { AnswerStream as GeminiStream, toAnswer as readGemini } from "../../../src/providers/gemini/response.ts";
import {
  AnswerStream as OpenAiStreamReader,
  toAnswer as readOpenAiCompletion,
} from "../../../src/providers/openai/response.ts";
import type { StreamReader } from "../../../src/providers/wire/response.ts";
import { SseParser } from "../../../src/providers/wire/sse.ts";

/*
 * The wire scenarios of `test/fixtures`: what a provider answered, read by its adapter, beside what an OpenAI client
 * must get.
 */

const ROOT = new URL("../../fixtures/", import.meta.url);

/** A scenario: the folder's name and its files. */
export interface Scenario {
  readonly name: string;
  text(file: string): string;
  json(file: string): Record<string, unknown>;
}

/** The scenarios that have both of these files. */
export function scenariosWith(upstream: string, expected: string): Scenario[] {
  return readdirSync(ROOT)
    .filter((name) => [upstream, expected].every((file) => existsSync(new URL(`${name}/${file}`, ROOT))))
    .map((name) => {
      const text = (file: string): string => readFileSync(new URL(`${name}/${file}`, ROOT), "utf8");
      return { name, text, json: (file) => JSON.parse(text(file)) };
    });
}

const READERS: Readonly<Record<string, { whole: (json: unknown) => Answer; stream: () => StreamReader }>> = {
  anthropic: { whole: readAnthropic, stream: () => new AnswerStream() },
  gemini: { whole: readGemini, stream: () => new GeminiStream() },
  "openai-compatible": { whole: readOpenAiCompletion, stream: () => new OpenAiStreamReader() },
};

/** The whole answer that the scenario's provider gave. */
export function answerOf(scenario: Scenario): Answer {
  return READERS[scenario.json("meta.json")["provider"] as string]!.whole(scenario.json("upstream-response.json"));
}

/** What the scenario's provider streamed, and how it broke, if it did. */
export function chunksOf(scenario: Scenario): { chunks: CompletionChunk[]; failure: Failure | undefined } {
  const reader = READERS[scenario.json("meta.json")["provider"] as string]!.stream();
  const parser = new SseParser();
  const chunks: CompletionChunk[] = [];
  try {
    const events = [...parser.push(Buffer.from(scenario.text("upstream-response.sse"))), ...parser.end()];
    for (const event of events) if (!reader.complete) reader.read(event, chunks);
    if (!reader.complete) reader.end(chunks);
    return { chunks, failure: undefined };
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    return { chunks, failure: reason };
  }
}

/** The router's first chunk before what a provider says. */
export function startOf(model: string): CompletionChunk {
  return create(CompletionChunkSchema, {
    event: { case: "start", value: { id: "chatcmpl-FIXTURE", createTime: { seconds: 1_780_000_000n }, model } },
  });
}

/** The router's last chunk. */
export const REPORT = create(CompletionChunkSchema, { event: { case: "report", value: {} } });

/** The JSON of each event of a stream in the OpenAI format; `[DONE]` as it is. Throws at anything but data lines. */
export function readEvents(stream: string): unknown[] {
  if (stream === "") return [];
  if (!stream.endsWith("\n\n")) throw new Error("the stream ends in the middle of an event");
  return stream
    .slice(0, -2)
    .split("\n\n")
    .map((event) => {
      // By the standard, nothing but CR and LF ends a line.
      const data = /^data: ([^\r\n]+)$/.exec(event)?.[1];
      if (data === undefined) throw new Error(`not an event: ${JSON.stringify(event)}`);
      return data === "[DONE]" ? data : JSON.parse(data);
    });
}

/** The same without `parley` and `image_tokens`, which the scenarios leave out, and with the IDs that we mint made equal. */
export function comparable(value: unknown): unknown {
  let minted = 0;
  const ids = new Map<string, string>();
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) => {
    if (key === "parley" || key === "image_tokens") return undefined;
    if (key !== "id" || typeof inner !== "string" || !inner.startsWith("call_")) return inner;
    if (!ids.has(inner)) ids.set(inner, `minted ${minted++}`);
    return ids.get(inner);
  });
}
