import { create, type DescMessage, type JsonValue } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { KeyService } from "../../gen/parley/v1/key_pb.js";
import { ListModelsResponseSchema, ModelService } from "../../gen/parley/v1/model_pb.js";
import type { Call } from "../core/call.ts";
import { Failure, invalidField } from "../core/failure.ts";
import type { Principal } from "../core/principal.ts";
import { toConnectError } from "../edge/connect-error.ts";
import { toKey } from "../edge/current-key.ts";
import { drained, type Pace } from "../edge/drain.ts";
import { newCompletionId } from "../edge/ids.ts";
import { hasTooManyFields, MAX_MESSAGE_FIELDS } from "../edge/message-size.ts";
import { type RoutingFacts, routingOfCompletion, routingOfStart } from "../edge/routing.ts";
import type { EdgeServices } from "../edge/services.ts";
import { openCall } from "./call.ts";
import { type Exchange, MAX_BODY_BYTES } from "./exchange.ts";
import { checkJsonSize, parseBody } from "./json.ts";

const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** A streamed message on the wire: a byte of flags and four of length come before it. */
const ENVELOPE_BYTES = 5;

/** The call that a request was admitted as, on its way through Connect's handlers. */
const CALL = createContextKey<Call | undefined>(undefined);

/**
 * The services over the Connect protocol, JSON and binary. The caller is known, and the body is read and measured, before
 * the library decodes it: `/v1` has no other limits.
 */
export function connectHandler(services: EdgeServices): (exchange: Exchange, principal: Principal) => Promise<void> {
  const router = createConnectRouter({
    // gRPC has its own entrance, on HTTP/2.
    grpc: false,
    grpcWeb: false,
    connect: true,
    // A few compressed bytes may be gigabytes.
    acceptCompression: [],
    readMaxBytes: MAX_BODY_BYTES,
    writeMaxBytes: MAX_REPLY_BYTES,
  });
  addRoutes(router, services);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return async (exchange, principal) => {
    const handler = handlers.get(exchange.path)!;
    const { response, requestId, arrivedMs } = exchange;
    const { open, done } = openCall(services.calls, exchange, timeoutMs(exchange));
    try {
      const call: Call = {
        principal,
        requestId,
        completionId: newCompletionId(),
        entrance: "connect",
        signal: open.signal,
        expiresMs: open.expiresMs,
        arrivedMs,
        admitted: (facts) => {
          exchange.limits = facts;
        },
      };
      const body = toBody(exchange, await exchange.body(open), handler.method.input);
      const reply = await handler(toUniversalRequest(exchange, call, body));
      await writeReply(exchange, reply, { clock: services.clock, call: open });
    } catch (reason) {
      // Whoever left needs no answer; what is left are bodies that were not read.
      if (response.headersSent || open.signal.aborted) response.destroy();
      else writeConnectError(exchange, Failure.from(reason));
    } finally {
      done();
    }
  };
}

/** Writes a failure as Connect's error, for requests that reach no handler. */
export function writeConnectError(exchange: Exchange, failure: Failure): void {
  const error = toConnectError(failure, exchange.requestId);
  exchange.json(codeToHttpStatus(error.code), errorToJson(error, undefined));
}

function addRoutes(router: ConnectRouter, services: EdgeServices): void {
  const { completions, models, clock } = services;
  const elapsed = ({ arrivedMs }: Call): number => clock.monotonic() - arrivedMs;
  router.service(CompletionService, {
    create: (request, context) =>
      answer(context, async (call) => {
        const completion = await completions.create(request, call);
        setFacts(context.responseHeader, routingOfCompletion(completion, request.model, elapsed(call)));
        return completion;
      }),
    async *stream(request, context) {
      const call = callOf(context);
      try {
        for await (const batch of completions.stream(request, call)) {
          for (const chunk of batch) {
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
  });
  router.service(ModelService, {
    list: (_, context) =>
      answer(context, async (call) => create(ListModelsResponseSchema, { models: await models.list(call) })),
    get: ({ id }, context) => answer(context, (call) => models.get(id, call)),
  });
  router.service(KeyService, {
    getCurrent: (_, context) => answer(context, ({ principal }) => toKey(principal)),
  });
}

async function answer<T>(context: HandlerContext, run: (call: Call) => T | Promise<T>): Promise<T> {
  const call = callOf(context);
  try {
    return await run(call);
  } catch (reason) {
    const failure = Failure.from(reason);
    if (failure.limits !== undefined) call.admitted(failure.limits);
    throw toConnectError(failure, call.requestId);
  }
}

function callOf({ values }: HandlerContext): Call {
  const call = values.get(CALL);
  if (call === undefined) throw new TypeError("a Connect handler was called without a call");
  return call;
}

/** The body for Connect's handler: parsed where it is plain JSON, bytes otherwise, and measured in any case. */
function toBody({ request }: Exchange, body: Buffer, desc: DescMessage): Buffer | JsonValue {
  const type = (request.headers["content-type"] ?? "").toLowerCase();
  if (/^application\/json\s*(;|$)/.test(type)) return parseBody(body) as JsonValue;
  if (type.startsWith("application/connect+json")) {
    checkJsonSize(body.subarray(ENVELOPE_BYTES));
    return body;
  }
  const message = type.startsWith("application/connect+") ? body.subarray(ENVELOPE_BYTES) : body;
  let tooMany: boolean;
  try {
    tooMany = hasTooManyFields(desc, message);
  } catch {
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
  if (tooMany) throw new Failure("request_too_large", `The request has more than ${MAX_MESSAGE_FIELDS} fields.`);
  return body;
}

function toUniversalRequest({ request, path }: Exchange, call: Call, body: Buffer | JsonValue): UniversalServerRequest {
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) header.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    url: new URL(path, "http://connect.invalid").toString(),
    header,
    body: Buffer.isBuffer(body) ? once(body) : body,
    signal: call.signal,
    contextValues: createContextValues().set(CALL, call),
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** What is left of the caller's deadline, by Connect's own header. */
function timeoutMs({ request }: Exchange): number | undefined {
  const text = request.headers["connect-timeout-ms"];
  return typeof text === "string" && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Writes what Connect's handler answers as fast as it is read: its own writer would wait for a reader for ever. */
async function writeReply(
  exchange: Exchange,
  { status, header, body }: UniversalServerResponse,
  pace: Omit<Pace, "bytes">,
): Promise<void> {
  const { response } = exchange;
  const writeHead = (): void => void response.writeHead(status, exchange.headerList([], [...(header ?? [])]));
  for await (const bytes of body ?? []) {
    // Not before there is something to write: until then the handlers add headers.
    if (!response.headersSent) writeHead();
    if (!response.write(bytes)) await drained(response, { ...pace, bytes: bytes.length });
  }
  if (!response.headersSent) writeHead();
  response.end();
}

function setFacts(headers: Headers, facts: RoutingFacts): void {
  for (const [name, value] of facts) headers.set(name, value);
}
