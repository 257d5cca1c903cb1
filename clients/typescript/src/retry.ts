import { setTimeout as delay } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { methodConfig, type RetryPolicy, toMs } from "./service-config.js";

/** Backoffs vary by this part in both directions, so that clients do not return at the same moment. */
const JITTER = 0.2;

/**
 * Repeats failed calls by the published service config, as gRPC's retry design (A6) says: `grpc-retry-pushback-ms` in the
 * trailers replaces the backoff or rules out a retry, and the deadline bounds all attempts together. A wait that would
 * outlast the deadline is not begun: the call ends with the error of its last attempt.
 */
export const retry: Interceptor = (next) => async (request) => {
  const policy = methodConfig(request.method)?.retryPolicy;
  if (policy === undefined) return next(request);
  const deadline = readDeadline(request.header);
  const begin = await repeatable(request);
  let backoffMs = toMs(policy.initialBackoff);
  for (let attempt = 1; ; attempt++) {
    try {
      return await next(begin());
    } catch (error) {
      if (attempt >= policy.maxAttempts || request.signal.aborted || !isRetryable(error, policy)) throw error;
      const pushbackMs = readPushback(error);
      const waitMs = pushbackMs ?? backoffMs * (1 + JITTER * (2 * Math.random() - 1));
      if (waitMs < 0 || Date.now() + waitMs >= deadline) throw error;
      await delay(waitMs, undefined, { signal: request.signal });
      backoffMs =
        pushbackMs === undefined
          ? Math.min(backoffMs * policy.backoffMultiplier, toMs(policy.maxBackoff))
          : toMs(policy.initialBackoff);
      request.header.set("grpc-previous-rpc-attempts", String(attempt));
      request.header.set("grpc-timeout", `${Math.max(1, deadline - Date.now())}m`);
    }
  }
};

/** The wait in milliseconds that the server asks for; negative when it asks for no retry, `undefined` when it says nothing. */
export function readPushback({ metadata }: ConnectError): number | undefined {
  const value = metadata.get("grpc-retry-pushback-ms");
  if (value === null) return undefined;
  return /^\d+$/.test(value) ? Number(value) : -1;
}

function isRetryable(error: unknown, { retryableStatusCodes }: RetryPolicy): error is ConnectError {
  if (!(error instanceof ConnectError) || !retryableStatusCodes.includes(statusName(error.code))) return false;
  // Without the gateway's wait this status is that of a message over a size limit, of either side.
  return error.code !== Code.ResourceExhausted || readPushback(error) !== undefined;
}

/** `ResourceExhausted` as gRPC writes it: `RESOURCE_EXHAUSTED`. */
function statusName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

function readDeadline(header: Headers): number {
  // All calls of the contract's services have a timeout, which Connect writes in milliseconds.
  return Date.now() + Number.parseInt(header.get("grpc-timeout") ?? "", 10);
}

/** Returns the request for each attempt. A stream of request messages can be read only once, so it is read here. */
async function repeatable(request: UnaryRequest | StreamRequest): Promise<() => UnaryRequest | StreamRequest> {
  if (!request.stream) return () => request;
  const messages: Message[] = [];
  for await (const message of request.message) messages.push(message);
  return () => ({ ...request, message: replay(messages) });
}

async function* replay(messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages;
}
