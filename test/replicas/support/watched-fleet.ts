import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { generateApiKey } from "../../../src/access/api-key.ts";
import { createKey, type CreatedKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { type Limits, NO_LIMITS } from "../../../src/core/principal.ts";
import { says } from "../../support/scripted-upstream.ts";
import { type Backing, type Deployment, type DeploymentOptions, MODEL, startDeployment } from "./deployment.ts";
import { type Seen, startTraffic, type Traffic } from "./traffic.ts";
import { idsIn } from "./written-ids.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** Response of `/readyz` of one replica. */
interface Readiness {
  readonly ready: boolean;
  readonly rates: { readonly counted_in: string; readonly alone: boolean };
  readonly ledger: { readonly waiting: number; readonly away: boolean };
}

/** A period of `performance.now()`. */
export interface Window {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * Replicas with four permanent callers: `plain` has a rate limit that is never reached; `budget` a sufficient budget;
 * `scarce` exceeds its rate limit; and `unknown` sends another unknown key each time.
 */
export interface WatchedFleet {
  readonly deployment: Deployment;
  readonly traffic: Traffic;
  readonly budgetKeyId: string;
  /** Account of all its keys. */
  readonly accountId: string;
  createKey(limits?: Partial<Limits>): Promise<CreatedKey>;
  readiness(): Promise<Readiness[]>;
  /** Resident memory of all replicas, in bytes. */
  rssBytes(): number;
  /** Requests of one caller that began in the window. */
  began(caller: string, window: Window): Seen[];
  /** Requests of one caller that began and ended in the window. */
  within(caller: string, window: Window): Seen[];
  /** IDs of completions whose end was received that are not in the ledger exactly once. */
  findLost(): Promise<string[]>;
  /** Number of log lines with this message, for each replica. */
  countInLogs(message: string): number[];
  close(): Promise<void>;
}

/** Requests per minute of `scarce`'s key, and its burst. */
export const SCARCE_RPM = 60;
const BURST_SECONDS = 10;
export const BURST = (SCARCE_RPM / 60) * BURST_SECONDS;

/** More than is ever requested here. */
const WIDE_RPM = 60_000;
const AMPLE_MICRO_USD = 1_000_000_000;
/** Duration of an upstream response, so that some requests are always in flight. */
const ANSWER_MS = 20;

/** Starts the replicas, creates the keys, and starts the callers. */
export async function startWatchedFleet({
  replicas,
  program,
  ...backing
}: Backing & Pick<DeploymentOptions, "replicas" | "program">): Promise<WatchedFleet> {
  const limits = { ...UNLIMITED, burst_seconds: BURST_SECONDS };
  const deployment = await startDeployment({
    replicas,
    ...backing,
    ...(program !== undefined && { program }),
    config: { limits, log: { level: "info" } },
  });
  const { products, store } = deployment;
  deployment.upstream.script(MODEL, [(call) => void delay(ANSWER_MS).then(() => says("one two three")(call))]);
  const make = (given: Partial<Limits> = {}): Promise<CreatedKey> =>
    createKey({ store: store.keys, clock: systemClock }, { name: "watched", limits: { ...NO_LIMITS, ...given } });
  const plain = await make({ requestsPerMinute: WIDE_RPM });
  const budget = await make({ monthlyBudgetMicroUsd: AMPLE_MICRO_USD });
  const scarce = await make({ requestsPerMinute: SCARCE_RPM });
  const traffic = startTraffic(
    products.map(({ url }) => url),
    [
      { name: "plain", everyMs: 40, key: () => plain.secret },
      { name: "budget", everyMs: 150, key: () => budget.secret },
      { name: "scarce", everyMs: 125, key: () => scarce.secret },
      { name: "unknown", everyMs: 400, key: generateApiKey },
    ],
  );
  const began = (caller: string, { sinceMs, untilMs }: Window): Seen[] =>
    traffic.seen.filter((one) => one.caller === caller && one.beganMs >= sinceMs && one.beganMs < untilMs);
  return {
    deployment,
    traffic,
    budgetKeyId: budget.record.id,
    accountId: budget.record.accountId,
    createKey: make,
    readiness: () => Promise.all(products.map(({ operationsUrl }) => readinessOf(operationsUrl))),
    rssBytes: () => products.reduce((total, product) => total + product.rssBytes(), 0),
    began,
    within: (caller, window) => began(caller, window).filter(({ endedMs }) => endedMs < window.untilMs),
    async findLost() {
      const counts = new Map<string, number>();
      for (const id of await idsIn(`${products[0]!.home}/data`, backing.databaseUrl))
        counts.set(id, (counts.get(id) ?? 0) + 1);
      return traffic.seen.flatMap(({ id }) => (id === undefined || counts.get(id) === 1 ? [] : [id]));
    },
    countInLogs: (message) => products.map(({ output }) => output.stderr.split(`"msg":"${message}"`).length - 1),
    async close() {
      await traffic.stop();
      await deployment.close();
    },
  };
}

/** A replica that is not ready responds with the same body and another status. */
async function readinessOf(operationsUrl: string): Promise<Readiness> {
  const response = await fetch(`${operationsUrl}/readyz`, { signal: AbortSignal.timeout(5_000) });
  const readiness = (await response.json()) as Readiness;
  expect(response.status).toBe(readiness.ready ? 200 : 503);
  return readiness;
}
