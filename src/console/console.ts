import type { IncomingMessage, ServerResponse } from "node:http";
import { Code, ConnectError, createContextValues, type Interceptor } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { AccountService } from "../../gen/parley/console/v1/account_pb.js";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
import { ModelService } from "../../gen/parley/console/v1/model_pb.js";
import { SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { SettingsService } from "../../gen/parley/console/v1/settings_pb.js";
import { UsageService } from "../../gen/parley/console/v1/usage_pb.js";
import type { AccessContext } from "../access/context.ts";
import type { KeyStore } from "../access/key-store.ts";
import { findSession, type SignedIn } from "../access/sessions.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import { toConnectError } from "../edge/connect-error.ts";
import type { Refusal } from "../edge/services.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import type { BuiltFiles } from "./built-files.ts";
import { createAccountService } from "./account-service.ts";
import { describeBrowser } from "./browser-name.ts";
import { CALL, type ConsoleCall } from "./call.ts";
import { createNetworkFinder } from "./client-address.ts";
import { createSessionCookie } from "./cookies.ts";
import { createGate, MAX_BODY_BYTES } from "./gate.ts";
import { createKeyService } from "./key-service.ts";
import { createModelService, type ModelServicePorts } from "./model-service.ts";
import { createPages } from "./pages.ts";
import { admit, POLICIES } from "./policy.ts";
import { securityHeaders } from "./security-headers.ts";
import { createSessionService } from "./session-service.ts";
import { type ConfigurationInForce, createSettingsService } from "./settings-service.ts";
import { createUsageService } from "./usage-service.ts";

/** What the console stands on. */
export interface ConsolePorts {
  readonly access: AccessContext;
  readonly keys: KeyStore;
  readonly ledger: Pick<LedgerStore, "usage" | "list">;
  /** The models there are now, in the order of the registry. */
  readonly models: () => readonly Model[];
  readonly health: ModelServicePorts["health"];
  readonly restOf: ModelServicePorts["restOf"];
  readonly configuration: () => ConfigurationInForce;
  readonly version: string;
  /** Is told of calls that did not work, for logs and metrics. */
  readonly refused: (refusal: Refusal) => void;
}

export interface ConsoleOptions {
  /** Where people reach it, such as `https://parley.example.com`; undefined for whatever address this machine has. */
  readonly publicUrl: string | undefined;
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  /** The built pages; undefined when they are not built, which the pages' addresses then say. */
  readonly files?: BuiltFiles | undefined;
}

/** The dashboard's pages and services, to be mounted by the HTTP front. */
export interface Console {
  /** Whether the path, without a query, is one of the console's. */
  handles(path: string): boolean;
  /** Answers one request, whatever it is. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, requestId: string): void;
}

/** Builds the console. Throws a TypeError for options that cannot be. */
export function createConsole(ports: ConsolePorts, { publicUrl, trustedProxies, files }: ConsoleOptions): Console {
  const address = publicUrl === undefined ? undefined : new URL(publicUrl);
  const isSecure = address?.protocol === "https:";
  const headers = securityHeaders(isSecure);
  const cookie = createSessionCookie(isSecure);
  const check = createGate(address);
  const pages = createPages(files, address);
  const findNetwork = createNetworkFinder(trustedProxies);
  const calls = new WeakMap<object, ConsoleCall>();
  const serve = createAdapter(ports, { cookie, callOf: (request) => calls.get(request) });

  const open = async (request: IncomingMessage, path: string, requestId: string): Promise<ConsoleCall> => {
    check(request);
    const policy = POLICIES.get(path);
    if (policy === undefined) throw new Failure("not_found", `There is nothing at ${path.slice(0, 256)}.`);
    const network = findNetwork({
      remoteAddress: request.socket.remoteAddress,
      forwardedFor: request.headers["x-forwarded-for"]?.toString(),
    });
    const sessionId = cookie.read(request.headers.cookie);
    const signedIn = sessionId === undefined ? undefined : await lookUp(ports.access, sessionId);
    admit(policy, signedIn, ports.access.clock.now());
    return { requestId, network, browser: describeBrowser(request.headers["user-agent"]), sessionId, signedIn };
  };

  const answer = async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    const path = pathOf(request.url!);
    try {
      calls.set(request, await open(request, path, requestId));
      if (request.headers.expect !== undefined) response.writeContinue();
      serve(request, response);
    } catch (reason) {
      const failure = Failure.from(reason);
      ports.refused({ entrance: "connect", requestId, target: path.slice(0, 256), failure });
      refuse(response, toConnectError(failure, requestId));
    }
  };

  return {
    handles: (path) => path.startsWith(PREFIX) || pages.handles(path),
    handle(request, response, requestId) {
      response.setHeader("x-request-id", requestId);
      const path = pathOf(request.url!);
      if (pages.handles(path)) return pages.handle(path, request, response);
      for (const [name, value] of headers) response.setHeader(name, value);
      void answer(request, response, requestId);
    },
  };
}

const PREFIX = "/parley.console.v1.";

/** The path of a request's target, which proxies write as a whole URL. */
function pathOf(target: string): string {
  const [path = ""] = target.split("?", 1);
  return path.startsWith("/") || !URL.canParse(target) ? path : new URL(target).pathname;
}

interface AdapterOptions {
  readonly cookie: ReturnType<typeof createSessionCookie>;
  readonly callOf: (request: object) => ConsoleCall | undefined;
}

function createAdapter(ports: ConsolePorts, { cookie, callOf }: AdapterOptions) {
  const { access, keys, ledger, models } = ports;
  const ids = (): ReadonlySet<string> => new Set(models().map(({ id }) => id));
  return connectNodeAdapter({
    grpc: false,
    grpcWeb: false,
    connect: true,
    // A few compressed bytes may be gigabytes.
    acceptCompression: [],
    readMaxBytes: MAX_BODY_BYTES,
    interceptors: [translateFailures(ports)],
    contextValues: (request) => createContextValues().set(CALL, callOf(request)),
    routes(router) {
      router.service(SessionService, createSessionService(access, cookie));
      router.service(AccountService, createAccountService({ access, keys }));
      router.service(KeyService, createKeyService({ access, keys, models: ids }));
      router.service(UsageService, createUsageService(ledger, access.clock));
      router.service(SettingsService, createSettingsService(ports));
      router.service(ModelService, createModelService({ ...ports, clock: access.clock }));
    },
  });
}

/** Turns failures of the handlers into Connect's errors; those of the library, such as a body that is no message, are such already. */
function translateFailures({ refused }: ConsolePorts): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (reason) {
      if (reason instanceof ConnectError) throw reason;
      const failure = Failure.from(reason);
      const requestId = request.contextValues.get(CALL)?.requestId ?? "";
      const target = `/${request.service.typeName}/${request.method.name}`;
      refused({ entrance: "connect", requestId, target, failure });
      throw toConnectError(failure, requestId);
    }
  };
}

/** Whose session it is. A store that cannot answer says nothing about the session. */
async function lookUp(access: AccessContext, sessionId: string): Promise<SignedIn | undefined> {
  try {
    return await findSession(access, sessionId);
  } catch (cause) {
    throw new Failure("overloaded", "Sessions cannot be checked at the moment. Try again shortly.", { cause });
  }
}

/** Refuses a request before its body is read. */
function refuse(response: ServerResponse, error: ConnectError): void {
  if (response.destroyed || response.headersSent) return;
  const body = JSON.stringify(errorToJson(error, undefined));
  const status = error.code === Code.Unimplemented ? 404 : codeToHttpStatus(error.code);
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    .end(body);
}
