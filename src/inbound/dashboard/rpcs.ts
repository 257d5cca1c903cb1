import type { IncomingMessage, ServerResponse } from "node:http";
import { type ConnectRouter, createContextValues, type Interceptor } from "@connectrpc/connect";
import { ADMIN_PREFIX, findAdminCaller } from "../../access/admin-keys.ts";
import { isApiKey } from "../../access/api-key.ts";
import type { AccessContext } from "../../access/context.ts";
import { findSession, peekSession, type SignedIn } from "../../access/sessions.ts";
import type { AdmissionControl } from "../../admission/admission-control.ts";
import type { Slot } from "../../admission/slot.ts";
import { sleep } from "../../core/clock.ts";
import { Failure } from "../../core/failure.ts";
import { NO_LIMITS } from "../../core/principal.ts";
import { Calls, type OpenCall } from "../calls.ts";
import { bearerToken } from "../current-key.ts";
import { declaredBytes } from "../http/body.ts";
import {
  type ConnectExchange,
  connectHandlers,
  type ConnectRequest,
  readConnect,
  runConnect,
} from "../http/connect-call.ts";
import { timeoutMsOf } from "../http/protocols.ts";
import { openCall } from "../http/exchange.ts";
import { readRequest } from "../serve-completion.ts";
import { CALL, callOf, type ConsoleCall, signedInOf } from "./call.ts";
import { CallLimits } from "./call-limits.ts";
import type { Cookies } from "./cookies.ts";
import { checkProgram, type RequestHeaders, type RpcShape } from "./csrf.ts";
import { admit, MAX_BODY_BYTES, type RpcPolicy } from "./policy.ts";
import type { ReportTurns } from "./report-turns.ts";
import { refuse, type Refused, translateFailures } from "./refusal.ts";
import { describeBrowser } from "./session-service.ts";

/** Ports of the RPCs. */
export interface RpcPorts {
  readonly access: AccessContext;
  /** Gives slots to completions of the playground. */
  readonly admission: AdmissionControl;
  /** Calls that a drain waits for. */
  readonly calls: Calls;
  readonly refused: Refused;
  /** Throws a Failure for a call that may come from another site's page. */
  readonly csrf: (request: RequestHeaders, expected: RpcShape) => void;
  readonly findNetwork: (request: IncomingMessage) => string;
  readonly cookies: Cookies;
  readonly reports: ReportTurns;
}

/** The RPCs of the dashboard. */
export interface Rpcs {
  /** Answers any call. Never throws. `path` has no query. */
  answer(exchange: RpcExchange): Promise<void>;
  /** Ends streams without an end of their own, now and later ones. */
  drain(): void;
}

export interface RpcExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly requestId: string;
}

export interface RpcOptions {
  readonly addRoutes: (router: ConnectRouter) => void;
  readonly policies: ReadonlyMap<string, RpcPolicy>;
}

/**
 * Delay of a refusal for too many calls or changes: a client that repeats them at once would cost almost as much as if they were
 * not refused.
 */
const REFUSAL_DELAY_MS = 1_000;
/** Headers by which proxies say that a request is another machine's. */
const PROXY_HEADERS = ["forwarded", "via", "x-forwarded-for", "x-real-ip"] as const;

/** Expected form of calls to RPCs that do not exist. */
const UNKNOWN: RpcShape = { streams: false, maxBodyBytes: MAX_BODY_BYTES };

