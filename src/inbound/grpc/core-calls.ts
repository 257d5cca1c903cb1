import { setImmediate } from "node:timers/promises";
import {
  createRegistry,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type CallOptions,
  type Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  connectivityState,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status as Status,
} from "@grpc/grpc-js";
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type RetryInfo,
  RetryInfoSchema,
} from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import { type AttemptList, AttemptListSchema } from "../../../gen/parley/v1/report_pb.js";
import { fromAttemptMessage } from "../../core/attempt.ts";
import type { Attribution } from "../../core/attribution.ts";
import type { Clock } from "../../core/clock.ts";
import { causeOf } from "../../core/error-reason.ts";
import { Failure, type FailureDetail } from "../../core/failure.ts";
import { HOPS_HEADER } from "../../core/hops.ts";
import { type TraceContext, traceHeaders } from "../../core/trace.ts";
import type { LimitFacts } from "../../core/limiter.ts";
import { attributionHeaders } from "../attribution.ts";
import { readLimitHeaders } from "../headers.ts";
import { UNRECOGNIZED_HEADER, writeUnrecognized } from "../unknown-fields.ts";
import type { ChannelUse, CoreChannels, Lease } from "./core-channels.ts";
import { serviceDefinition } from "./definition.ts";

/** Facts that a call sends, and callbacks for what it learns. */
export interface CallFacts {
  /** The header by which the core authenticates the caller, too. */
  readonly authorization: string;
  readonly requestId?: string;
  /** Cancels the call, which then throws its reason. */
  readonly signal?: AbortSignal;
  /** By the clock's `monotonic`. */
  readonly expiresMs?: number | undefined;
  /** Number of gateways that forwarded the request. Default: 0. */
  readonly hops?: number | undefined;
  /** The span that calls. Default: the call is not traced. */
  readonly trace?: TraceContext | undefined;
  /** As `Call.attribution`. */
  readonly attribution?: Attribution | undefined;
  /** `Call.unrecognized`. Default: none. */
  readonly unrecognized?: readonly string[] | undefined;
  /** Receives the caller's limits: with the first metadata, and with a refusal. */
  readonly heard: (facts: LimitFacts) => void;
  /** Receives a failure that no core reported: none was reachable, or its connection was lost. */
  readonly lost: (failure: Failure) => void;
}

/**
 * Limit of characters of a caller's credential and its call's attribution together. A core takes 8 KiB of headers, with some
 * 2 KiB of others: the request's ID, its trace, names of unrecognized fields.
 */
export const MAX_SHOWN_CHARS = 6 * 1024;

/**
 * Shortest time from the start of a call to its cancellation. A core closes a connection that resets many calls right after their
 * start (`connection-guard.ts`), and a front's connections carry the calls of all callers.
 */
const SHORTEST_MS = 500;

/**
 * Priority of calls (RFC 9218, June 2022): answers of one connection are sent by turns. The default is one after the other, and nghttp2 keeps
 * to it: short answers would wait for a large one of another caller.
 */
const INCREMENTAL = "i";

/** Calls of a core's methods. They throw Failures only. */
export class CoreCalls {
  readonly #channels: CoreChannels;
  readonly #clock: Clock;
  readonly #waitMs: number;
  readonly #use: ChannelUse;

  /** `waitMs`: how long a call waits for a reachable core. */
  constructor(
    channels: CoreChannels,
    { clock, waitMs, use }: { readonly clock: Clock; readonly waitMs: number; readonly use: ChannelUse },
  ) {
    this.#channels = channels;
    this.#use = use;
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /** Calls a unary method. */
  async unary<M extends DescMethodUnary>(
    method: M,
    request: MessageShape<M["input"]>,
    facts: CallFacts,
  ): Promise<MessageShape<M["output"]>> {
    const [metadata, options] = this.#send(facts);
    const lease = await this.#lease(facts);
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    return new Promise<MessageShape<M["output"]>>((resolve, reject) => {
      const call = lease.client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        { bytes: 0, read: () => request },
        metadata,
        options,
        (error, message) => {
          facts.signal?.removeEventListener("abort", leave);
          if (error === null) resolve(message as MessageShape<M["output"]>);
          else reject(toFailure(error, facts, false));
        },
      );
      const cancel = this.#begun(call, lease);
      const leave = (): void => {
        reject(Failure.from(facts.signal?.reason));
        cancel();
      };
      facts.signal?.addEventListener("abort", leave);
      call.on("metadata", (received: Metadata) => hear(facts, received));
    });
  }

