import type { OutgoingHttpHeaders } from "node:http2";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { Metadata, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream } from "@grpc/grpc-js";
import {
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionSchema,
  type ExplainRequest,
  ExplainRequestSchema,
  type TokenCount,
} from "../../../gen/parley/v1/completion_pb.js";
import {
  type EmbeddingRequest,
  EmbeddingRequestSchema,
  type Embeddings,
  EmbeddingsSchema,
} from "../../../gen/parley/v1/embedding_pb.js";
import { type GetCurrentKeyRequest, GetCurrentKeyRequestSchema, type Key } from "../../../gen/parley/v1/key_pb.js";
import {
  type GetModelRequest,
  GetModelRequestSchema,
  type ListModelsRequest,
  ListModelsRequestSchema,
  type ListModelsResponse,
  ListModelsResponseSchema,
  type Model,
} from "../../../gen/parley/v1/model_pb.js";
import type { RoutePlan } from "../../../gen/parley/v1/route_pb.js";
import type { Call } from "../../core/call.ts";
import { Failure } from "../../core/failure.ts";
import { HOPS_HEADER, readHops } from "../../core/hops.ts";
import type { Trace } from "../../core/trace.ts";
import type { LimitFacts } from "../../core/limiter.ts";
import type { Principal } from "../../core/principal.ts";
import { ATTRIBUTION_HEADERS, readAttribution } from "../attribution.ts";
import { newCompletionId, newEmbeddingId, type OpenCall, requestIdFrom } from "../calls.ts";
import { clientName } from "../client-name.ts";
import { toKey } from "../current-key.ts";
import { drained } from "../drain.ts";
import { type RoutingFacts, routingOfCompletion, routingOfStart, toLimitHeaders } from "../headers.ts";
import { splitImages } from "../image-pieces.ts";
import { isMetered } from "../arrival-limits.ts";
import { addRequiredLabels, readRequiredLabels } from "../required-labels.ts";
import { requireResponseSize } from "../response-size.ts";
import { serveCompletion } from "../serve-completion.ts";
import { beginTrace } from "../begin-trace.ts";
import type { ClientCertificate } from "../../net/tls-entrance.ts";
import type { EdgeServices, KeyPrincipal } from "../services.ts";
import {
  readUnrecognized,
  requireKnownFields,
  toExplain,
  UNRECOGNIZED_HEADER,
  unknownFields,
} from "../unknown-fields.ts";
import { encodeVectors } from "../vector-pieces.ts";
import { encode, type Encoded } from "./definition.ts";
import { CONNECTION_HEADER } from "./stream-guard.ts";
import { type CallFacts, toCompletionError, toServiceError } from "./status.ts";

/** Services of the handlers. */
export interface CallServices extends EdgeServices {
  /** The certificate of a connection's client, by the ID in CONNECTION_HEADER. */
  readonly certificateOf: (connectionId: string) => ClientCertificate | undefined;
}

type AnyCall = ServerUnaryCall<Encoded<Message>, Message> | ServerWritableStream<Encoded<Message>, Message>;
/** A call that takes a slot: of completions, embeddings, or for a list of models. */
type SlotCall<R extends Message> =
  | ServerUnaryCall<Encoded<R>, Buffer | TokenCount | RoutePlan>
  | ServerWritableStream<Encoded<R>, CompletionChunk>;

/** `getPeer` of grpc-js for a closed connection or stream. */
const PEER_GONE = "unknown";

/** Time by which a timer of grpc-js may be early. */
const TIMER_MS = 5;

/** Default of `max_response_bytes`: what gRPC clients receive by default. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** A call with the facts that every handler needs. */
interface Opened {
  readonly requestId: string;
  readonly open: OpenCall;
  readonly arrivedMs: number;
  /** Number of gateways that forwarded the request; the front has checked its limit. */
  readonly hops: number;
  /** Undefined for a call that is not traced. */
  trace: Trace | undefined;
  /** The caller's last known limits; undefined before authentication. */
  limits: LimitFacts | undefined;
  /** Whether a stream's metadata was sent. */
  hasMetadata: boolean;
  /** To be called when the handler is done; the call closes when its last byte is sent. */
  answered(): void;
  /**
   * Resolves when the last byte is sent or the stream has closed, also after the deadline; undefined when that has happened.
   */
  sent(): Promise<void> | undefined;
}

