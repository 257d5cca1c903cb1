import { randomUUID } from "node:crypto";
import { isToken } from "../access/bound-keys.ts";
import { createAuthenticator } from "../access/key-cache.ts";
import type { Config } from "../config/config.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { RefusedRequests } from "../core/limiter.ts";
import type { Limits, Principal } from "../core/principal.ts";
import { Calls } from "../inbound/calls.ts";
import { readNames, writeNames } from "../inbound/certificate-names.ts";
import { bearerToken, startKeyWatch, toGrant } from "../inbound/current-key.ts";
import { coreTarget } from "../inbound/grpc/core-target.ts";
import { MAX_SHOWN_CHARS } from "../inbound/grpc/core-calls.ts";
import { connectCore, type RemoteCore } from "../inbound/grpc/remote-core.ts";
import { LastLimits } from "../inbound/headers.ts";
import { startHttpServer } from "../inbound/http/server.ts";
import type { EdgeServices, KeyPrincipal } from "../inbound/services.ts";
import { rememberLimited } from "../limits/limiter.ts";
import { createMemoryRates } from "../limits/memory.ts";
import { createRequestRate, KnownLevels } from "../limits/request-rate.ts";
import type { ClientCertificate } from "../net/tls-entrance.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createConnections } from "./connections.ts";
import { documentsOf } from "./console.ts";
import { drainCalls, type Gateway, type MemberGateway, serveAlone } from "./gateway.ts";
import { createObserver } from "./observer.ts";
import { createAdmission, toFacts } from "./overload.ts";
import { passOn } from "./tracing.ts";
import { ShutdownDelay, startListening, type Teardown, undoneOnFailure } from "./starting.ts";
import { openTls, openTlsFiles } from "./tls.ts";

/**
 * Starts a gateway that serves HTTP only and forwards each call to cores in other processes. It has no database, no
 * providers and no state worth keeping, so any number of fronts can run.
 */
export function startFrontGateway(config: Config, log: Logger, core: string): Promise<Gateway> {
  return undoneOnFailure(async (teardown) => {
    const member = await assemble(config, log, { ...teardown, core });
    return serveAlone(member, config, { ...teardown, log });
  });
}

/** Starts a front that is one of several workers behind the same address. */
export function startFrontMember(config: Config, log: Logger, core: string): Promise<MemberGateway> {
  return undoneOnFailure((teardown) => assemble(config, log, { ...teardown, core }));
}

async function assemble(
  config: Config,
  log: Logger,
  { undo, closeAll, core }: Teardown & { readonly core: string },
): Promise<MemberGateway> {
  const clock = systemClock;
  const calls = new Calls(clock);
  const admission = createAdmission(config, {
    clock,
    maxCalls: config.overload.maxCalls,
    log,
    // Its core counts them.
    accountConcurrency: () => undefined,
    waited: (durationMs) => metrics.admitted(durationMs),
  });
  undo.push(() => admission.close());
  const connections = createConnections(config);
  const metrics = createMetrics({
    activeCalls: () => calls.active,
    breakers: () => new Map(),
    hedges: () => new Map(),
    retries: () => new Map(),
    outliers: () => new Map(),
    // The cores have the ledger and the rates.
    ledgerWaiting: () => 0,
    ledgerLagMs: () => 0,
    ratesLocal: () => false,
    ratesDecidedLocally: () => 0,
    admission: () => admission.state(),
    connectionsRefused: () => connections.refused,
  });
  const observer = createObserver({ log, metrics, clock, find: () => undefined });
  const shown = new ShownHeaders();
  const limits = new LastLimits();
  const coreFiles = config.core.tls && (await openTlsFiles("core.tls", config.core.tls, log));
  undo.push(() => coreFiles?.close());
  const remote = connectCore({
    target: coreTarget(core),
    tls: coreFiles && { files: coreFiles, serverName: config.core.tls?.serverName },
    clock,
    limits,
    authorizationOf: (principal) => shown.of(principal),
    lost: (failure, requestId) => observer.refused({ entrance: "http", requestId, target: "core", failure }),
  });
  undo.push(() => remote.close());
  undo.push(startKeyWatch({ calls, clock }));
  let { limits: defaults } = config;
  const requestRate = ownRequestRate(config, clock, () => defaults);
  const services: EdgeServices = {
    completions: remote.completions,
    forwards: true,
    embedder: remote.embedder,
    models: remote.models,
    authenticate: authenticateWith(remote, shown, config),
    limitsOf: (principal) => limits.peek(principal),
    requireRequestRate: (principal) => requestRate.requireRequestRate(principal),
    calls,
    admission,
    connections,
    clock,
    traces: passOn,
    refused(refusal) {
      observer.refused(refusal);
      if (refusal.principal !== undefined) requestRate.countRefused(refusal.principal, refusal.failure);
    },
  };

  if (config.responses.keptMs > 0)
    log.warn({}, "responses.store_days has no effect in a front, which has no database: it stores no responses");

  let draining = false;
  const shutdownDelay = new ShutdownDelay(clock, config.shutdown.delayMs);
  const documents = await documentsOf(undefined);
  const tls = await openTls("http", config, log);
  const http = await startListening("http", config, () =>
    startHttpServer(services, { ...config.http.listen, corsOrigins: config.http.corsOrigins, documents, tls }),
  );
  undo.push(() => http.close());

  return {
    httpPort: http.port,
    grpcPort: 0,
    operationsPort: 0,
    hasPages: false,
    activeCalls: () => calls.active,
    metrics,
    replica: randomUUID(),
    // Ready even when no core is reachable: the front then answers with that error.
    readiness: () => ({
      ready: !draining,
      active_calls: calls.active,
      core: remote.state(),
      overload: toFacts(admission.state()),
    }),
    makeFirstKey: async () => undefined,
    prepareSetup: async () => undefined,
    // The cores have the models, the providers and what is stored.
    async reload(next) {
      defaults = next.limits;
      await tls?.check();
    },
    async drain() {
      draining = true;
      http.announce();
      await shutdownDelay.wait();
      await drainCalls([http.drain()], { calls, clock, drainMs: config.shutdown.drainMs });
    },
    abort() {
      shutdownDelay.cut();
      calls.abortAll();
    },
    close: closeAll,
  };
}

