import type { SetupState } from "../access/setup-token.ts";
import type { Config } from "../config/config.ts";
import type { ConfigSource } from "../config/parse.ts";
import type { Setting } from "../config/settings.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { Amounts } from "../limits/credits.ts";
import type { Changed } from "../gateway/gateway.ts";
import type { Readiness } from "../gateway/operations.ts";
import type { Role } from "../gateway/role.ts";
import type { RateMessage, RateReply } from "./rate-messages.ts";

/** Calls from the parent to a worker. */
export type WorkerCalls = {
  /** The first call, made once: builds the gateway and listens. Fails with a message for an operator. */
  readonly start: { readonly input: Assignment; readonly output: Started };
  readonly makeFirstKey: { readonly input: null; readonly output: string | null };
  readonly prepareSetup: { readonly input: null; readonly output: SetupState | null };
  readonly readiness: { readonly input: null; readonly output: Readiness };
  readonly metrics: { readonly input: null; readonly output: MetricsSnapshot };
  readonly reload: { readonly input: InForce & { readonly changed: Changed }; readonly output: null };
  /** Takes no new work; answers when all calls have ended and everything is closed, with the metrics at that time. */
  readonly drain: { readonly input: null; readonly output: MetricsSnapshot };
  /** Ends calls in flight, during a drain too. */
  readonly abort: { readonly input: null; readonly output: null };
  readonly keyChanged: { readonly input: KeyChange; readonly output: null };
  /** Takes back the unspent credit of a subject. */
  readonly recallCredit: { readonly input: string; readonly output: Amounts };
};

/** Calls from a worker to the parent. */
export type ParentCalls = {
  readonly rates: { readonly input: RateMessage; readonly output: RateReply };
  /** Renews the leases of the reservations that the worker holds, given by their numbers. Answers the number of workers. */
  readonly renewRates: { readonly input: readonly number[]; readonly output: number };
  /** Replaces this worker's note about upstream models. Answers the notes of the other workers. */
  readonly healthNote: { readonly input: string; readonly output: readonly string[] };
  readonly keyChanged: { readonly input: KeyChange; readonly output: null };
  /** The worker had an unexpected fault: it lets its calls in flight end and should be replaced. */
  readonly leaving: { readonly input: null; readonly output: null };
};

/** The configuration in force, and its sources. */
export interface InForce {
  readonly config: Config;
  /** URL of the parent's simulator, where providers are simulated. */
  readonly simulatorUrl: string | null;
  /** Settings that wait for a restart of the parent. */
  readonly pending: readonly Setting[];
  /** Sources of the configuration, except the environment, which a worker inherits. */
  readonly source: Pick<ConfigSource, "file" | "text" | "stored" | "keys">;
}

/** The configuration and role of one worker. */
export interface Assignment extends InForce {
  readonly role: Role;
  /** Number of its slot among the workers, from 1; its successor gets the same. */
  readonly number: number;
}

/** A started worker, in the fields of a `Gateway`. */
export interface Started {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly hasPages: boolean;
}

/** Hash of a key that was changed; null when any key may have changed. */
interface KeyChange {
  readonly hash: string | null;
}