  /** Calls a streaming method, with back-pressure. Messages that arrived together are yielded together. */
  async *stream<M extends DescMethodServerStreaming>(
    method: M,
    request: MessageShape<M["input"]>,
    facts: CallFacts,
  ): AsyncGenerator<MessageShape<M["output"]>[]> {
    const [metadata, options] = this.#send(facts);
    const lease = await this.#lease(facts);
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    const call = lease.client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { bytes: 0, read: () => request },
      metadata,
      options,
    ) as ClientReadableStream<MessageShape<M["output"]>>;
    const cancel = this.#begun(call, lease);
    call.on("metadata", (received: Metadata) => hear(facts, received));
    yield* readBatches(call, facts, cancel);
  }

  /** Takes a slot on a connection that is ready. */
  async #lease(facts: CallFacts): Promise<Lease> {
    const lease = this.#channels.lease(this.#use);
    try {
      await this.#ready(lease, facts);
      return lease;
    } catch (reason) {
      lease.release();
      throw reason;
    }
  }

  /**
   * Keeps the slot until the call has ended on the connection. Returns the function that cancels the call, SHORTEST_MS after
   * its start at the earliest.
   */
  #begun(call: ClientUnaryCall | ClientReadableStream<unknown>, lease: Lease): () => void {
    const beganMs = this.#clock.monotonic();
    let stopWaiting: (() => void) | undefined;
    let isOver = false;
    call.on("status", () => {
      isOver = true;
      stopWaiting?.();
      lease.release();
    });
    return () => {
      if (isOver || stopWaiting !== undefined) return;
      const leftMs = beganMs + SHORTEST_MS - this.#clock.monotonic();
      if (leftMs <= 0) call.cancel();
      else stopWaiting = this.#clock.after(leftMs, () => call.cancel());
    };
  }

  /**
   * Metadata and options of a call. Throws `invalid_request` when the caller's credential and the attribution are too long.
   */
  #send({
    authorization,
    requestId,
    expiresMs,
    hops = 0,
    trace,
    attribution,
    unrecognized,
  }: CallFacts): [Metadata, CallOptions] {
    const metadata = new Metadata();
    metadata.set("authorization", authorization);
    metadata.set("priority", INCREMENTAL);
    if (requestId !== undefined) metadata.set("x-request-id", requestId);
    if (hops > 0) metadata.set(HOPS_HEADER, String(hops));
    if (trace !== undefined) for (const [name, value] of traceHeaders(trace)) metadata.set(name, value);
    if (attribution !== undefined) {
      const room = MAX_SHOWN_CHARS - authorization.length;
      for (const [name, value] of attributionHeaders(attribution, room)) metadata.set(name, value);
    }
    const names = writeUnrecognized(unrecognized);
    if (names !== undefined) metadata.set(UNRECOGNIZED_HEADER, names);
    if (expiresMs === undefined) return [metadata, {}];
    // At its deadline the library resets a call. The caller's own deadline ends it here before that.
    const leftMs = Math.max(expiresMs - this.#clock.monotonic(), SHORTEST_MS);
    return [metadata, { deadline: this.#clock.now() + leftMs }];
  }

  /** Waits for a connection, up to the time limit. */
  async #ready({ client }: Lease, facts: CallFacts): Promise<void> {
    const { signal } = facts;
    signal?.throwIfAborted();
    if (client.getChannel().getConnectivityState(true) === connectivityState.READY) return;
    const connected = waitForReady(client, this.#clock.now() + this.#waitMs).then((isReady) => {
      if (isReady) return;
      const failure = noCore();
      if (signal?.aborted !== true) facts.lost(failure);
      throw failure;
    });
    if (signal === undefined) return connected;
    let stop = (): void => undefined;
    const left = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason as Failure);
      signal.addEventListener("abort", stop);
    });
    try {
      await Promise.race([connected, left]);
    } finally {
      signal.removeEventListener("abort", stop);
      connected.catch(() => undefined);
    }
  }
}

async function* readBatches<T>(
  call: ClientReadableStream<T>,
  facts: CallFacts,
  cancel: () => void,
): AsyncGenerator<T[]> {
  const { signal } = facts;
  let error: ServiceError | undefined;
  let ended = false;
  let begun = false;
  let wake = (): void => undefined;
  const leave = (): void => {
    cancel();
    wake();
  };
  call.on("readable", () => wake());
  call.on("end", () => {
    ended = true;
    wake();
  });
  call.on("error", (reason: ServiceError) => {
    error = reason;
    wake();
  });
  signal?.addEventListener("abort", leave);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const batch: T[] = [];
      for (let next = call.read() as T | null; next !== null; next = call.read() as T | null) batch.push(next);
      if (batch.length > 0) {
        begun = true;
        yield batch;
        continue;
      }
      if (error !== undefined) throw toFailure(error, facts, begun);
      if (ended) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      // grpc-js emits one message at a time; others of the same read follow within this event loop turn.
      await setImmediate();
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    if (!ended) cancel();
  }
}

function toFailure(error: ServiceError, facts: CallFacts, begun: boolean): Failure {
  if (facts.signal?.aborted) return Failure.from(facts.signal.reason);
  const reported = reportedFailure(error);
  if (reported?.limits !== undefined) facts.heard(reported.limits);
  if (reported !== undefined) return reported;
  const failure = failureOfStatus(error, begun);
  // Without a signal no caller set a deadline: the time limit was this process's own.
  const isCallers = failure.code === "deadline_exceeded" && facts.signal !== undefined;
  if (isCallers) return failure;
  const lost = failure.code === "deadline_exceeded" ? noCore(error) : failure;
  facts.lost(lost);
  return lost;
}

