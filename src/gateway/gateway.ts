import { randomUUID } from "node:crypto";
import { createAuthenticator } from "../access/key-cache.ts";
import { createFirstKey } from "../access/keys.ts";
import { permit } from "../access/principal.ts";
import { prepareSetup, type SetupState } from "../access/setup-token.ts";
import type { Config } from "../config/config.ts";
import { readVersion } from "../config/version.ts";
import type { Settling } from "../core/accounting.ts";
import { type Clock, sleep, systemClock } from "../core/clock.ts";
import { createCompletions } from "../core/completions.ts";
import { createModels } from "../core/models.ts";
import { Calls } from "../inbound/calls.ts";
import { bearerToken, startKeyWatch } from "../inbound/current-key.ts";
import { RequestFeed } from "../inbound/dashboard/request-feed.ts";
import { startGrpcServer } from "../inbound/grpc/server.ts";
import { startHttpServer } from "../inbound/http/server.ts";
import type { EdgeServices } from "../inbound/services.ts";
import { createLimiter } from "../limits/limiter.ts";
import type { RateStore } from "../limits/rates.ts";
import { createRouter } from "../router/router.ts";
import { createHealthRecorder } from "../router/upstream-health.ts";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import { openStore } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { type Readiness, startOperationsServer } from "../telemetry/operations.ts";
import { buildCatalogue } from "./catalogue.ts";
import { createConnections } from "./connections.ts";
import { consoleOf, documentsOf } from "./console.ts";
import { jobsOf, startHousekeeping } from "./housekeeping.ts";
import { createObserver, joinObservers, type Observer } from "./observer.ts";
import { createAdmission, toFacts } from "./overload.ts";
import { accessOf } from "./access.ts";
import { openAccounting } from "./accounting.ts";
import { openRates } from "./rates.ts";
import { SimulatorOnDemand } from "./simulator-on-demand.ts";
import { ShutdownDelay, startListening, type Teardown, undoneOnFailure } from "./starting.ts";

/** A running gateway: everything joined and listening. */
export interface Gateway {
  /** 0 where there is no such entrance: a core has none for HTTP, a front none for gRPC. */
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsPort: number;
  /** Whether the dashboard's pages are served: only beside a core, and when they are built. */
  readonly hasPages: boolean;
  /** Calls under way now. */
  activeCalls(): number | Promise<number>;
  /** Makes the first key when there has never been one; answers its secret. */
  makeFirstKey(): Promise<string | undefined>;
  /** How the first administrator is made, where the dashboard is served. */
  prepareSetup(): Promise<SetupState | undefined>;
  /** From now on these are the models and providers; addresses and the rest stay until a restart. */
  reload(config: Config): Promise<void>;
  /** Takes no new work, lets calls under way end for as long as the configuration says, then ends them. */
  drain(): Promise<void>;
  /** Ends calls under way at once, during a drain too. */
  abort(): void;
  /** Closes everything. */
  close(): Promise<void>;
  /** Resolves with the reason when it cannot go on. Missing: never. */
  readonly failed?: Promise<Error>;
}

/** A gateway that is one of several behind the same addresses: it has no operations port. */
export interface MemberGateway extends Gateway {
  readonly metrics: Metrics;
  /** What `/readyz` of the operations port says of this process. */
  readiness(): Readiness;
}

/** What a member shares with the others. */
export interface Shared {
  /** In place of its own memory, where that is where rates would be counted. */
  readonly rates: RateStore;
  /** In place of one of its own. */
  readonly simulator: Pick<SimulatorOnDemand, "url">;
  /** Which keys the others have changed, and which this one has. */
  readonly keyChanges: {
    subscribe(changed: (hash: string | undefined) => void): void;
    tell(hash: string | undefined): void;
  };
}

/** How long connections may take to close once their calls have ended. */
const CLOSING_MS = 2000;

