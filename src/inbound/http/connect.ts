import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import {
  type CompletionRequest,
  CompletionSchema,
  CompletionService,
  ExplainRequestSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import {
  type EmbeddingRequest,
  EmbeddingRequestSchema,
  EmbeddingService,
} from "../../../gen/parley/v1/embedding_pb.js";
import { GetCurrentKeyRequestSchema, KeyService } from "../../../gen/parley/v1/key_pb.js";
import type { LabelRequirements } from "../../../gen/parley/v1/label_pb.js";
import { GetModelRequestSchema, ListModelsRequestSchema, ModelService } from "../../../gen/parley/v1/model_pb.js";
import type { Call } from "../../core/call.ts";
import { Failure } from "../../core/failure.ts";
import { isMetered, MAX_QUESTION_BYTES, takesSlot } from "../arrival-limits.ts";
import { readAttribution } from "../attribution.ts";
import { newCompletionId, newEmbeddingId, type OpenCall } from "../calls.ts";
import { clientName } from "../client-name.ts";
import { toKey } from "../current-key.ts";
import { toConnectError } from "../error-details.ts";
import { type RoutingFacts, routingOfCompletion, routingOfStart } from "../headers.ts";
import { splitImages } from "../image-pieces.ts";
import { addRequiredLabels, readRequiredLabels } from "../required-labels.ts";
import { requireResponseSize } from "../response-size.ts";
import { serveCompletion } from "../serve-completion.ts";
import { beginTrace } from "../begin-trace.ts";
import type { EdgeServices, KeyPrincipal } from "../services.ts";
import { toAsyncIterable } from "../to-async-iterable.ts";
import { requireKnownFields, toExplain, unknownFields } from "../unknown-fields.ts";
import { encodeVectors } from "../vector-pieces.ts";
import { declaredBytes } from "./body.ts";
import {
  answerConnect,
  type ConnectExchange,
  connectHandlers,
  type ConnectRequest,
  type EncodedList,
  MAX_REPLY_BYTES,
  readConnect,
  runConnect,
} from "./connect-call.ts";
import { formOfBody, isGrpcWeb, timeoutMsOf } from "./protocols.ts";
import { type Exchange, MAX_BODY_BYTES, openCall, PRIVATE_HEADERS } from "./exchange.ts";

interface Admitted {
  readonly call: Call;
  readonly open: OpenCall;
  /** Labels that its headers require. */
  readonly labels: LabelRequirements | undefined;
  /** How the answer to a POST request is encoded. */
  readonly form: () => EncodedList["form"];
  /** When the library began to encode the answer, which is work of its caller; undefined before, and for a stream. */
  encodingMs?: number;
  /** Vectors that are encoded apart from the answer. Default: none. */
  vectors?: EncodedList;
  readonly headerOf: (name: string) => string | readonly string[] | undefined;
}

/** Context of an admitted request for Connect's handlers. */
const ADMITTED = createContextKey<Admitted | undefined>(undefined);

/** Path prefix of the service whose calls have IDs of their own. */
const EMBEDDINGS = `/${EmbeddingService.typeName}/`;

/**
 * The services over the Connect protocol and gRPC-Web, JSON and binary. Requests are authenticated, read and measured before the library
 * decodes them, with the limits of `/v1`.
 */
export function connectHandler(services: EdgeServices): (exchange: Exchange, principal: KeyPrincipal) => Promise<void> {
  const handlers = connectHandlers((router) => addRoutes(router, services), { grpcWeb: true });

  return async (exchange, principal) => {
    const { request, response, path, requestId, arrivedMs } = exchange;
    const { open, done } = openCall(services.calls, exchange, timeoutMsOf(request));
    const callsProvider = isMetered(path);
    const headerOf = (name: string) => request.headers[name];
    const trace = callsProvider
      ? beginTrace(services, headerOf, { arrivedMs, target: () => path.slice(1) })
      : undefined;
    const call: Call = {
      principal,
      requestId,
      completionId: path.startsWith(EMBEDDINGS) ? newEmbeddingId() : newCompletionId(),
      entrance: "connect",
      client: clientName(request.headers["user-agent"]),
      signal: open.signal,
      expiresMs: open.expiresMs,
      arrivedMs,
      permitted: open.permitted,
      share: open,
      trace,
      admitted: (facts) => {
        exchange.limits = facts;
      },
    };
    const handler = handlers.get(path)!;
    const form = (): EncodedList["form"] => (formOfBody(request, handler.method).binary ? "binary" : "json");
    const contextValues = createContextValues().set(ADMITTED, { call, open, labels: undefined, form, headerOf });
    const asked: ConnectExchange = {
      request,
      response,
      path,
      call: open,
      clock: services.clock,
      maxBodyBytes: callsProvider ? MAX_BODY_BYTES : MAX_QUESTION_BYTES,
      contextValues,
      headerList: (header) => exchange.headerList(PRIVATE_HEADERS, [...header]),
      encoded(bytes) {
        const sinceMs = contextValues.get(ADMITTED)?.encodingMs;
        if (sinceMs === undefined) return;
        open.worked(services.clock.monotonic() - sinceMs);
        // Answers of providers are counted from before they are received.
        if (!callsProvider) open.holdAnswer(bytes);
      },
      list: () => contextValues.get(ADMITTED)?.vectors,
    };
    const fail = (failure: Failure): void => {
      // A disconnected caller needs no answer.
      if (response.headersSent || failure.code === "cancelled") response.destroy();
      else writeConnectError(exchange, failure);
    };
    if (takesSlot(path)) {
      let labels: LabelRequirements | undefined;
      await serveCompletion<ConnectRequest>(services, {
        entrance: "connect",
        requestId,
        target: path,
        open,
        trace,
        authenticate: () => principal,
        bytes: declaredBytes(request),
        read(slot) {
          if (callsProvider) labels = readRequiredLabels((name) => request.headers[name]?.toString());
          return readConnect(handler, asked, slot);
        },
        run(read, current) {
          contextValues.set(ADMITTED, { call: { ...call, principal: current }, open, labels, form, headerOf });
          return runConnect(handler, asked, read);
        },
        fail,
      });
    } else
      await answerQuestion(services, { handler, asked, principal }).catch((reason: unknown) => {
        const failure = Failure.from(reason);
        if (!open.signal.aborted) services.refused({ entrance: "connect", requestId, target: path, failure });
        fail(failure);
      });
    done();
  };
}

/**
 * Answers a call without a provider. It takes no slot, so its body must be small: many may be on their way. A key with
 * an exhausted request rate is refused before the body is read.
 */
async function answerQuestion(
  { requireRequestRate }: EdgeServices,
  { handler, asked, principal }: { handler: UniversalHandler; asked: ConnectExchange; principal: KeyPrincipal },
): Promise<void> {
  requireRequestRate(principal);
  await answerConnect(handler, asked);
}

/** Writes a failure as an error of Connect or gRPC-Web, for requests that reach no handler. */
export function writeConnectError(exchange: Exchange, failure: Failure): void {
  const error = toConnectError(failure, exchange.requestId);
  if (isGrpcWeb(exchange.request)) {
    const headers = [...setTrailerStatus(new Headers(), error)];
    return exchange.refuse(failure, { status: 200, type: "application/grpc-web+proto", headers });
  }
  exchange.refuse(failure, { status: codeToHttpStatus(error.code), body: errorToJson(error, undefined) });
}

function addRoutes(router: ConnectRouter, services: EdgeServices): void {
  const { completions, embedder, models, clock } = services;
  const answer = async <T>(context: HandlerContext, run: (admitted: Admitted) => T | Promise<T>): Promise<T> => {
    const admitted = admittedOf(context);
    try {
      const message = await run(admitted);
      admitted.encodingMs = clock.monotonic();
      return message;
    } catch (reason) {
      const { call } = admitted;
      const failure = Failure.from(reason);
      if (failure.limits !== undefined) call.admitted(failure.limits);
      throw toConnectError(failure, call.requestId);
    }
  };
  const elapsed = ({ arrivedMs }: Call): number => clock.monotonic() - arrivedMs;
  const addLabels = (request: CompletionRequest | EmbeddingRequest, { call, labels }: Admitted): void => {
    try {
      addRequiredLabels(request, labels);
    } catch (reason) {
      // Counted here: it does not reach the service.
      const { requestId, principal, entrance } = call;
      services.refused({ entrance, requestId, target: request.$typeName, failure: Failure.from(reason), principal });
      throw reason;
    }
  };
  router.service(CompletionService, {
    create: (request, context) =>
      answer(context, async (admitted) => {
        const { call } = admitted;
        addLabels(request, admitted);
        const completion = await completions.create(request, {
          ...attributed(request, admitted),
          unrecognized: unknownIn(request, admitted),
        });
        const { maxResponseBytes } = request;
        if (maxResponseBytes !== undefined)
          requireResponseSize(toBinary(CompletionSchema, completion).length, maxResponseBytes);
        setFacts(context.responseHeader, routingOfCompletion(completion, request.model, elapsed(call)));
        return completion;
      }),
    async *stream(request, context) {
      const admitted = admittedOf(context);
      const { call, open } = admitted;
      try {
        addLabels(request, admitted);
        const asked = { ...attributed(request, admitted), unrecognized: unknownIn(request, admitted) };
        const batches = toAsyncIterable((emit) => completions.stream(request, asked, emit), open);
        for await (const batch of batches) {
          for (const chunk of splitImages(batch)) {
            if (chunk.event.case === "start") {
              setFacts(context.responseHeader, routingOfStart(chunk.event.value, request.model, elapsed(call)));
            }
            yield chunk;
          }
        }
      } catch (reason) {
        const failure = Failure.from(reason);
        if (failure.limits !== undefined) call.admitted(failure.limits);
        throw toConnectError(failure, call.requestId);
      }
    },
    count: (request, context) =>
      answer(context, (admitted) => {
        addLabels(request, admitted);
        return completions.count(request, {
          ...attributed(request, admitted),
          unrecognized: unknownIn(request, admitted),
        });
      }),
    explain: (request, context) =>
      answer(context, (admitted) => {
        const unrecognized = unknownIn(request, admitted, ExplainRequestSchema);
        const { completion, mode } = toExplain(request);
        addLabels(completion, admitted);
        return completions.explain(completion, { ...attributed(completion, admitted), unrecognized }, mode);
      }),
  });
  router.service(EmbeddingService, {
    create: (request, context) =>
      answer(context, async (admitted) => {
        const { call } = admitted;
        const { model } = request;
        addLabels(request, admitted);
        const unrecognized = unknownIn(request, admitted, EmbeddingRequestSchema);
        const embeddings = await embedder.create(request, { ...attributed(request, admitted), unrecognized });
        const form = admitted.form();
        const pieces = await encodeVectors(embeddings, { form, maxBytes: MAX_REPLY_BYTES, open: admitted.open });
        setFacts(context.responseHeader, routingOfCompletion(embeddings, model, elapsed(call)));
        admitted.vectors = { name: "embeddings", form, pieces };
        return { ...embeddings, embeddings: [] };
      }),
  });
  router.service(ModelService, {
    list: (request, context) =>
      answer(context, async ({ call }) => {
        const page = await models.page(request, call);
        // Afterwards, so that a refused request counts as well.
        requireKnownFields(request, ListModelsRequestSchema);
        return page;
      }),
    get: (request, context) =>
      answer(context, async ({ call }) => {
        const model = await models.get(request.id, call);
        requireKnownFields(request, GetModelRequestSchema);
        return model;
      }),
  });
  router.service(KeyService, {
    getCurrent: (request, context) =>
      answer(context, ({ call }) => {
        requireKnownFields(request, GetCurrentKeyRequestSchema);
        return toKey(call.principal);
      }),
  });
}

/** Adds the attribution of a request to its call. */
function attributed(request: CompletionRequest | EmbeddingRequest, { call, headerOf }: Admitted): Call {
  return { ...call, attribution: readAttribution(headerOf, request) };
}

/** Fields that this version does not know. The search is work of the caller. */
function unknownIn(request: Message, { open }: Admitted, desc?: DescMessage): string[] {
  return open.work(() => unknownFields(request, desc));
}

function admittedOf({ values }: HandlerContext): Admitted {
  const admitted = values.get(ADMITTED);
  if (admitted === undefined) throw new TypeError("a Connect handler was called without a call");
  return admitted;
}

function setFacts(headers: Headers, facts: RoutingFacts): void {
  for (const [name, value] of facts) headers.set(name, value);
}