/** Handlers of `CompletionService` for grpc-js. */
export function completionHandlers(services: CallServices): {
  /** Replies with an encoded `Completion`. */
  create(call: ServerUnaryCall<Encoded<CompletionRequest>, Buffer>, reply: sendUnaryData<Buffer>): void;
  stream(call: ServerWritableStream<Encoded<CompletionRequest>, CompletionChunk>): void;
  count(call: ServerUnaryCall<Encoded<CompletionRequest>, TokenCount>, reply: sendUnaryData<TokenCount>): void;
  explain(call: ServerUnaryCall<Encoded<ExplainRequest>, RoutePlan>, reply: sendUnaryData<RoutePlan>): void;
} {
  return {
    create: (call, reply) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          const asked = meteredCall(request, CompletionRequestSchema, { call, opened, principal });
          const completion = await services.completions.create(request, asked);
          const bytes = opened.open.work(() => encode(CompletionSchema, completion));
          requireResponseSize(bytes.length, request.maxResponseBytes ?? MAX_RESPONSE_BYTES);
          const elapsedMs = services.clock.monotonic() - opened.arrivedMs;
          call.sendMetadata(toMetadata(opened, routingOfCompletion(completion, request.model, elapsedMs)));
          opened.answered();
          reply(null, bytes);
        },
        fail: (error) => reply(error),
      }),
    stream: (call) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          await writeStream(services, call, { request, principal, opened });
          opened.answered();
          call.end();
        },
        // destroy() would send no status, for which the client would wait.
        fail: (error) => call.emit("error", error),
      }),
    count: (call, reply) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          const asked = meteredCall(request, CompletionRequestSchema, { call, opened, principal });
          const count = await services.completions.count(request, asked);
          call.sendMetadata(toMetadata(opened, []));
          opened.answered();
          reply(null, count);
        },
        fail: (error) => reply(error),
      }),
    explain: (call, reply) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          const { completion, mode } = toExplain(request);
          const asked = meteredCall(request, ExplainRequestSchema, { call, opened, principal });
          const plan = await services.completions.explain(completion, asked, mode);
          call.sendMetadata(toMetadata(opened, []));
          opened.answered();
          reply(null, plan);
        },
        fail: (error) => reply(error),
      }),
  };
}

/** Handlers of `EmbeddingService`. */
export function embeddingHandlers(services: CallServices): {
  /** Replies with encoded `Embeddings`. */
  create(call: ServerUnaryCall<Encoded<EmbeddingRequest>, Buffer>, reply: sendUnaryData<Buffer>): void;
} {
  return {
    create: (call, reply) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          const { model } = request;
          const asked = meteredCall(request, EmbeddingRequestSchema, { call, opened, principal });
          const embeddings = await services.embedder.create(request, { ...asked, completionId: newEmbeddingId() });
          const { open } = opened;
          const vectors = await encodeVectors(embeddings, { form: "binary", maxBytes: Infinity, open });
          const rest: Embeddings = { ...embeddings, embeddings: [] };
          const bytes = Buffer.concat([encode(EmbeddingsSchema, rest), ...vectors]);
          const elapsedMs = services.clock.monotonic() - opened.arrivedMs;
          call.sendMetadata(toMetadata(opened, routingOfCompletion(embeddings, model, elapsedMs)));
          opened.answered();
          reply(null, bytes);
        },
        fail: (error) => reply(error),
      }),
  };
}

