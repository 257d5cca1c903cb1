import { randomUUID } from "node:crypto";
import { pendingSettings } from "../config/applied.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { createMemoryRates } from "../limits/memory.ts";
import { lockForServing } from "../store/serve-lock.ts";
import { FleetMetrics } from "../telemetry/fleet-metrics.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Gateway, SourceParts } from "../gateway/gateway.ts";
import { exportMetrics } from "../gateway/metric-export.ts";
import { type Readiness, startOperations, withLatest } from "../gateway/operations.ts";
import { SimulatorOnDemand } from "../gateway/simulator-on-demand.ts";
import { inTurn, reloadable, type Teardown, undoneOnFailure } from "../gateway/starting.ts";
import type { Role } from "../gateway/role.ts";
import type { InForce, Started } from "./calls.ts";
import { Fleet } from "./fleet.ts";
import { NoteBoard } from "./note-board.ts";
import { ParentRates } from "./parent-rates.ts";
import { mergeReadiness } from "./readiness.ts";

/** Limit for a worker's answer about its readiness or metrics; a slower one is not counted as ready. */
const FACTS_MS = 1_000;
/** Time a worker needs to close after its drain. */
const CLOSING_MS = 15_000;

/**
 * Starts a gateway of several worker processes behind the same addresses. This process accepts connections and hands them
 * out round-robin, watches the workers, counts rates where they are counted in memory, and runs the operations port and the
 * simulator.
 */
export function startWorkers(
  config: Config,
  log: Logger,
  options: { readonly role: Role } & SourceParts,
): Promise<Gateway> {
  return undoneOnFailure((teardown) => assemble(config, log, { ...teardown, ...options }));
}

async function assemble(
  config: Config,
  log: Logger,
  { undo, closeAll, role, source: first, latestStored }: Teardown & { readonly role: Role } & SourceParts,
): Promise<Gateway> {
  if (role.name !== "front" && config.databaseUrl === undefined) undo.push(lockForServing(config.dataDir));
  const simulator = new SimulatorOnDemand(config);
  undo.push(() => simulator.close());
  const toInForce = async (next: Config, { file, text, stored, keys }: InForce["source"]): Promise<InForce> => ({
    config: { ...config, ...reloadable(next) },
    pending: pendingSettings(config, next),
    source: { file, text, stored, keys },
    simulatorUrl: role.name === "front" ? null : ((await simulator.url(next)) ?? null),
  });
  let inForce = await toInForce(config, first);
  const rates = new ParentRates({
    clock: systemClock,
    store: createMemoryRates({ clock: systemClock, burstMs: config.burstMs }),
  });
  const notes = new NoteBoard(systemClock);
  /** Listen addresses. A port chosen by the system (0) is kept for successors only while a worker listens on it. */
  let listens: Pick<Config, "http" | "grpc"> = config;
  const fleet: Fleet = new Fleet({
    size: config.workers,
    log,
    assign(number) {
      if (fleet.serving.length === 0) listens = withPorts(config, fleet.ports);
      return { ...inForce, config: { ...inForce.config, ...listens }, role, number };
    },
    handlers: (member) => ({
      rates: (message) => rates.perform(member, message),
      async renewRates(numbers) {
        await rates.renew(member, numbers);
        return Math.max(fleet.serving.length, 1);
      },
      healthNote: (text) => notes.exchange(member.name, text),
      keyChanged(change) {
        fleet.tellOthers(member, "keyChanged", change);
        return null;
      },
    }),
    onDrained: ({ name }, last) => metrics.note(name, last),
    onGone(member) {
      const { name } = member;
      void rates.leave(member);
      notes.leave(name);
      void metrics.forget(name);
    },
  });
  undo.push(() => fleet.end());
  const metrics = new FleetMetrics({ ready: () => fleet.serving.length, replaced: () => fleet.replaced });

  const collect = async (): Promise<void> => {
    for (const [member, snapshot] of await fleet.askAll("metrics", null, FACTS_MS)) {
      // A worker may have ended during the calls; its last snapshot is already in the sum.
      if (fleet.serving.includes(member)) metrics.note(member.name, snapshot);
    }
  };

  let draining = false;
  const readiness = async (): Promise<Readiness> => {
    const answers = await fleet.askAll("readiness", null, FACTS_MS);
    const merged = withLatest(mergeReadiness(answers.map(([, facts]) => facts)), latestStored);
    return {
      ...merged,
      ready: merged.ready && !draining,
      workers: { configured: config.workers, ready: answers.length, replaced: fleet.replaced },
    };
  };
  const operations = await startOperations(config, {
    log,
    metrics: {
      contentType: metrics.contentType,
      async text() {
        await collect();
        return metrics.text();
      },
    },
    readiness,
  });
  undo.push(() => operations.close());
  const started = await fleet.start();
  undo.push(
    await exportMetrics(config, {
      log,
      replica: randomUUID(),
      metrics: {
        async snapshot() {
          await collect();
          return metrics.snapshot();
        },
      },
    }),
  );

  return {
    ...started,
    operationsPort: operations.port,
    makeFirstKey: async () => (await fleet.serving[0]?.ask("makeFirstKey", null)) ?? undefined,
    prepareSetup: async () => (await fleet.serving[0]?.ask("prepareSetup", null)) ?? undefined,
    failed: fleet.failed,
    activeCalls: async () => Number((await readiness())["active_calls"]),
    reload: inTurn(async (next, changed, source) => {
      const before = inForce;
      inForce = await toInForce(next, source ?? before.source);
      try {
        await fleet.reload({ ...inForce, changed });
      } catch (error) {
        inForce = before;
        // Some workers may have applied the change.
        await fleet.reload({ ...before, changed }).catch(() => undefined);
        throw error;
      }
      await operations.reload();
    }),
    async drain() {
      draining = true;
      await fleet.drain(config.shutdown.delayMs + config.shutdown.drainMs + CLOSING_MS);
    },
    abort: () => fleet.abort(),
    close: closeAll,
  };
}

function withPorts({ http, grpc }: Config, ports: Started | undefined): Pick<Config, "http" | "grpc"> {
  if (ports === undefined) return { http, grpc };
  return {
    http: { ...http, listen: { ...http.listen, port: ports.httpPort } },
    grpc: { ...grpc, listen: { ...grpc.listen, port: ports.grpcPort } },
  };
}
