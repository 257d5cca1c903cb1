import type { AttemptTrace, Trace, TraceEnding } from "../core/trace.ts";
import { newTraceId } from "../core/trace.ts";
import { type CompletionRecord, STOPPED } from "../core/ledger.ts";
import type { Model } from "../core/model.ts";
import { isRoute, type Route } from "../core/route.ts";
import { FAILURE_TABLE, GRPC_STATUS } from "../inbound/failure-table.ts";
import type { EndedSpan } from "../telemetry/trace-export.ts";

/**
 * Names of attributes. Those of OpenTelemetry are of its Semantic Conventions 1.45.0 (`http`, `rpc`, `error`), and of
 * its Semantic Conventions for Generative AI, status "Development", as read in November 2026 (`gen_ai`); the others are Parley's.
 * `docs/operations/tracing.md` shows this table.
 */
export const ATTRIBUTES = {
  method: "http.request.method",
  route: "http.route",
  httpStatus: "http.response.status_code",
  rpcSystem: "rpc.system.name",
  rpcMethod: "rpc.method",
  rpcStatus: "rpc.status_code",
  errorType: "error.type",
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  stream: "gen_ai.request.stream",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  firstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheRead: "gen_ai.usage.cache_read.input_tokens",
  cacheCreation: "gen_ai.usage.cache_creation.input_tokens",
  reasoning: "gen_ai.usage.reasoning.output_tokens",
  requestId: "parley.request.id",
  keyId: "parley.key.id",
  accountId: "parley.account.id",
  outcome: "parley.outcome",
  cost: "parley.cost_micro_usd",
  model: "parley.model",
  providerName: "parley.provider",
} as const;

/** Names of events. */
export const EVENTS = {
  /** Event of an attempt: a connection is there, and the first byte of the request was written. */
  connected: "parley.connected",
  /** Event of an attempt: the first content of a stream. */
  firstContent: "parley.first_content",
  /** Event of the inbound call: a model that was passed over. */
  skipped: "parley.skipped",
} as const;

/** Values of `gen_ai.provider.name`, which says whose API is spoken, for dialects; others have their own name. */
const PROVIDERS: ReadonlyMap<string, string> = new Map([
  ["bedrock-converse", "aws.bedrock"],
  ["gemini", "gcp.gemini"],
  ["openai-responses", "openai"],
]);

const GRPC_NAMES: ReadonlyMap<number, string> = new Map(GRPC_STATUS.map(([name, code]) => [code, name]));

/** A traced call that has ended. */
export interface EndedCall {
  readonly trace: Trace;
  readonly record: CompletionRecord;
  readonly ending: TraceEnding;
  /** The caller's span; undefined where the trace begins here. */
  readonly parentSpanId: string | undefined;
  readonly arrivedMs: number;
  readonly target: string;
}

interface SpanPorts {
  /** The model or route with this name; undefined when the configuration has none. */
  readonly find: (name: string) => Model | Route | undefined;
  /** Unix milliseconds at zero of the clock's `monotonic`. */
  readonly originMs: number;
}

/** Whether a call failed by the fault of Parley or a provider. */
export function hasFailed({ outcome }: Pick<CompletionRecord, "outcome">): boolean {
  return outcome !== "served" && FAILURE_TABLE[outcome].http >= 500;
}

/** The spans of a call: itself first, then what happened in it. They hold no text of a request, an answer or an error. */
export function toSpans(call: EndedCall, ports: SpanPorts): EndedSpan[] {
  const { trace, record, ending, arrivedMs } = call;
  const { context, enteredMs, plannedMs, reservedMs } = trace;
  const doneMs = arrivedMs + record.durationMs;
  const [ledgerBeganMs, ledgerEndedMs] = ending.ledgerMs;
  const spanOf = (
    name: string,
    [startMs, endMs]: readonly [number, number],
    facts: Partial<EndedSpan> = {},
  ): EndedSpan => ({
    name,
    kind: "internal",
    traceId: context.traceId,
    spanId: newTraceId(8),
    parentSpanId: context.spanId,
    state: context.state,
    startMs: ports.originMs + startMs,
    endMs: ports.originMs + endMs,
    attributes: {},
    events: [],
    isError: false,
    ...facts,
  });
  const spans = [
    // The answer waits for the ledger, unless the call ended before its tokens were counted.
    spanOf(nameOf(call), [arrivedMs, ending.isSettled ? doneMs : Math.max(doneMs, ledgerEndedMs)], {
      kind: "server",
      spanId: context.spanId,
      parentSpanId: call.parentSpanId,
      attributes: attributesOf(call, ports),
      events: skippedOf(call, ports),
      isError: hasFailed(record),
    }),
  ];
  if (enteredMs !== undefined) spans.push(spanOf("admission", [arrivedMs, enteredMs]));
  if (plannedMs !== undefined) spans.push(spanOf("reservation", [plannedMs, reservedMs ?? doneMs]));
  record.attempts.forEach(({ startMs, durationMs, ...attempt }, place) => {
    const traced = trace.attempts[place];
    if (traced === undefined) return;
    const beganMs = arrivedMs + startMs;
    const found = ports.find(attempt.model);
    const model = found === undefined || isRoute(found) ? undefined : found;
    const failed = attempt.outcome !== "served" && !STOPPED.has(attempt.outcome);
    spans.push(
      spanOf(`${operationOf(trace)} ${model?.upstream.name ?? attempt.model}`, [beganMs, beganMs + durationMs], {
        kind: "client",
        spanId: traced.context.spanId,
        attributes: {
          [ATTRIBUTES.operation]: operationOf(trace),
          [ATTRIBUTES.provider]: model && (PROVIDERS.get(model.dialect) ?? model.dialect),
          [ATTRIBUTES.requestModel]: model?.upstream.name,
          [ATTRIBUTES.stream]: record.streamed,
          [ATTRIBUTES.providerName]: model?.providerName,
          [ATTRIBUTES.model]: attempt.model,
          [ATTRIBUTES.outcome]: attempt.outcome,
          [ATTRIBUTES.httpStatus]: attempt.upstreamStatus,
          [ATTRIBUTES.errorType]: failed ? attempt.outcome : undefined,
          [ATTRIBUTES.firstChunk]: traced.firstContentMs && Math.max(traced.firstContentMs - beganMs, 0) / 1000,
          // A count is that of the last attempt.
          ...(place === record.attempts.length - 1 && usageOf(record)),
        },
        events: eventsOf(traced, ports),
        isError: failed,
      }),
    );
  });
  if (record.entry !== undefined) spans.push(spanOf("ledger", [ledgerBeganMs, ledgerEndedMs]));
  return spans;
}