/** Counts requests that this front refuses by itself, by the same limits: its cores do not see them. */
function ownRequestRate({ burstMs }: Config, clock: Clock, defaults: () => Limits): RefusedRequests {
  const limitedOf = rememberLimited(defaults);
  const rates = createMemoryRates({ clock, burstMs });
  const known = new KnownLevels(burstMs);
  return createRequestRate({ rates, known, subjectsOf: (of) => limitedOf(of).subjects, burstMs, clock });
}

/** Longest token that is handed on. */
const MAX_TOKEN_LENGTH = MAX_SHOWN_CHARS - "Bearer ".length;

/** Longest list of names of a certificate that is handed on. */
const MAX_NAMES_LENGTH = 4096;

/** Authenticates callers at the core and caches its answer as long as a core caches its store's. */
function authenticateWith(remote: RemoteCore, shown: ShownHeaders, { access }: Config): EdgeServices["authenticate"] {
  const store = {
    async findByHash(_hash: string, key: string | undefined) {
      const answer = await remote.currentKey(toHeader(key!));
      if (!(answer instanceof Failure)) return toGrant(answer);
      return answer.code === "unauthenticated" ? undefined : answer;
    },
  };
  // Tokens are verified by the core, and certificates bound by it.
  const isOther = (text: string): boolean =>
    readNames(text) !== undefined || (access.issuers.length > 0 && isToken(text));
  const authenticator = createAuthenticator({ store, clock: systemClock, isOther });
  return async ({ authorization, certificate }) => {
    const shownCertificate = authorization === undefined ? certificate : undefined;
    const key = shownCertificate === undefined ? bearerToken(authorization) : namesOf(shownCertificate);
    if (key !== undefined && key.length > MAX_TOKEN_LENGTH)
      throw new Failure(
        "unauthenticated",
        `This key or token has more than ${MAX_TOKEN_LENGTH} characters, more than a front forwards.`,
      );
    try {
      return shown.note(await authenticator.authenticate(key), toHeader(key!), shownCertificate);
    } catch (reason) {
      const failure = Failure.from(reason);
      if (failure.code !== "unauthenticated" || key === undefined || !isOther(key)) throw failure;
      throw new Failure("unauthenticated", "This token or certificate is not accepted; the core's log says why.");
    }
  };
}

/** A bearer token has no space, and cannot look like the names of a certificate. */
function toHeader(key: string): string {
  return readNames(key) === undefined ? `Bearer ${key}` : key;
}

/** The names of a caller's certificate for the core. Throws `unauthenticated`. */
function namesOf({ names, expiresAtMs }: ClientCertificate): string {
  if (expiresAtMs <= systemClock.now())
    throw new Failure("unauthenticated", "The client certificate has expired since the connection was opened.");
  const text = writeNames(names);
  if (text.length > MAX_NAMES_LENGTH)
    throw new Failure("unauthenticated", "The alternative names of the client certificate are too long.");
  return text;
}

/** The header of each caller for the duration of its call. Kept apart from the principal, which may be logged or stored. */
class ShownHeaders {
  readonly #headers = new WeakMap<Principal, string>();

  note(known: KeyPrincipal, header: string, certificate: ClientCertificate | undefined): KeyPrincipal {
    // A copy per call: the authenticator's principal is shared and outlives the call.
    const principal = { ...known, ...(certificate && { isBound: () => !certificate.isRevoked() }) };
    this.#headers.set(principal, header);
    return principal;
  }

  of(principal: Principal): string {
    const header = this.#headers.get(principal);
    if (header === undefined) throw new TypeError("the principal was not authenticated by this front");
    return header;
  }
}
