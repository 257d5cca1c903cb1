import { fromBinary, toJson } from "@bufbuild/protobuf";
import { anyUnpack, durationMs, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status as Status } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { type Completion, type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Embeddings } from "../../../gen/parley/v1/embedding_pb.js";
import type { Image } from "../../../gen/parley/v1/message_pb.js";
import { type Attempt, AttemptListSchema, type Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { ImageJoiner } from "../../../src/inbound/image-pieces.ts";
import { textOfVector } from "../../support/upstream-embeddings.ts";
import { callInShort, inShort, type Reply, type SeenFailure, type SeenReport } from "./reply.ts";
import { fromAttemptMessage } from "../../../src/core/attempt.ts";

/** Fields from the messages of a reply; the others are from the call. */
export type Said = Omit<Reply, "facts" | "complete">;

/** Reads a whole completion. */
export function readCompletion({ model, choices, usage, report }: Completion): Said {
  const parts = choices.flatMap((choice) => choice.message?.parts ?? []);
  return {
    model,
    text: parts.map(({ kind }) => (kind.case === "text" ? kind.value : "")).join(""),
    calls: parts.flatMap(({ kind }) =>
      kind.case === "toolCall" ? callInShort(kind.value.name, kind.value.input.value ?? "") : [],
    ),
    pictures: parts.flatMap(({ kind }) => (kind.case === "image" ? toBase64(kind.value) : [])),
    finishReasons: choices.map((choice) => toWord(choice.finishReason)),
    usage: usage && readUsage(usage),
    report: report && readReport(report),
    failure: undefined,
  };
}

/** Reads vectors. */
export function readEmbeddings({ model, embeddings, usage, report }: Embeddings): Said {
  return {
    model,
    text: embeddings.map(({ values }) => textOfVector(values)).join(""),
    calls: [],
    pictures: [],
    finishReasons: [],
    usage: usage && readUsage(usage),
    report: report && readReport(report),
    failure: undefined,
  };
}

/** Reads the chunks of a stream, complete or not. */
export function readChunks(chunks: readonly CompletionChunk[]): Said {
  const events = chunks.map(({ event }) => event);
  const deltas = events.flatMap((event) => (event.case === "partDelta" ? event.value.content : []));
  const begun = new ImageJoiner()
    .join(chunks)
    .flatMap(({ event }) => (event.case === "partStart" ? (event.value.part?.kind ?? []) : []));
  const start = events.find((event) => event.case === "start");
  const usage = events.find((event) => event.case === "usage");
  const report = events.find((event) => event.case === "report");
  const ended = events.some((event) => event.case === "choiceFinish");
  return {
    model: start?.value.model,
    text: deltas.map((content) => (content.case === "text" ? content.value : "")).join(""),
    calls: ended ? callsOf(events) : [],
    pictures: begun.flatMap((kind) => (kind.case === "image" ? toBase64(kind.value) : [])),
    finishReasons: events.flatMap((event) => (event.case === "choiceFinish" ? toWord(event.value.finishReason) : [])),
    usage: usage && readUsage(usage.value),
    report: report && readReport(report.value),
    failure: undefined,
  };
}

type ChunkEvent = CompletionChunk["event"];

/** The calls of a stream, put together from their pieces. */
function callsOf(events: readonly ChunkEvent[]): string[] {
  return events.flatMap((event) => {
    const kind = event.case === "partStart" ? event.value.part?.kind : undefined;
    if (event.case !== "partStart" || kind?.case !== "toolCall") return [];
    const { partIndex } = event.value;
    const args = events.map((more) =>
      more.case === "partDelta" && more.value.partIndex === partIndex ? argsOf(more) : "",
    );
    return callInShort(kind.value.name, args.join(""));
  });
}

function argsOf({ value: { content } }: Extract<ChunkEvent, { case: "partDelta" }>): string {
  return content.case === "argumentsJson" ? content.value : "";
}

/** Reads the final status with its details. A status from the library has none. */
export function readError({ code, details: message, metadata }: ServiceError): SeenFailure {
  const [packed] = metadata.get("grpc-status-details-bin");
  const details = packed === undefined ? [] : fromBinary(StatusSchema, packed as Buffer).details;
  const find = <T>(unpack: (detail: (typeof details)[number]) => T | undefined): T | undefined =>
    details.map(unpack).find((detail) => detail !== undefined);
  const info = find((detail) => anyUnpack(detail, ErrorInfoSchema));
  const fields = find((detail) => anyUnpack(detail, BadRequestSchema))?.fieldViolations;
  const delay = find((detail) => anyUnpack(detail, RetryInfoSchema))?.retryDelay;
  const list = find((detail) => anyUnpack(detail, AttemptListSchema));
  const pushbackMs = metadata.get("grpc-retry-pushback-ms")[0];
  return {
    status: `${Status[code]} ${info?.reason ?? "without details"}`,
    code: info?.metadata["error_code"] ?? null,
    message,
    param: fields?.[0]?.field ?? null,
    attempts: (list?.attempts ?? []).map(readAttempt),
    retryAfterS: delay && durationMs(delay) / 1000,
    final: pushbackMs === "-1",
    ...(pushbackMs !== undefined && { pushbackMs: Number(pushbackMs) }),
  };
}

function readReport({ attempts, omitted, clamped }: Report): SeenReport {
  return {
    attempts: attempts.map(readAttempt),
    omitted: omitted.map(({ field }) => field),
    clamped: clamped.map(({ field, requested, sent }) => `${field} ${shown(requested)}>${shown(sent)}`),
  };
}

const EFFORT = /^REASONING_EFFORT_(?=[A-Z]+$)/;

/** A value as its JSON; an effort as the word that formats have for its name in the contract. */
function shown(value: Value | undefined): string {
  const json = value && toJson(ValueSchema, value);
  return typeof json === "string" && EFFORT.test(json) ? json.replace(EFFORT, "").toLowerCase() : JSON.stringify(json);
}

/** Reads an attempt of the contract. */
export function readAttempt(of: Attempt): string {
  const { model, outcome, upstreamStatus: status } = fromAttemptMessage(of);
  return inShort({ model, outcome, status });
}

const readUsage = ({ inputTokens, outputTokens }: Usage): string => `${inputTokens}+${outputTokens}`;

const toWord = (reason: FinishReason): string => FinishReason[reason].toLowerCase();

const toBase64 = ({ source }: Image): string =>
  source.case === "data" ? Buffer.from(source.value).toString("base64") : "";