/** Builds the parts, joins them and listens; what was begun is undone when something fails. A core alone has no HTTP. */
export async function startGateway(config: Config, log: Logger, role: "all" | "core" = "all"): Promise<Gateway> {
  return undoneOnFailure(async (teardown) => {
    const member = await assemble(config, log, { ...teardown, role, shared: undefined });
    return serveAlone(member, config, teardown);
  });
}

/** The same for one of several. */
export function startMember(
  config: Config,
  log: Logger,
  { role, shared }: { readonly role: "all" | "core"; readonly shared: Shared },
): Promise<MemberGateway> {
  return undoneOnFailure((teardown) => assemble(config, log, { ...teardown, role, shared }));
}

/** Gives a gateway that serves what a program has once: the operations port. */
export async function serveAlone(
  member: MemberGateway,
  config: Config,
  { undo }: Pick<Teardown, "undo">,
): Promise<Gateway> {
  const operations = await startListening("operations", config, () =>
    startOperationsServer({
      ...config.operations.listen,
      metrics: member.metrics,
      readiness: () => member.readiness(),
    }),
  );
  undo.push(() => operations.close());
  return { ...member, operationsPort: operations.port };
}

async function assemble(
  config: Config,
  log: Logger,
  { undo, closeAll, role, shared }: Teardown & { readonly role: "all" | "core"; readonly shared: Shared | undefined },
): Promise<MemberGateway> {
  const clock = systemClock;
  const store = await openStore(config);
  undo.push(() => store.close());
  const { versions } = store;
  if (versions.before !== versions.after)
    log.info({ schema_before: versions.before, schema: versions.after }, "database migrated");
  const accounting = await openAccounting(config, { store: store.ledger, clock, log });
  undo.push(() => accounting.close());
  const { ledger } = accounting;
  const replica = randomUUID();
  const rates = await openRates(config, { database: store, clock, log, replica, shared: shared?.rates });
  undo.push(() => rates.store.close());
  const limiter = createLimiter({
    rates: rates.store,
    budgets: store.budgets,
    defaults: config.limits.account,
    clock,
    burstMs: config.limits.burstMs,
    replicaId: replica,
  });
  undo.push(() => limiter.close());
  const access = accessOf(config, { store, clock, log });
  const calls = new Calls(clock);
  const readScheduler = new ReadScheduler();
  const admission = createAdmission(config, { clock, log, readScheduler, countsAccounts: true });
  undo.push(() => admission.close());
  const connections = createConnections(config);
  const housekeeping = startHousekeeping(jobsOf(config, { store, clock }), { clock, log });
  undo.push(() => housekeeping.close());
  const own = new SimulatorOnDemand(config);
  undo.push(() => own.close());
  const simulator = shared?.simulator ?? own;
  let catalogue = buildCatalogue(config, { simulatorUrl: await simulator.url(config), readScheduler });
  let inForce = config;
  undo.push(() => catalogue.close());

  const { retries, breaker } = config;
  const router = createRouter({ models: catalogue.models, clock, random: Math.random, backoff: retries, breaker });
  const metrics = createMetrics({
    activeCalls: () => calls.active,
    breakers: () => router.health(),
    ledgerWaiting: () => ledger.state().waiting,
    ratesLocal: () => rates.isAlone(),
    ratesDecidedLocally: () => rates.decidedAlone(),
    replicas: () => rates.replicas(),
    database: () => store.health(),
    info: { version: readVersion(), schema: String(versions.after) },
    admissionWaiting: () => admission.state().waiting,
    shed: () => admission.state().refused,
    connectionsRefused: () => connections.refused,
  });
  const feed = new RequestFeed(clock);
  const health = createHealthRecorder(router, clock);
  const healthObserver: Observer = { record: (entry) => health.record(entry), refused: () => undefined };
  const observer = joinObservers([
    createObserver({ log, metrics, isModel: (id) => router.find(id) !== undefined }),
    ...(role === "core" ? [] : [feed, healthObserver]),
  ]);
  const authenticator = createAuthenticator({ store: store.keys, clock });
  undo.push(store.keyChanges.subscribe((hash) => authenticator.invalidate(hash)));
  // PostgreSQL tells all processes by itself.
  if (shared !== undefined && store.kind === "sqlite") {
    shared.keyChanges.subscribe((hash) => authenticator.invalidate(hash));
    undo.push(store.keyChanges.subscribe((hash) => shared.keyChanges.tell(hash)));
  }
  undo.push(startKeyWatch({ calls, keys: authenticator, clock }));
  const completions = createCompletions({ router, permit, limiter, ledger, recorder: observer, clock });
  const { settling } = completions;
  undo.push(() => {
    settling.cut();
    return settling.idle();
  });
  const services: EdgeServices = {
    completions,
    models: createModels(router, limiter),
    authenticate: (authorization) => authenticator.authenticate(bearerToken(authorization)),
    limitsOf: (principal) => limiter.peek(principal),
    requireRequestRate: (principal) => limiter.requireRequestRate(principal),
    calls,
    admission,
    connections,
    clock,
    refused(refusal) {
      observer.refused(refusal);
      if (refusal.principal !== undefined) limiter.countRefused(refusal.principal, refusal.failure);
    },
  };

  let draining = false;
  const shutdownDelay = new ShutdownDelay(clock, config.shutdown.delayMs);
  const grpc = await startListening("grpc", config, () =>
    startGrpcServer(services, { ...config.grpc, ...config.grpc.listen }),
  );
  undo.push(() => grpc.close());
  const mounted =
    role === "core"
      ? undefined
      : await consoleOf(config, {
          ...services,
          access,
          store,
          router,
          health,
          rates,
          inForce: () => inForce,
          feed,
          observer,
          log,
        });
  const documents = await documentsOf(grpc.port);
  const http =
    mounted &&
    (await startListening("http", config, () =>
      startHttpServer(services, {
        ...config.http.listen,
        corsOrigins: config.http.corsOrigins,
        documents,
        console: mounted.console,
      }),
    ));
  undo.push(() => http?.close());

  return {
    httpPort: http?.port ?? 0,
    grpcPort: grpc.port,
    operationsPort: 0,
    hasPages: mounted?.hasPages === true,
    activeCalls: () => calls.active,
    metrics,
    readiness: () => ({
      ready: !draining,
      active_calls: calls.active,
      rates: { counted_in: rates.place, alone: rates.isAlone(), replicas: rates.replicas() },
      database: store.health(),
      ledger: ledger.state(),
      breakers: Object.fromEntries(router.health()),
      overload: toFacts(admission.state()),
    }),
    async makeFirstKey() {
      return (await createFirstKey({ store: store.keys, clock }))?.secret;
    },
    prepareSetup: async () => (role === "core" ? undefined : prepareSetup(access)),
    async reload(next) {
      const simulatorUrl = await simulator.url(next);
      // From here on without a pause, so that two reloads cannot replace the same catalogue.
      const before = catalogue;
      catalogue = buildCatalogue(next, { simulatorUrl, readScheduler });
      router.replace(catalogue.models);
      inForce = { ...config, providers: next.providers, models: next.models };
      // Calls that were begun with it may still retry or fall back: its connections close when the last of them ends.
      void calls
        .passed()
        .then(() => before.close())
        .catch((error: unknown) => log.warn({ cause: String(error) }, "closing replaced providers failed"));
    },
    async drain() {
      draining = true;
      http?.announce();
      grpc.announce();
      await shutdownDelay.wait();
      await drainCalls([grpc.drain(), ...(http === undefined ? [] : [http.drain()])], {
        calls,
        settling,
        clock,
        drainMs: config.shutdown.drainMs,
      });
    },
    abort() {
      shutdownDelay.cut();
      calls.abortAll();
      settling.cut();
    },
    close: closeAll,
  };
}

interface Draining {
  readonly calls: Calls;
  /** Absent where there are no providers. */
  readonly settling?: Settling;
  readonly clock: Clock;
  readonly drainMs: number;
}

/**
 * Waits for the calls under way, ends those that take longer, and then waits for their connections, which are closing, and
 * for the providers' counts of what was ended.
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
  // Bounded by the models' time to settle.
  await settling?.idle();
}