/** Builds the RPCs: CSRF check, policy and session first, then Connect's handlers. */
export function createRpcs(ports: RpcPorts, { addRoutes, policies }: RpcOptions): Rpcs {
  const { access, admission, calls, refused } = ports;
  /** Calls that a drain does not wait for. */
  const endless = new Calls(access.clock);
  const limits = new CallLimits(access.clock);
  let draining = false;
  const handlers = connectHandlers(addRoutes, {
    interceptors: [translateFailures(refused), takeTurns(policies, ports.reports)],
  });

  /** The policy of a call from the dashboard's own page. Throws a Failure for other calls. */
  const readPolicy = ({ request, path }: RpcExchange): RpcPolicy => {
    const policy = policies.get(path);
    const check = adminKeyOf(request) === undefined ? ports.csrf : checkProgram;
    check(request, policy ?? UNKNOWN);
    if (policy === undefined) throw new Failure("not_found", `Not found: ${path.slice(0, 256)}`);
    return policy;
  };

  /** A slot for a completion. Throws `rate_limited`, `overloaded`, or the call's reason. */
  const enter = async (signedIn: SignedIn, open: OpenCall, bytes: number | undefined): Promise<Slot> => {
    const caller = toCaller(signedIn);
    try {
      return await admission.enter(caller, open, { bytes });
    } catch (reason) {
      if (Failure.from(reason).code === "rate_limited") admission.refusedByLimits(caller, bytes);
      throw reason;
    }
  };

  /** Counts one more call. Throws `rate_limited`, late. */
  const take = async (signedIn: SignedIn, policy: RpcPolicy, open: OpenCall): Promise<() => void> => {
    try {
      return limits.take(signedIn, policy);
    } catch (reason) {
      await sleep(access.clock, REFUSAL_DELAY_MS, open.signal);
      throw reason;
    }
  };

  const run = async (exchange: RpcExchange, policy: RpcPolicy, opened: (done: () => void) => void): Promise<void> => {
    const { request, response, path, requestId } = exchange;
    const { who, maxBodyBytes, streams, isCompletion, endsWithDrain } = policy;
    const { clock } = access;
    const arrivedMs = clock.monotonic();
    const adminKey = adminKeyOf(request);
    const sessionId = adminKey === undefined ? ports.cookies.session.read(request.headers.cookie) : undefined;
    const arrived = await found(() => lookUp(access, { adminKey, sessionId }, findSession));
    // Closes the connection of a caller without a session, as with a key that is not valid: its calls cost more than their
    // answers show.
    if (arrived === undefined && request.httpVersionMajor === 1) response.setHeader("connection", "close");
    const admitCaller = (caller: SignedIn | undefined): void => {
      if (caller === undefined && who !== "anybody") refuseKey(request);
      admit(policy, caller, access);
    };
    admitCaller(arrived);
    const deadlineMs = timeoutMsOf(request);
    const { open, done } = openCall(endsWithDrain ? endless : calls, exchange, deadlineMs);
    opened(done);
    if (endsWithDrain && draining)
      open.end(new Failure("overloaded", "The gateway is shutting down.", { unavailable: "shutting_down" }));
    const network = ports.findNetwork(request);
    const browser = describeBrowser(request.headers["user-agent"]);
    const browserToken = ports.cookies.browser.read(request.headers.cookie);
    const isForwarded = PROXY_HEADERS.some((name) => request.headers[name] !== undefined);
    const peek = () => lookUp(access, { adminKey, sessionId }, peekSession);
    const caller = { network, browser, browserToken, isForwarded, sessionId, peek };
    let release: (() => void) | undefined;
    let slot: Slot | undefined;
    try {
      if (isCompletion) {
        slot = await enter(arrived!, open, declaredBytes(request));
        open.entered(slot);
      }
      const handler = handlers.get(path)!;
      const contextValues = createContextValues();
      const asked: ConnectExchange = {
        request,
        response,
        path,
        call: open,
        clock,
        maxBodyBytes,
        contextValues,
        headerList: (header) => [...(streams ? STREAM_HEADERS : []), ...[...header].flat()],
      };
      const read = (): Promise<() => ConnectRequest> => readConnect(handler, asked, slot);
      const asks = slot === undefined ? (await read())() : await readRequest({ open, read }, slot);
      // The body may have taken a minute, in which a session can end and a role change.
      const signedIn = await found(peek);
      admitCaller(signedIn);
      // `Streams` counts streams.
      if (signedIn !== undefined && who !== "anybody" && !streams) release = await take(signedIn, policy, open);
      const call: ConsoleCall = { requestId, ...caller, signedIn, arrivedMs, open };
      contextValues.set(CALL, call);
      await runConnect(handler, asked, asks);
    } finally {
      slot?.end();
      release?.();
    }
  };

  return {
    async answer(exchange) {
      const { request, response, requestId, path } = exchange;
      let policy: RpcPolicy | undefined;
      let done = (): void => undefined;
      try {
        policy = readPolicy(exchange);
        await run(exchange, policy, (opened) => void (done = opened));
      } catch (reason) {
        const failure = Failure.from(reason);
        // A disconnected caller needs no answer; a begun one can only be cut.
        if (response.headersSent || failure.code === "cancelled") return void response.destroy();
        refused({ entrance: "console", requestId, target: path.slice(0, 256), failure });
        const streamType = policy?.streams ? request.headers["content-type"] : undefined;
        refuse(failure, { request, response, requestId, streamType });
      } finally {
        done();
      }
    },

    drain() {
      draining = true;
      endless.abortAll();
    },
  };
}

