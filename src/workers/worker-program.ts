// Entry point of a worker process. It is controlled by its parent and ends when the parent is gone.
import { systemClock } from "../core/clock.ts";
import { readHealthNotes, writeHealthNote } from "../core/health-notes.ts";
import { processEnvironment } from "../config/load.ts";
import { NOTHING } from "../limits/credits.ts";
import { createLogger } from "../telemetry/logger.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { MemberGateway } from "../gateway/gateway.ts";
import type { ConfigSource } from "../config/parse.ts";
import type { Assignment, InForce, ParentCalls, WorkerCalls } from "./calls.ts";
import { Channel, type Handlers } from "./channel.ts";
import { createWorkerRates, type WorkerRates } from "./worker-rates.ts";

/** Limit for the parent's answer to a note. */
const NOTES_LIMIT_MS = 1_000;

let gateway: MemberGateway | undefined;
let starting: Promise<MemberGateway> | undefined;
let draining: Promise<MetricsSnapshot> | undefined;
let simulatorUrl: string | undefined;
let rates: WorkerRates | undefined;
let giveUp = (_reason: string): void => undefined;
const keyListeners = new Set<(hash: string | undefined) => void>();

const handlers: Handlers<WorkerCalls> = {
  async start(assignment) {
    starting = start(assignment);
    gateway = await starting;
    void gateway.failed?.then((error) => giveUp(error.message));
    const { httpPort, grpcPort, hasPages } = gateway;
    return { httpPort, grpcPort, hasPages };
  },
  makeFirstKey: async () => (await started().makeFirstKey()) ?? null,
  prepareSetup: async () => (await started().prepareSetup()) ?? null,
  readiness: () => started().readiness(),
  metrics: () => started().metrics.snapshot(),
  async reload(next) {
    await starting;
    simulatorUrl = next.simulatorUrl ?? undefined;
    await started().reload(next.config, next.changed, { ...toSource(next), pending: next.pending });
    return null;
  },
  drain,
  abort() {
    gateway?.abort();
    return null;
  },
  keyChanged({ hash }) {
    for (const changed of keyListeners) changed(hash ?? undefined);
    return null;
  },
  recallCredit: (subject) => rates?.recallCredit(subject) ?? NOTHING,
};

// A terminal and a service manager signal the whole process group; only the parent acts on signals. (Without a listener for
// SIGUSR1 Node opens its inspector to every local user.)
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"] as const) process.on(signal, () => undefined);
const parent = new Channel<ParentCalls>(process, handlers);

async function start(assignment: Assignment): Promise<MemberGateway> {
  const { config, role, number, simulatorUrl: url } = assignment;
  const log = createLogger(config.log.level, number);
  giveUp = (reason) => {
    log.fatal({ reason }, "giving up");
    quit();
  };
  simulatorUrl = url ?? undefined;
  process.on("uncaughtException", (error: Error) => {
    // The process can no longer be trusted with new work, but its calls in flight may end.
    log.fatal({ cause: String(error), stack: error?.stack }, "unexpected fault");
    quit();
  });
  if (role.name === "front") {
    const { startFrontMember } = await import("../gateway/front-gateway.ts");
    return startFrontMember(config, log, role.core);
  }
  rates = createWorkerRates(parent, { burstMs: config.burstMs, clock: systemClock });
  const { startMember } = await import("../gateway/gateway.ts");
  return startMember(config, log, {
    role: role.name,
    source: toSource(assignment),
    pending: assignment.pending,
    shared: {
      worker: number,
      rates,
      notes: {
        exchange: async (note) =>
          readHealthNotes(await parent.ask("healthNote", writeHealthNote(note), NOTES_LIMIT_MS)),
      },
      simulator: { url: async () => simulatorUrl },
      keyChanges: {
        subscribe: (changed) => void keyListeners.add(changed),
        tell: (hash) => parent.tell("keyChanged", { hash: hash ?? null }),
      },
    },
  });
}

/** JSON has no undefined. */
function toSource({ source: { file, text, stored, keys } }: InForce): ConfigSource {
  return { file, text, stored, keys, env: processEnvironment() };
}

/** Ends this process when its calls in flight have ended; the parent starts another one. */
function quit(): void {
  parent.tell("leaving", null);
  process.exitCode = 1;
  void leave();
}

/** Drains and exits, whether or not the drain succeeds. */
async function leave(): Promise<void> {
  await drain().catch(() => undefined);
  process.exit(1);
}

function started(): MemberGateway {
  if (gateway === undefined) throw new Error("the worker has not started");
  return gateway;
}

function drain(): Promise<MetricsSnapshot> {
  draining ??= end();
  return draining;
}

async function end(): Promise<MetricsSnapshot> {
  await gateway?.drain();
  const last = await gateway?.metrics.snapshot();
  await gateway?.close();
  return last ?? [];
}