function operationOf({ isEmbedding }: Trace): string {
  return isEmbedding ? "embeddings" : "chat";
}

function nameOf({ record, target }: EndedCall): string {
  return record.entrance === "http" ? `POST ${target}` : target;
}

function attributesOf({ trace, record, target }: EndedCall, { find }: SpanPorts): EndedSpan["attributes"] {
  const { entrance, outcome, principal, requestedModel, entry } = record;
  return {
    ...(entrance === "http"
      ? {
          [ATTRIBUTES.method]: "POST",
          [ATTRIBUTES.route]: target,
          [ATTRIBUTES.httpStatus]: httpStatusOf(record),
        }
      : {
          [ATTRIBUTES.rpcSystem]: entrance === "grpc" ? "grpc" : "connectrpc",
          [ATTRIBUTES.rpcMethod]: target,
          [ATTRIBUTES.rpcStatus]: outcome === "served" ? "OK" : GRPC_NAMES.get(FAILURE_TABLE[outcome].grpc),
        }),
    [ATTRIBUTES.errorType]: hasFailed(record) ? outcome : undefined,
    [ATTRIBUTES.operation]: operationOf(trace),
    // Only names of the configuration: callers can send any text.
    [ATTRIBUTES.requestModel]: find(requestedModel) && requestedModel,
    [ATTRIBUTES.stream]: record.streamed,
    [ATTRIBUTES.responseId]: record.completionId,
    [ATTRIBUTES.responseModel]: record.servedModel,
    [ATTRIBUTES.requestId]: record.requestId,
    [ATTRIBUTES.keyId]: principal.keyId,
    [ATTRIBUTES.accountId]: principal.accountId,
    [ATTRIBUTES.outcome]: outcome,
    [ATTRIBUTES.cost]: entry?.costMicroUsd ?? record.costMicroUsd,
  };
}

/** A stream that failed had sent its status with its first content. */
function httpStatusOf({ outcome, firstContentMs }: CompletionRecord): number {
  return outcome === "served" || firstContentMs !== undefined ? 200 : FAILURE_TABLE[outcome].http;
}

function usageOf({ usage }: CompletionRecord): EndedSpan["attributes"] {
  if (usage === undefined) return {};
  return {
    [ATTRIBUTES.inputTokens]: usage.inputTokens,
    [ATTRIBUTES.outputTokens]: usage.outputTokens,
    [ATTRIBUTES.cacheRead]: usage.cachedInputTokens,
    [ATTRIBUTES.cacheCreation]: usage.cacheWriteInputTokens,
    [ATTRIBUTES.reasoning]: usage.reasoningOutputTokens,
  };
}

function eventsOf({ sentMs, firstContentMs }: AttemptTrace, { originMs }: SpanPorts): EndedSpan["events"] {
  const times = [
    [EVENTS.connected, sentMs],
    [EVENTS.firstContent, firstContentMs],
  ] as const;
  return times.flatMap(([name, atMs]) => (atMs === undefined ? [] : [{ name, atMs: originMs + atMs }]));
}

function skippedOf({ record, arrivedMs }: EndedCall, { originMs }: SpanPorts): EndedSpan["events"] {
  return record.attempts.flatMap(({ model, outcome, startMs }) => {
    if (outcome !== "skipped") return [];
    return [{ name: EVENTS.skipped, atMs: originMs + arrivedMs + startMs, attributes: { [ATTRIBUTES.model]: model } }];
  });
}