/** Handlers of `ModelService`. */
export function modelHandlers(services: CallServices): {
  /** Replies with an encoded `ListModelsResponse`. */
  list(call: ServerUnaryCall<Encoded<ListModelsRequest>, Buffer>, reply: sendUnaryData<Buffer>): void;
  get(call: ServerUnaryCall<Encoded<GetModelRequest>, Model>, reply: sendUnaryData<Model>): void;
} {
  const pages = new EncodedModels();
  return {
    list: (call, reply) =>
      void complete(services, call, {
        async run(request, principal, opened) {
          const page = await services.models.page(request, toCall(opened, principal));
          // Afterwards, so that a refused request counts as well.
          requireKnownFields(request, ListModelsRequestSchema);
          const bytes = opened.open.work(() => pages.encode(page));
          opened.open.holdAnswer(bytes.length);
          call.sendMetadata(toMetadata(opened, []));
          opened.answered();
          reply(null, bytes);
        },
        fail: (error) => reply(error),
      }),
    get: (call, reply) =>
      void answer(services, { call, reply }, async (request, principal, opened) => {
        const model = await services.models.get(request.id, toCall(opened, principal));
        requireKnownFields(request, GetModelRequestSchema);
        call.sendMetadata(toMetadata(opened, []));
        return model;
      }),
  };
}

/** Encodes each model once. */
class EncodedModels {
  readonly #models = new WeakMap<Model, Buffer>();