function hear({ heard }: CallFacts, metadata: Metadata): void {
  const limits = limitsIn(metadata);
  if (limits !== undefined) heard(limits);
}

function waitForReady(client: Client, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    client.waitForReady(deadline, (error) => resolve(error === undefined));
  });
}

const definitions = new Map<DescMethodUnary | DescMethodServerStreaming, MethodDefinition<unknown, unknown>>();

function definitionOf(method: DescMethodUnary | DescMethodServerStreaming): MethodDefinition<unknown, unknown> {
  let found = definitions.get(method);
  if (found === undefined) {
    found = serviceDefinition(method.parent)[method.localName] as MethodDefinition<unknown, unknown>;
    definitions.set(method, found);
  }
  return found;
}

const REGISTRY = createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema, AttemptListSchema);

const DETAILS: ReadonlySet<string> = new Set<FailureDetail>(["context_length_exceeded", "upstream_overloaded"]);

/** Limits in metadata; undefined without any. */
function limitsIn(metadata: Metadata): LimitFacts | undefined {
  const facts = readLimitHeaders((name) => metadata.get(name)[0]?.toString());
  return facts.requests === undefined && facts.tokens === undefined ? undefined : facts;
}

/** The failure that a core reported in a status; undefined when the status is not from a core. */
export function reportedFailure({ metadata, details }: ServiceError): Failure | undefined {
  const bytes = metadata.get("grpc-status-details-bin")[0];
  if (!Buffer.isBuffer(bytes)) return undefined;
  let messages: Map<string, Message>;
  try {
    const unpacked = fromBinary(StatusSchema, bytes).details.flatMap((any) => anyUnpack(any, REGISTRY) ?? []);
    messages = new Map(unpacked.map((message) => [message.$typeName, message]));
  } catch {
    return undefined;
  }
  const info = messages.get(ErrorInfoSchema.typeName) as ErrorInfo | undefined;
  if (info?.domain !== "parley") return undefined;
  const cause = causeOf(ErrorReason[info.reason as keyof typeof ErrorReason]);
  if (cause === undefined) return undefined;
  const { code } = cause;
  const detail = info.metadata["error_code"];
  const wait = (messages.get(RetryInfoSchema.typeName) as RetryInfo | undefined)?.retryDelay;
  const limits = limitsIn(metadata);
  return new Failure(code, details, {
    violations: (messages.get(BadRequestSchema.typeName) as BadRequest | undefined)?.fieldViolations ?? [],
    attempts:
      (messages.get(AttemptListSchema.typeName) as AttemptList | undefined)?.attempts.map(fromAttemptMessage) ?? [],
    ...(isDetail(detail) && { detail }),
    ...(wait !== undefined && { retryAfterMs: durationMs(wait) }),
    ...(limits !== undefined && { limits }),
  });
}

/**
 * The text of grpc-js for a stream that its core has reset without a status, because the connection was full
 * (ENHANCE_YOUR_CALM), or when it ended the connection with an error. The request itself was not wrong: callers share
 * connections.
 */
const IS_RESET =
  /^Bandwidth exhausted or memory limit exceeded$|^Received RST_STREAM with code 2 (\(Internal server error\)$|.*: Session closed )/;

/**
 * The failure for a status that is not from a core, but from grpc-js or a proxy: the core is unreachable, its connection was
 * lost, or it refused the message unread. `begun`: a part of the answer had arrived.
 *
 * A lost core is `overloaded`, also in the middle of an answer: this service failed, no provider did, and waiting helps. Calls
 * that a core cancels at the end of its drain are the same.
 */
export function failureOfStatus(cause: ServiceError, begun: boolean): Failure {
  const { code, details } = cause;
  // A core that closes ends its calls with CANCELLED.
  if (code === Status.UNAVAILABLE || code === Status.CANCELLED || IS_RESET.test(details))
    return begun
      ? new Failure("overloaded", "The connection was lost in the middle of the answer.", {
          unavailable: "core",
          cause,
        })
      : noCore(cause);
  if (code === Status.DEADLINE_EXCEEDED)
    return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.", { cause });
  // This side receives messages of any size: the request was too large.
  if (code === Status.RESOURCE_EXHAUSTED && !begun)
    return new Failure("request_too_large", "The request is larger than the service takes.", { cause });
  return new Failure("internal", "The gateway failed unexpectedly.", { cause });
}

/** The failure of a call without a reachable core. */
function noCore(cause?: Error): Failure {
  return new Failure("overloaded", "The service cannot be reached at the moment. Try again shortly.", {
    retryAfterMs: 1000,
    unavailable: "core",
    cause,
  });
}

function isDetail(text: string | undefined): text is FailureDetail {
  return text !== undefined && DETAILS.has(text);
}
