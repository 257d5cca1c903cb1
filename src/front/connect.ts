import { create } from "@bufbuild/protobuf";
import { ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { IncomingMessage, ServerResponse } from "node:http";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { ListModelsResponseSchema, ModelService } from "../../gen/parley/v1/model_pb.js";
import type { Call } from "../core/completions.ts";
import { Failure } from "../core/failure.ts";
import type { Principal } from "../core/principal.ts";
import { errorDetails } from "../edge/error-details.ts";
import { FAILURE_TABLE } from "../edge/failure-table.ts";
import { newCompletionId, requestIdFrom } from "../edge/ids.ts";
import { type RoutingFacts, routingOfCompletion, routingOfStart } from "../edge/routing.ts";
import type { EdgeServices } from "../edge/services.ts";
import { MAX_BODY_BYTES } from "./exchange.ts";

/** The paths that are served by the Connect protocol. */
export const CONNECT_PATHS: readonly string[] = [CompletionService, ModelService].map(
  ({ typeName }) => `/${typeName}/`,
);

const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** The same services over the Connect protocol, JSON and binary: for browsers, curl and typed clients. */
export function connectHandler(services: EdgeServices): (request: IncomingMessage, response: ServerResponse) => void {
  return connectNodeAdapter({
    routes: (router) => routes(router, services),
    // gRPC has its own entrance, on HTTP/2.
    grpc: false,
    grpcWeb: false,
    connect: true,
    readMaxBytes: MAX_BODY_BYTES,
    writeMaxBytes: MAX_REPLY_BYTES,
  });
}

function routes(router: ConnectRouter, services: EdgeServices): void {
  const { completions, models, clock } = services;
  router.service(CompletionService, {
    create: (request, context) =>
      answer(services, context, async (call) => {
        const completion = await completions.create(request, call);
        setFacts(
          context.responseHeader,
          routingOfCompletion(completion, request.model, clock.monotonic() - call.arrivedMs),
        );
        return completion;
      }),
    async *stream(request, context) {
      const { call, close } = await openCall(services, context);
      try {
        for await (const batch of completions.stream(request, call)) {
          for (const chunk of batch) {
            if (chunk.event.case === "start") {
              setFacts(
                context.responseHeader,
                routingOfStart(chunk.event.value, request.model, clock.monotonic() - call.arrivedMs),
              );
            }
            yield chunk;
          }
        }
      } catch (reason) {
        throw toConnectError(Failure.from(reason), call.requestId);
      } finally {
        close();
      }
    },
  });
  router.service(ModelService, {
    list: (_, context) =>
      answer(services, context, ({ principal }) =>
        create(ListModelsResponseSchema, { models: models.list(principal) }),
      ),
    get: ({ id }, context) => answer(services, context, ({ principal }) => models.get(id, principal)),
  });
}

async function answer<T>(
  services: EdgeServices,
  context: HandlerContext,
  run: (call: Call) => T | Promise<T>,
): Promise<T> {
  const { call, close } = await openCall(services, context);
  try {
    return await run(call);
  } catch (reason) {
    throw toConnectError(Failure.from(reason), call.requestId);
  } finally {
    close();
  }
}

/** Opens the call that the context describes. Throws a ConnectError without a valid key. */
async function openCall(services: EdgeServices, context: HandlerContext): Promise<{ call: Call; close: () => void }> {
  const arrivedMs = services.clock.monotonic();
  const requestId = requestIdFrom(context.requestHeader.get("x-request-id") ?? undefined);
  context.responseHeader.set("x-request-id", requestId);
  let principal: Principal;
  try {
    principal = await services.authenticate(context.requestHeader.get("authorization") ?? undefined);
  } catch (reason) {
    const failure = Failure.from(reason);
    services.refused({
      entrance: "connect",
      requestId,
      target: `/${context.service.typeName}/${context.method.name}`,
      failure,
    });
    throw toConnectError(failure, requestId);
  }
  const open = services.calls.open(context.timeoutMs());
  // Connect's own signal also aborts at the end of a good call, when nobody listens any more.
  context.signal.addEventListener("abort", () => open.leave(), { once: true });
  const call: Call = {
    principal,
    requestId,
    completionId: newCompletionId(),
    entrance: "connect",
    signal: open.signal,
    arrivedMs,
  };
  return { call, close: () => open.close() };
}

function toConnectError(failure: Failure, requestId: string): ConnectError {
  const { grpc } = FAILURE_TABLE[failure.code];
  return new ConnectError(
    failure.message,
    grpc,
    { "x-request-id": requestId },
    errorDetails(failure, requestId),
    failure,
  );
}

function setFacts(headers: Headers, facts: RoutingFacts): void {
  for (const [name, value] of facts) headers.set(name, value);
}
