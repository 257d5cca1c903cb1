import { randomUUID } from "node:crypto";
import { authenticateCaller } from "../access/bound-keys.ts";
import { createAuthenticator } from "../access/key-cache.ts";
import { newKeyEntry } from "../access/audit-fields.ts";
import { createFirstKey } from "../access/keys.ts";
import { permit } from "../access/principal.ts";
import { prepareSetup, type SetupState } from "../access/setup-token.ts";
import { pendingSettings } from "../config/applied.ts";
import type { Config } from "../config/config.ts";
import type { ConfigSource } from "../config/parse.ts";
import type { Setting } from "../config/settings.ts";
import { readVersion } from "../config/version.ts";
import type { Settling } from "../core/settling.ts";
import { type Clock, sleep, systemClock } from "../core/clock.ts";
import { createCompletions, explainFor } from "../core/completions.ts";
import type { HealthNotes } from "../core/health-notes.ts";
import { createEmbedder } from "../core/embeddings.ts";
import { createModels } from "../core/models.ts";
import { createStateSeal, STATE_SECRET } from "../core/provider-state.ts";
import { Calls } from "../inbound/calls.ts";
import { startKeyWatch } from "../inbound/current-key.ts";
import { RequestFeed } from "../inbound/dashboard/request-feed.ts";
import { startGrpcServer } from "../inbound/grpc/server.ts";
import { createSharedGrpc } from "../inbound/grpc/shared-port.ts";
import { readFormatRequests } from "../inbound/http/format-requests.ts";
import { startHttpServer } from "../inbound/http/server.ts";
import type { EdgeServices } from "../inbound/services.ts";
import { Lease } from "../ledger/lease.ts";
import { createLimiter } from "../limits/limiter.ts";
import type { RateStore } from "../limits/rates.ts";
import { createRouter } from "../router/router.ts";
import { createHealthRecorder } from "../router/upstream-health.ts";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import { openStore, type StoreHealth } from "../store/store.ts";
import { lockForServing } from "../store/serve-lock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { type CredentialCipher, credentialCipherOf } from "./account-credentials.ts";
import { alertJobs } from "./alerts.ts";
import { buildCatalogue, type Catalogue, type CatalogueOptions } from "./catalogue.ts";
import { createConnections, createProviderSockets } from "./connections.ts";
import { consoleOf, documentsOf } from "./console.ts";
import { keepTargetHistory } from "./target-history.ts";
import { startHealthChecks } from "./health-checks.ts";
import { connectionsJob, jobsOf, settleJob, startJobs } from "./jobs.ts";
import { createObserver, joinObservers, type Observer } from "./observer.ts";
import { createAdmission, createAnswerMemory, toFacts } from "./overload.ts";
import { accessOf, CallerBindings, toShown } from "./access.ts";
import { ledgerOfAnswers, openAccounting } from "./accounting.ts";
import { exchangeKeyChanges } from "./key-changes.ts";
import { keptResponsesOf } from "./kept-responses.ts";
import { exportMetrics } from "./metric-export.ts";
import { type Readiness, startOperations, withLatest } from "./operations.ts";
import { openOutage, slicesOf } from "./outage.ts";
import { openRates } from "./rates.ts";
import { keepRefusals } from "./refusals.ts";
import { shareHealth } from "./shared-health.ts";
import { NO_SOURCE } from "./stored-service.ts";
import { storedContentsOf } from "./stored-contents.ts";
import { SimulatorOnDemand } from "./simulator-on-demand.ts";
import { openTracing } from "./tracing.ts";
import { KEY_OPERATIONS, type StoreTimes, timed } from "./timed.ts";
import { openTls } from "./tls.ts";
import { inTurn, reloadable, ShutdownDelay, startListening, type Teardown, undoneOnFailure } from "./starting.ts";

/** What a reloaded configuration was read from. */
export interface ReloadSource extends ConfigSource {
  /** Settings that wait for a restart. Default: by comparison with those that the gateway was started with. */
  readonly pending?: readonly Setting[];
}

/**
 * Part of the configuration that a reload applies: the file, as after SIGHUP, the stored configuration, or only the lists of
 * imported models.
 */
