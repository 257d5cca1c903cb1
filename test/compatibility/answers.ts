import { create } from "@bufbuild/protobuf";
import { CompletionChunkSchema, CompletionSchema, CompletionStartSchema } from "../../gen/parley/v1/completion_pb.js";
import { ReportSchema } from "../../gen/parley/v1/report_pb.js";
import type { Dialect } from "../../src/config/dialects.ts";
import { toChatCompletion } from "../../src/formats/openai-chat/response.ts";
import { ChunkWriter } from "../../src/formats/openai-chat/stream.ts";
import { TRANSLATORS } from "./dialects.ts";

const report = create(ReportSchema, {
  attempts: [{ model: "m", outcome: "served", upstreamStatus: 200, reason: "-", durationMs: 1 }],
  omitted: ["seed"],
  clamped: [{ field: "temperature", requested: 1.4, sent: 1 }],
  costMicroUsd: 1n,
});
const head = { id: "chatcmpl-1", created: 1n, model: "m" };

/** A provider's answer as the client reads it. */
export function asCompletion(dialect: Dialect, json: object): unknown {
  const { choices, usage } = TRANSLATORS[dialect].read(json);
  return toJson(toChatCompletion(create(CompletionSchema, { ...head, choices, report, ...(usage && { usage }) })));
}

/** The same as the events of a stream. */
export function asEvents(dialect: Dialect, json: object): unknown[] {
  const chunks = [
    create(CompletionChunkSchema, { event: { case: "start", value: create(CompletionStartSchema, head) } }),
    ...TRANSLATORS[dialect].readChunks(json),
    create(CompletionChunkSchema, { event: { case: "report", value: report } }),
  ];
  const events = new ChunkWriter({ includeUsage: true }).write(chunks).split("\n\n");
  return events.filter((event) => event.startsWith("data: {")).map((event): unknown => JSON.parse(event.slice(6)));
}

/** Every path of a JSON document at which there is something, `null` excepted. Indexes are left open. */
export function pathsOf(value: unknown, path = ""): Set<string> {
  const found = new Set<string>();
  if (value === null || value === undefined) return found;
  if (path !== "") found.add(path);
  if (Array.isArray(value)) for (const each of value) for (const inner of pathsOf(each, `${path}[]`)) found.add(inner);
  else if (typeof value === "object") {
    for (const [key, each] of Object.entries(value)) {
      for (const inner of pathsOf(each, path === "" ? key : `${path}.${key}`)) found.add(inner);
    }
  }
  return found;
}

function toJson(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