  /** Repeated fields may be encoded one by one, as parts of a message. */
  encode({ models, nextPageToken }: ListModelsResponse): Buffer {
    const end = encode(ListModelsResponseSchema, create(ListModelsResponseSchema, { nextPageToken }));
    return Buffer.concat([...models.map((model) => this.#encodeOne(model)), end]);
  }

  #encodeOne(model: Model): Buffer {
    let bytes = this.#models.get(model);
    if (bytes === undefined) {
      bytes = encode(ListModelsResponseSchema, create(ListModelsResponseSchema, { models: [model] }));
      this.#models.set(model, bytes);
    }
    return bytes;
  }
}

/** Handlers of `KeyService`. */
export function keyHandlers(services: CallServices): {
  getCurrent(call: ServerUnaryCall<Encoded<GetCurrentKeyRequest>, Key>, reply: sendUnaryData<Key>): void;
} {
  return {
    getCurrent: (call, reply) =>
      // Not refused by the rate: a caller that is limited asks for its limits here, and a front for a key that it does not know.
      void answer(
        { ...services, requireRequestRate: () => undefined },
        { call, reply },
        async (request, principal, opened) => {
          requireKnownFields(request, GetCurrentKeyRequestSchema);
          call.sendMetadata(toMetadata(opened, []));
          return toKey(principal);
        },
      ),
  };
}

/** Runs a call without a provider. */
async function answer<I extends Message, O extends Message>(
  services: CallServices,
  { call, reply }: { call: ServerUnaryCall<Encoded<I>, O>; reply: sendUnaryData<O> },
  run: (request: I, principal: Principal, opened: Opened) => Promise<O>,
): Promise<void> {
  const opened = openCall(services, call);
  let hasBegun = false;
  try {
    const principal = await authenticate(services, call, opened);
    services.requireRequestRate(principal);
    const request = call.request.read();
    hasBegun = true;
    const message = await run(request, principal, opened);
    opened.answered();
    reply(null, message);
  } catch (reason) {
    const failure = Failure.from(reason);
    const { requestId } = opened;
    if (!hasBegun) services.refused({ entrance: "grpc", requestId, target: call.getPath(), failure });
    opened.answered();
    reply(toServiceError(failure, factsOf(opened, failure)));
  }
}

interface Completing<R> {
  readonly run: (request: R, principal: Principal, opened: Opened) => Promise<void>;
  readonly fail: (error: ReturnType<typeof toServiceError>) => void;
}

/** Runs a call that takes a slot. */
async function complete<R extends AnyRequest | ListModelsRequest>(
  services: CallServices,
  call: SlotCall<R>,
  { run, fail }: Completing<R>,
): Promise<void> {
  const opened = openCall(services, call);
  const { requestId, open } = opened;
  const headerOf = (name: string): string | undefined => call.metadata.get(name).join(",") || undefined;
  const callsProvider = isMetered(call.getPath());
  const target = (): string => call.getPath().slice(1);
  const trace = callsProvider ? beginTrace(services, headerOf, { arrivedMs: opened.arrivedMs, target }) : undefined;
  opened.trace = trace;
  await serveCompletion<R>(services, {
    entrance: "grpc",
    requestId,
    target: call.getPath(),
    open,
    trace,
    authenticate: () => authenticate(services, call, opened),
    // grpc-js has read the message; the stream's guard has charged its bytes to the key.
    bytes: call.request.bytes,
    isRead: true,
    read() {
      const labels = callsProvider ? readRequiredLabels(headerOf) : undefined;
      return () => {
        const request = call.request.read();
        const labelled = toCompletion(request);
        if (labels !== undefined && labelled !== undefined) addRequiredLabels(labelled, labels);
        return request;
      };
    },
    run: (request, principal) => run(request, principal, opened),
    fail(failure) {
      call.request.release();
      opened.answered();
      const leftMs = open.expiresMs === undefined ? undefined : open.expiresMs - services.clock.monotonic();
      fail(toCompletionError(failure, { ...factsOf(opened, failure), leftMs }));
    },
    // A reply is only queued: it stays in memory until the caller reads it, or the stream's guard closes the stream.
    sent: () => opened.sent(),
  });
}

async function writeStream(
  { completions, clock }: EdgeServices,
  call: ServerWritableStream<Encoded<CompletionRequest>, CompletionChunk>,
  { request, principal, opened }: { request: CompletionRequest; principal: Principal; opened: Opened },
): Promise<void> {
  const asked = meteredCall(request, CompletionRequestSchema, { call, opened, principal });
  await completions.stream(request, asked, (batch) => {
    let hasRoom = true;
    for (const chunk of splitImages(batch)) {
      if (chunk.event.case === "start") {
        const facts = routingOfStart(chunk.event.value, request.model, clock.monotonic() - opened.arrivedMs);
        call.sendMetadata(toMetadata(opened, facts));
        opened.hasMetadata = true;
      }
      hasRoom = call.write(chunk);
    }
    return hasRoom ? undefined : drained(call, { clock, call: opened.open, bytes: sizeOf(batch) });
  });
}

async function authenticate(services: CallServices, call: AnyCall, opened: Opened): Promise<KeyPrincipal> {
  const connectionId = firstText(call.metadata, CONNECTION_HEADER);
  const certificate = connectionId === undefined ? undefined : services.certificateOf(connectionId);
  const principal = await services.authenticate({ authorization: authorizationOf(call), certificate });
  opened.limits = services.limitsOf(principal);
  return principal;
}

function factsOf({ requestId, limits, hasMetadata }: Opened, failure: Failure): CallFacts {
  return { requestId, limits: failure.limits ?? limits, hasMetadata };
}

function openCall({ calls, clock }: EdgeServices, call: AnyCall): Opened {
  const arrivedMs = clock.monotonic();
  const leftMs = remainingMs(call.getDeadline(), clock.now());
  const open = calls.open(leftMs);
  const requestId = requestIdFrom(firstText(call.metadata, "x-request-id"));
  let isAnswered = false;
  let isOut = false;
  // For a call that may have ended before, see below, grpc-js emits nothing.
  let isSent = leftMs !== undefined && leftMs < TIMER_MS;
  const closeIfOver = (): void => {
    if (isAnswered && isOut) open.close();
  };
  // grpc-js emits "cancelled" at every end of a call, also a successful one, when its last byte is sent.
  call.on("cancelled", () => {
    if (!isAnswered) open.leave();
    isOut = isSent = true;
    closeIfOver();
  });
  // It emits nothing for a call that ended before the handler was called: the caller left, or its deadline passed, while
  // the request was read.
  if (call.getPeer() === PEER_GONE) {
    open.leave();
    isOut = isSent = true;
  }
  if (open.expiresMs !== undefined) {
    const over = (): void => {
      isOut ||= Failure.from(open.signal.reason).code === "deadline_exceeded";
      closeIfOver();
    };
    open.signal.addEventListener("abort", over, { once: true });
  }
  const answered = (): void => {
    isAnswered = true;
    closeIfOver();
  };
  const sent = (): Promise<void> | undefined =>
    isSent ? undefined : new Promise((resolve) => call.once("cancelled", () => resolve()));
  const hops = readHops(firstText(call.metadata, HOPS_HEADER));
  return { requestId, open, arrivedMs, hops, trace: undefined, limits: undefined, hasMetadata: false, answered, sent };
}

function remainingMs(deadline: Date | number, nowMs: number): number | undefined {
  const atMs = typeof deadline === "number" ? deadline : deadline.getTime();
  return Number.isFinite(atMs) ? atMs - nowMs : undefined;
}

/** Approximate size of chunks on the wire: their contents. */
function sizeOf(batch: readonly CompletionChunk[]): number {
  return batch.reduce((sum, chunk) => sum + sizeOfChunk(chunk), 0);
}

function sizeOfChunk({ event }: CompletionChunk): number {
  if (event.case === "partStart") {
    const kind = event.value.part?.kind;
    return kind?.case === "image" && kind.value.source.case === "data" ? kind.value.source.value.length : 0;
  }
  const content = event.case === "partDelta" ? event.value.content : undefined;
  if (content?.case === "audio") return content.value.source.case === "data" ? content.value.source.value.length : 0;
  return typeof content?.value === "string" ? content.value.length : 0;
}

type AnyRequest = CompletionRequest | EmbeddingRequest | ExplainRequest;

/** The request that is explained, or the request itself; undefined for a list of models. */
function toCompletion(request: AnyRequest | ListModelsRequest): CompletionRequest | EmbeddingRequest | undefined {
  if (request.$typeName === "parley.v1.ListModelsRequest") return undefined;
  return request.$typeName === "parley.v1.ExplainRequest" ? request.completion : request;
}

/** The facts of a call of completions or embeddings, with the request fields that this version does not know. */
function meteredCall(
  request: AnyRequest,
  desc: DescMessage,
  { call, opened, principal }: { readonly call: AnyCall; readonly opened: Opened; readonly principal: Principal },
): Call {
  const forwarded = readUnrecognized(firstText(call.metadata, UNRECOGNIZED_HEADER));
  const unknown = opened.open.work(() => unknownFields(request, desc));
  const unrecognized = forwarded.length === 0 ? unknown : [...new Set([...forwarded, ...unknown])];
  const client = clientName(firstText(call.metadata, "user-agent"));
  const asked = toCompletion(request);
  const attribution = asked && readAttribution((name) => attributionText(call.metadata, name), asked);
  return { ...toCall(opened, principal), unrecognized, client, attribution };
}

function toCall(opened: Opened, principal: Principal): Call {
  const { requestId, open, arrivedMs, hops, trace } = opened;
  return {
    principal,
    requestId,
    completionId: newCompletionId(),
    entrance: "grpc",
    signal: open.signal,
    expiresMs: open.expiresMs,
    arrivedMs,
    hops,
    permitted: open.permitted,
    share: open,
    trace,
    admitted: (facts) => {
      opened.limits = facts;
    },
  };
}

/** The credential; empty for two of them, which are refused. */
function authorizationOf(call: AnyCall): string | undefined {
  const values = call.metadata.get("authorization");
  return values.length > 1 ? "" : values[0]?.toString();
}

function firstText(metadata: Metadata, key: string): string | undefined {
  return metadata.get(key)[0]?.toString();
}

/**
 * Allows one value for an end user and a session, as over HTTP: a second one may be a proxy's. Node joins values with
 * commas.
 */
function attributionText(metadata: Metadata, key: string): string | undefined {
  const text = firstText(metadata, key);
  const { endUser, session } = ATTRIBUTION_HEADERS;
  if ((key === endUser || key === session) && text?.includes(", ") === true)
    throw new Failure("invalid_request", `The metadata ${key} is given twice, or has a comma, which is written %2C.`);
  return text;
}

/**
 * Metadata to send, of names and values that are valid: the library would search each of them with a pattern. Only `toHttp2Headers` has
 * them; `get` finds nothing.
 */
class OwnMetadata extends Metadata {
  readonly #headers: OutgoingHttpHeaders;

  constructor(headers: OutgoingHttpHeaders) {
    super();
    this.#headers = headers;
  }

  override toHttp2Headers(): OutgoingHttpHeaders {
    return this.#headers;
  }
}

function toMetadata({ requestId, limits }: Opened, facts: RoutingFacts): Metadata {
  const headers: OutgoingHttpHeaders = { "x-request-id": requestId };
  for (const [name, value] of facts) headers[name] = value;
  if (limits !== undefined) for (const [name, value] of toLimitHeaders(limits)) headers[name] = value;
  return new OwnMetadata(headers);
}