/** Reports begin in their account's turn. A turn ends when the answer is known: a slow reader does not hold it. */
function takeTurns(policies: RpcOptions["policies"], turns: ReportTurns): Interceptor {
  return (next) => (request) => {
    const { service, method, contextValues: values } = request;
    if (policies.get(`/${service.typeName}/${method.name}`)?.reports === undefined) return next(request);
    return turns.run(signedInOf({ values }).account.id, callOf({ values }).open.signal, () => next(request));
  };
}

/** Caller of a playground completion at admission: the key that it uses is in the body. */
function toCaller({ account }: SignedIn): Parameters<AdmissionControl["enter"]>[0] {
  return {
    keyFamilyId: `playground of ${account.id}`,
    accountId: account.id,
    limits: NO_LIMITS,
    accountLimits: account.limits,
  };
}

/** nginx and its relatives would buffer messages otherwise. */
const STREAM_HEADERS = ["x-accel-buffering", "no"] as const;

interface Shown {
  readonly adminKey: string | undefined;
  readonly sessionId: string | undefined;
}

/** The account of an administration key or a session; undefined without one. */
async function lookUp(
  access: AccessContext,
  { adminKey, sessionId }: Shown,
  find: typeof findSession,
): Promise<SignedIn | undefined> {
  if (adminKey !== undefined) return findAdminCaller(access, adminKey, { counts: find === findSession });
  return sessionId === undefined ? undefined : find(access, sessionId);
}

/** A failing store is `overloaded`: the session or key may be valid. */
async function found(look: () => Promise<SignedIn | undefined>): Promise<SignedIn | undefined> {
  try {
    return await look();
  } catch (cause) {
    throw new Failure("overloaded", "Sessions cannot be verified right now. Try again shortly.", {
      unavailable: "database",
      cause,
    });
  }
}

/** The text after `Bearer` that begins as an administration key does, valid or not. Other credentials are those of a proxy. */
function adminKeyOf(request: IncomingMessage): string | undefined {
  const token = bearerToken(request.headers.authorization) ?? "";
  return token.startsWith(ADMIN_PREFIX) ? token : undefined;
}

/** Throws `unauthenticated` for a call with a key that does not let it in. */
function refuseKey(request: IncomingMessage): void {
  const token = bearerToken(request.headers.authorization) ?? "";
  if (token.startsWith(ADMIN_PREFIX))
    throw new Failure(
      "unauthenticated",
      "This administration key is not valid. It may be mistyped, expired, revoked, or of a disabled account.",
    );
  if (isApiKey(token))
    throw new Failure(
      "unauthenticated",
      `This is a key for completions. The dashboard's RPCs take administration keys, which begin with ${ADMIN_PREFIX}.`,
    );
}
