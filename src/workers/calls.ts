import type { SetupState } from "../access/setup-token.ts";
import type { Config } from "../config/config.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { Readiness } from "../telemetry/operations.ts";
import type { Role } from "../gateway/role.ts";
import type { RateMessage, RateReply } from "./rate-messages.ts";

/** What the parent asks of a worker. */
export type WorkerCalls = {
  /** Comes first, and once: everything is built and listens. Fails with a message for people. */
  readonly start: { readonly input: Assignment; readonly output: Started };
  readonly makeFirstKey: { readonly input: null; readonly output: string | null };
  readonly prepareSetup: { readonly input: null; readonly output: SetupState | null };
  readonly readiness: { readonly input: null; readonly output: Readiness };
  readonly metrics: { readonly input: null; readonly output: MetricsSnapshot };
  readonly reload: { readonly input: InForce; readonly output: null };
  /** Takes no new work; answers when everything has ended and is closed. */
  readonly drain: { readonly input: null; readonly output: null };
  /** Ends calls under way, during a drain too. */
  readonly abort: { readonly input: null; readonly output: null };
  readonly keyChanged: { readonly input: KeyChange; readonly output: null };
};

/** What a worker asks of the parent. */
export type ParentCalls = {
  readonly rates: { readonly input: RateMessage; readonly output: RateReply };
  /** All that was taken and not given back is still under way. Answers how many workers there are. */
  readonly renewRates: { readonly input: null; readonly output: number };
  readonly keyChanged: { readonly input: KeyChange; readonly output: null };
  /** Something went wrong: it lets calls end that are under way, and another one should take its place. */
  readonly leaving: { readonly input: null; readonly output: null };
};

/** The configuration that is to be served with, and what goes with it. */
export interface InForce {
  readonly config: Config;
  /** Of the parent's simulator, where providers are simulated. */
  readonly simulatorUrl: string | null;
}

/** What a worker is to be. */
export interface Assignment extends InForce {
  readonly role: Role;
  /** Its place among the workers, from 1; its successor has the same. */
  readonly number: number;
}

/** What a worker has become. As a gateway says it. */
export interface Started {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly hasPages: boolean;
}

/** The hash of a key that was changed; null when any may have been. */
export interface KeyChange {
  readonly hash: string | null;
}