export type Changed = "file" | "stored" | "lists";

/** A running gateway: all parts are connected and listening. */
export interface Gateway {
  /** 0 without this inbound: a core has no HTTP, a front has no gRPC. Both are the same with `http.grpc`. */
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsPort: number;
  /** Whether the dashboard's pages are served: not by a front or a core alone, and only when they are built. */
  readonly hasPages: boolean;
  /** Number of calls in flight. */
  activeCalls(): number | Promise<number>;
  /** Creates the first key when there has never been one; answers its secret. */
  makeFirstKey(): Promise<string | undefined>;
  /** Prepares the setup of the first owner, where the dashboard is served. */
  prepareSetup(): Promise<SetupState | undefined>;
  /**
   * Applies the sections of `reloadable`; all other settings need a restart. The health of upstream models starts anew after
   * a change of the file, for changed providers after one of the stored configuration, and stays after one of imported lists. `source`:
   * what the configuration was read from; default: as before.
   */
  reload(config: Config, changed: Changed, source?: ReloadSource): Promise<void>;
  /** Takes no new work, lets calls in flight end within `shutdown.drain_ms`, then ends them. */
  drain(): Promise<void>;
  /** Ends calls in flight at once, during a drain too. */
  abort(): void;
  /** Closes everything. */
  close(): Promise<void>;
  /** Resolves with the reason when the gateway cannot continue. Missing: never. */
  readonly failed?: Promise<Error>;
}

/** A gateway that is one of several workers behind the same addresses: it has no operations port. */
export interface MemberGateway extends Gateway {
  readonly metrics: Metrics;
  /** Identifies this process among those of the service. */
  readonly replica: string;
  /** The facts of this process for `/readyz` of the operations port. */
  readiness(): Readiness;
}

/** Parts that a worker shares with the others. */
export interface Shared {
  /** Number of this worker, from 1; its successor has the same. */
  readonly worker: number;
  /** Used where the rates would be counted in this process's memory. */
  readonly rates: RateStore;
  /** Used where this process would otherwise keep its notes about upstream models to itself. */
  readonly notes: HealthNotes;
  /** Used in place of a simulator of its own. */
  readonly simulator: Pick<SimulatorOnDemand, "url">;
  /** Changed keys: those of other workers are received, those of this worker are sent. */
  readonly keyChanges: {
    subscribe(changed: (hash: string | undefined) => void): void;
    tell(hash: string | undefined): void;
  };
}

/** Limit for connections to close once their calls have ended. */
const CLOSING_MS = 2000;

/** Source of a configuration. */
export interface SourceParts {
  /** The source by which changes of the stored configuration are checked. */
  readonly source: ConfigSource;
  /** Number of the latest version of the stored configuration, for `/readyz`; undefined while it is not known. */
  readonly latestStored?: (() => number | undefined) | undefined;
}

/** Builds and connects the parts and listens; undoes all steps when one fails. A core has no HTTP. */
export async function startGateway(
  config: Config,
  log: Logger,
  { role = "all", source = NO_SOURCE, latestStored }: { readonly role?: "all" | "core" } & Partial<SourceParts> = {},
): Promise<Gateway> {
  return undoneOnFailure(async (teardown) => {
    if (config.databaseUrl === undefined) teardown.undo.push(lockForServing(config.dataDir));
    const member = await assemble(config, log, { ...teardown, role, source, shared: undefined });
    return serveAlone(member, config, { ...teardown, log, latestStored });
  });
}

/** Starts a gateway that is one of several workers. */
export function startMember(
  config: Config,
  log: Logger,
  options: {
    readonly role: "all" | "core";
    readonly shared: Shared;
    readonly source: ConfigSource;
    readonly pending: readonly Setting[];
  },
): Promise<MemberGateway> {
  return undoneOnFailure((teardown) => assemble(config, log, { ...teardown, ...options }));
}

