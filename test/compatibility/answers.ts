import { create } from "@bufbuild/protobuf";
import { TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { CompletionChunkSchema, CompletionSchema, CompletionStartSchema } from "../../gen/parley/v1/completion_pb.js";
import { ClampSchema, OmissionSchema, ReportSchema } from "../../gen/parley/v1/report_pb.js";
import type { Dialect } from "../../src/config/dialects.ts";
import type { NameOf } from "../../src/formats/format.ts";
import { toChatCompletion } from "../../src/formats/openai-chat/response.ts";
import { toAttemptMessage } from "../../src/core/attempt.ts";
import { ChunkWriter } from "../../src/formats/openai-chat/stream.ts";
import { TRANSLATORS } from "./dialects.ts";
import { attemptOf } from "../support/attempt.ts";

const number = (value: number) => create(ValueSchema, { kind: { case: "numberValue", value } });
const report = create(ReportSchema, {
  targets: ["one", "another"],
  attempts: [toAttemptMessage(attemptOf({ upstreamStatus: 200, reason: "-", durationMs: 1 }))],
  omitted: [create(OmissionSchema, { field: "seed" })],
  clamped: [create(ClampSchema, { field: "temperature", requested: number(1.4), sent: number(1) })],
  costMicroUsd: 1n,
});
const head = { id: "chatcmpl-1", createTime: create(TimestampSchema, { seconds: 1n }), model: "m" };
const nameOf: NameOf = (path) => path;

/** A provider's answer as the client reads it. */
export function asCompletion(dialect: Dialect, json: object): unknown {
  const { choices, usage } = TRANSLATORS[dialect].read(json);
  return toJson(
    toChatCompletion(create(CompletionSchema, { ...head, choices, report, ...(usage && { usage }) }), nameOf),
  );
}

/** The same as the events of a stream. */
export function asEvents(dialect: Dialect, json: object): unknown[] {
  const chunks = [
    create(CompletionChunkSchema, { event: { case: "start", value: create(CompletionStartSchema, head) } }),
    ...TRANSLATORS[dialect].readChunks(json),
    create(CompletionChunkSchema, { event: { case: "report", value: report } }),
  ];
  const events = new ChunkWriter({ includeUsage: true, nameOf }).write(chunks).split("\n\n");
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
