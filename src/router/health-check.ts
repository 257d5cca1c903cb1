import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import { type AttemptPorts } from "./attempts.ts";
import { TimeLimit } from "./time-limit.ts";

/** A call that only tests whether an upstream model works. */
export interface HealthCheck {
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  /** Time without calls after which the check is due. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/** Account ID of checks, which belong to no account. */
const NOBODY = "";

/** Implements `OwnedRouter.check`. The breaker counts the check like a call of one more account. */
export async function runCheck(
  model: Model,
  { ask, idleMs, signal }: HealthCheck,
  { breakerOf, loadOf, clock }: Pick<AttemptPorts, "breakerOf" | "loadOf" | "clock">,
): Promise<boolean | undefined> {
  const breaker = breakerOf(model);
  const load = loadOf(model);
  const { state } = breaker;
  if (state === "open" || (state === "closed" && load.idleMs < idleMs)) return undefined;
  const permit = breaker.admit(NOBODY);
  if (permit instanceof Failure) return undefined;
  load.called();
  const limit = new TimeLimit(signal, clock);
  limit.start(model.timeouts.firstContentMs, "The upstream provider did not answer in time.");
  try {
    await limit.race(ask(limit.signal));
    permit.succeeded();
    return true;
  } catch (reason) {
    const failure = Failure.from(reason);
    if (signal.aborted || !failure.code.startsWith("upstream_")) {
      permit.abandoned();
      return undefined;
    }
    permit.failed(failure);
    return false;
  } finally {
    limit.close();
  }
}