/** Adds the operations port, of which a program has one, to a gateway that is the only one of its program. */
export async function serveAlone(
  member: MemberGateway,
  config: Config,
  { undo, log, latestStored }: Pick<Teardown, "undo"> & Pick<SourceParts, "latestStored"> & { readonly log: Logger },
): Promise<Gateway> {
  const operations = await startOperations(config, {
    log,
    metrics: member.metrics,
    readiness: () => withLatest(member.readiness(), latestStored),
  });
  undo.push(() => operations.close());
  undo.push(await exportMetrics(config, { ...member, log }));
  return {
    ...member,
    operationsPort: operations.port,
    async reload(next, changed, source) {
      await member.reload(next, changed, source);
      await operations.reload();
    },
  };
}

async function assemble(
  config: Config,
  log: Logger,
  {
    undo,
    closeAll,
    role,
    shared,
    ...given
  }: Teardown & {
    readonly role: "all" | "core";
    readonly shared: Shared | undefined;
    readonly source: ConfigSource;
    readonly pending?: readonly Setting[];
  },
): Promise<MemberGateway> {
  const clock = systemClock;
  let inForce = config;
  let { pending = [] } = given;
  const outage = await openOutage(config, { clock, log, worker: shared?.worker ?? 0 });
  const store = await openStore(config, { mayBeAway: outage.before !== undefined });
  undo.push(() => store.close());
  const isAway = store.opening !== undefined;
  const failing = outage.tell(store);
  const replica = randomUUID();
  // Its values are read when the parts below are there.
  const metrics = createMetrics(
    {
      activeCalls: () => calls.active,
      breakers: () => router.health(),
      hedges: () => router.hedges(),
      retries: () => router.retries(),
      outliers: () => router.outliers(),
      ledgerWaiting: () => ledger.state().waiting,
      ledgerLagMs: () => ledger.lagMs(),
      ratesLocal: () => rates.isAlone(),
      ratesDecidedLocally: () => rates.decidedAlone(),
      ratesFaults: () => rates.faults(),
      replicas: () => rates.replicas(),
      database: () => databaseHealth(),
      keyFileAgeMs: () => outage.fileAgeMs(),
      info: { version: readVersion(), schema: String(store.versions().after) },
      admission: () => admission.state(),
      answers: () => answers,
      contents: () => contents?.counts(),
      connectionsRefused: () => connections.refused,
    },
    config.metrics,
  );
  const times: StoreTimes = { clock, stored: (call) => metrics.stored(call) };
  const ofDatabase = { ...times, store: store.kind };
  // Ended after the last completion was recorded. The router is there before the first one.
  const tracing = await openTracing(config, { clock, log, replica, find: (name) => router.find(name) });
  undo.push(() => tracing.close());
  const accounting = await openAccounting(config, {
    store: timed(store.ledger, { insert: "ledger_write", begin: "ledger_begin" }, ofDatabase),
    clock,
    replica,
    worker: shared?.worker ?? 1,
    log,
    isAway,
  });
  undo.push(() => accounting.close());
  const { ledger } = accounting;
  // Reads succeed on a full disk, so only its writes show that the database cannot be used.
  const databaseHealth = (): StoreHealth => {
    const health = store.health();
    return { ...health, up: health.up && !ledger.state().unwritable };
  };
  const rates = await openRates(config, {
    ...times,
    database: store,
    log,
    replica,
    shared,
    replicasBefore: outage.before?.replicas,
  });
  undo.push(() => rates.store.close());
  const budgets = timed(store.budgets, { hold: "budget_hold", cancel: "budget_cancel" }, ofDatabase);
  const slices = slicesOf(config, { store, budgets, ledger, clock });
  undo.push(() => slices?.close());
  const limiter = createLimiter({
    rates: rates.store,
    budgets: slices ?? budgets,
    spending: (subjects, month) => store.ledger.spending(subjects, month),
    defaults: () => inForce.limits,
    clock,
    burstMs: config.burstMs,
    replicaId: replica,
  });
  undo.push(() => limiter.close());
  const access = accessOf(config, { store, clock, log, inForce: () => inForce, cipher: () => credentials });
  const answers = createAnswerMemory(config, clock);
  const calls = new Calls(clock, answers);
  const readScheduler = new ReadScheduler();
  const { maxCalls, sockets } = createProviderSockets(config, log);
  const admission = createAdmission(config, {
    clock,
    maxCalls,
    log,
    readScheduler,
    accountConcurrency: () => inForce.limits.concurrentRequests,
    waited: (durationMs) => metrics.admitted(durationMs),
  });
  undo.push(() => admission.close());
  const connections = createConnections(config);
  const lease = new Lease({
    store: store.ledger,
    clock,
    process: replica,
    onTrouble: (cause) =>
      log.warn({ cause: String(cause) }, "the lease of this process was not renewed; it is tried every second"),
  });
  undo.push(() => lease.close());
  if (store.opening === undefined) await lease.open();
  else lease.openAfter(store.opening);
  const sharing = connectionsJob({ store, log });
  const jobs = startJobs([settleJob(lease), sharing, ...jobsOf(config, { store, clock })], { clock, log });
  undo.push(() => jobs.close());
  if (store.opening === undefined) await sharing.run(new AbortController().signal);
  const own = new SimulatorOnDemand(config);
  undo.push(() => own.close());
  const simulator = shared?.simulator ?? own;
  const onKeyPause: CatalogueOptions["onKeyPause"] = ({ provider, key, status, pauseMs }) =>
    log.warn({ provider, key, status, pause_ms: pauseMs }, "a provider's key is paused");
  let credentials = credentialCipherOf(config);
  const catalogueOf = (
    of: Config,
    simulatorUrl: string | undefined,
    { open: openCredential }: CredentialCipher,
  ): Catalogue => buildCatalogue(of, { simulatorUrl, readScheduler, sockets, onKeyPause, openCredential });
  let catalogue = catalogueOf(config, await simulator.url(config), credentials);
  let { source } = given;
  undo.push(() => catalogue.close());

  const { retries, breaker } = config;
  const router = createRouter({
    models: catalogue.models,
    routes: catalogue.routes,
    aliases: config.aliases,
    clock,
    random: Math.random,
    backoff: retries,
    breaker,
  });
  if (rates.notes !== undefined) undo.push(shareHealth({ notes: rates.notes, router, clock }));
  undo.push(startHealthChecks({ config: () => inForce, router, clock }));
  const feed = new RequestFeed();
  const targets = keepTargetHistory({
    store: store.targetHistory,
    router,
    self: { replica, worker: shared?.worker ?? 0, version: readVersion() },
    pending: () => pending,
    clock,
    log,
  });
  undo.push(() => targets.close());
  const health = createHealthRecorder(router, clock, targets.count);
  const healthObserver: Observer = { record: (entry) => health.record(entry), refused: () => undefined };
  const find = (name: string) => router.find(name);
  const refusals = keepRefusals({ store: store.refusals, feed: role === "core" ? undefined : feed, clock, find, log });
  undo.push(() => refusals.close());
  const observer = joinObservers([createObserver({ log, metrics, clock, find }), refusals.observer, healthObserver]);
  const alerting = startJobs(
    alertJobs({
      store,
      router,
      health,
      credentials: {
        sealChannel: (...asked) => credentials.sealChannel(...asked),
        openChannel: (...asked) => credentials.openChannel(...asked),
      },
      inForce: () => inForce,
    }),
    { clock, log },
  );
  undo.push(() => alerting.close());
  const authenticator = createAuthenticator({
    store: timed(store.keys, KEY_OPERATIONS, ofDatabase),
    clock,
    staleLimitMs: config.outage.serveMs,
  });
  authenticator.restore(outage.before?.keys ?? []);
  if (rates.exchangeChanges !== undefined)
    undo.push(
      await exchangeKeyChanges({
        exchange: rates.exchangeChanges,
        feed: store.keyChanges,
        keys: authenticator,
        clock,
      }),
    );
  undo.push(store.keyChanges.subscribe((hash) => authenticator.invalidate(hash)));
  // PostgreSQL notifies all processes by itself (LISTEN).
  if (shared !== undefined && store.kind === "sqlite") {
    shared.keyChanges.subscribe((hash) => authenticator.invalidate(hash));
    undo.push(store.keyChanges.subscribe((hash) => shared.keyChanges.tell(hash)));
  }
  undo.push(startKeyWatch({ calls, keys: authenticator, clock, staleLimitMs: config.outage.serveMs }));
  const bindings = new CallerBindings({ store, clock, log });
  (await bindings.prepare(config))();
  const callerPorts = { keys: authenticator, clock, bindings: () => bindings.inForce };
  const written = ledgerOfAnswers(config, slices?.settledBy(ledger) ?? ledger);
  const ports = { router, permit, limiter, ledger: written, recorder: observer, clock };
  const stateSecret = isAway ? outage.before!.stateSecret : await store.secret(STATE_SECRET);
  const seal = createStateSeal(stateSecret);
  undo.push(outage.keep(authenticator, { stateSecret, replicas: () => rates.replicas() }));
  const contents = storedContentsOf(config, { store: store.contents, clock, log });
  undo.push(() => contents?.close());
  const completions = createCompletions({ ...ports, seal, contents });
  const { settling } = completions;
  undo.push(() => {
    settling.cut();
    return settling.idle();
  });
  const services: EdgeServices = {
    completions: readFormatRequests(completions, (refusal) => services.refused(refusal)),
    embedder: createEmbedder({ ...ports, settling }),
    models: createModels(router, limiter),
    responses: role === "core" ? undefined : keptResponsesOf(config, { store: store.responses, limiter, clock, log }),
    authenticate: (shown) => authenticateCaller(callerPorts, toShown(shown, bindings.inForce)),
    limitsOf: (principal) => limiter.peek(principal),
    requireRequestRate: (principal) => limiter.requireRequestRate(principal),
    calls,
    admission,
    connections,
    clock,
    traces: tracing.traces,
    refused(refusal) {
      observer.refused(refusal);
      if (refusal.principal !== undefined) limiter.countRefused(refusal.principal, refusal.failure);
    },
  };

  // An administrator asks about a key, so the request does not count for it.
  const explanations = readFormatRequests(
    { ...completions, explain: (request, call, mode) => explainFor({ ...ports, seal }, request, { call, mode }) },
    () => undefined,
  );

  let draining = false;
  const shutdownDelay = new ShutdownDelay(clock, config.shutdown.delayMs);
  const sharedGrpc = config.http.grpc && role !== "core" ? createSharedGrpc(services, config.grpc) : undefined;
  undo.push(() => sharedGrpc?.close());
  const grpcTls = sharedGrpc === undefined ? await openTls("grpc", config, log) : undefined;
  const ownGrpc =
    sharedGrpc === undefined
      ? await startListening("grpc", config, () =>
          startGrpcServer(services, { ...config.grpc, ...config.grpc.listen, tls: grpcTls }),
        )
      : undefined;
  undo.push(() => ownGrpc?.close());
  const mounted =
    role === "core"
      ? undefined
      : await consoleOf(config, {
          ...services,
          explain: (...asked) => explanations.explain(...asked),
          access,
          store,
          contents,
          router,
          health,
          rates,
          inForce: () => inForce,
          source: () => source,
          credentials: {
            seal: (...asked) => credentials.seal(...asked),
            sealKeys: (...asked) => credentials.sealKeys(...asked),
            openKeys: (...asked) => credentials.openKeys(...asked),
            sealChannel: (...asked) => credentials.sealChannel(...asked),
            openChannel: (...asked) => credentials.openChannel(...asked),
          },
          feed,
          observer,
          log,
        });
  const grpcPort = (): number => ownGrpc?.port ?? http?.port ?? 0;
  const documents = await documentsOf(grpcPort);
  const httpTls = mounted && (await openTls("http", config, log));
  const http =
    mounted &&
    (await startListening("http", config, () =>
      startHttpServer(services, {
        ...config.http.listen,
        corsOrigins: config.http.corsOrigins,
        documents,
        console: mounted.console,
        tls: httpTls,
        grpc: sharedGrpc,
      }),
    ));
  undo.push(() => http?.close());

  return {
    httpPort: http?.port ?? 0,
    grpcPort: grpcPort(),
    operationsPort: 0,
    hasPages: mounted?.hasPages === true,
    activeCalls: () => calls.active,
    metrics,
    replica,
    readiness: () => ({
      ready: !draining && !ledger.state().unwritable,
      active_calls: calls.active,
      rates: { counted_in: rates.place, alone: rates.isAlone(), replicas: rates.replicas() },
      database: databaseHealth(),
      ledger: ledger.state(),
      stored_configuration: inForce.stored && {
        version: inForce.stored.version,
        left_out: inForce.stored.leftOut.length,
      },
      breakers: Object.fromEntries(router.health()),
      overload: toFacts(admission.state()),
    }),
    ...failing,
    async makeFirstKey() {
      if (!store.health().up) return undefined;
      const made = await createFirstKey({ store: store.keys, clock });
      if (made !== undefined)
        await access.log.record({ ...newKeyEntry(made.record), actor: { kind: "gateway", id: undefined } });
      return made?.secret;
    },
    prepareSetup: async () => (role === "core" || !store.health().up ? undefined : prepareSetup(access)),
    reload: inTurn(async (next, changed, { pending: waiting, ...from }: ReloadSource = source) => {
      const simulatorUrl = await simulator.url(next);
      const bind = await bindings.prepare(next);
      const before = catalogue;
      const cipher = credentialCipherOf({ ...next, dataDir: config.dataDir });
      catalogue = catalogueOf(next, simulatorUrl, cipher);
      // In force from here on: nothing after it can fail.
      bind();
      credentials = cipher;
      const { models, routes } = catalogue;
      const unchanged = unchangedProviders(inForce, next);
      router.replace(models, {
        routes,
        aliases: next.aliases,
        backoff: next.retries,
        breaker: next.breaker,
        keepsHealth: ({ providerName }) => changed === "lists" || (changed === "stored" && unchanged.has(providerName)),
      });
      inForce = { ...config, ...reloadable(next) };
      pending = waiting ?? pendingSettings(config, next);
      source = from;
      // Calls that began with the old catalogue may still retry or fall back; its connections close when the last one ends.
      void calls
        .passed()
        .then(() => before.close())
        .catch((error: unknown) => log.warn({ cause: String(error) }, "closing replaced providers failed"));
      await Promise.all([httpTls?.check(), grpcTls?.check()]);
    }),
    async drain() {
      draining = true;
      http?.announce();
      (ownGrpc ?? sharedGrpc)?.announce();
      await shutdownDelay.wait();
      await drainCalls(
        [ownGrpc, http].flatMap((server) => server?.drain() ?? []),
        {
          calls,
          settling,
          clock,
          drainMs: config.shutdown.drainMs,
        },
      );
    },
    abort() {
      shutdownDelay.cut();
      calls.abortAll();
      settling.cut();
    },
    close: closeAll,
  };
}

/** Names of the providers that are the same in both configurations. */
function unchangedProviders(before: Config, after: Config): ReadonlySet<string> {
  const known = new Map(before.providers.map((provider) => [provider.name, JSON.stringify(provider)]));
  const same = after.providers.filter((provider) => known.get(provider.name) === JSON.stringify(provider));
  return new Set(same.map(({ name }) => name));
}

interface Draining {
  readonly calls: Calls;
  /** Absent in a front, which has no providers. */
  readonly settling?: Settling;
  readonly clock: Clock;
  readonly drainMs: number;
}

/**
 * Waits for the calls in flight, aborts them after `drainMs`, then waits for their connections to close and for the
 * providers' usage of aborted calls to settle.
 */
export async function drainCalls(
  connectionsEnded: readonly Promise<void>[],
  { calls, settling, clock, drainMs }: Draining,
): Promise<void> {
  const cancelTimer = clock.after(drainMs, () => calls.abortAll());
  await calls.idle();
  cancelTimer();
  const closed = new AbortController();
  await Promise.race([Promise.all(connectionsEnded), sleep(clock, CLOSING_MS, closed.signal)]);
  closed.abort();
  // Bounded by the models' `timeouts.settle_ms`.
  await settling?.idle();
}
