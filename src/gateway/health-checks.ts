import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { canAnswerOneToken, type Model, upstreamKey } from "../core/model.ts";
import { isRoute } from "../core/route.ts";
import type { OwnedRouter } from "../router/router.ts";
import { askOneToken } from "./provider-test.ts";

/** Interval at which due checks are started. */
const TICK_MS = 5_000;
/** Part of it by which a tick is moved at random, so that processes do not check at the same moment. */
const JITTER = 0.2;
/** Checks in flight in this process. */
const MAX_IN_FLIGHT = 4;

interface HealthChecksPorts {
  /** The configuration in force. */
  readonly config: () => Pick<Config, "providers">;
  readonly router: Pick<OwnedRouter, "list" | "check">;
  readonly clock: Clock;
}

/**
 * Asks the models of providers with `health.check` for one token while no other request calls them, until it is stopped.
 * After a failed check the next one follows at the next tick. Models that make embeddings or pictures are not checked.
 */
export function startHealthChecks({ config, router, clock }: HealthChecksPorts): () => void {
  const closing = new AbortController();
  const running = new Set<string>();
  const due = new Set<string>();
  let cancel = (): void => undefined;
  const check = async (model: Model, intervalMs: number): Promise<void> => {
    const key = upstreamKey(model);
    if (running.has(key) || running.size >= MAX_IN_FLIGHT) return;
    running.add(key);
    const { signal } = closing;
    const ask = (limit: AbortSignal): Promise<unknown> => askOneToken(model, limit);
    const passed = await router.check(model, { ask, signal, idleMs: due.has(key) ? 0 : intervalMs });
    if (passed === false) due.add(key);
    else if (passed === true) due.delete(key);
    running.delete(key);
  };
  const tick = (): void => {
    const intervals = new Map(
      config().providers.flatMap((provider) =>
        !provider.simulated && provider.checkedMs !== undefined ? [[provider.name, provider.checkedMs] as const] : [],
      ),
    );
    const models = intervals.size === 0 ? [] : router.list().filter((each): each is Model => !isRoute(each));
    for (const model of models) {
      const intervalMs = intervals.get(model.providerName);
      if (intervalMs !== undefined && canAnswerOneToken(model)) void check(model, intervalMs);
    }
    plan();
  };
  const plan = (): void => {
    cancel = clock.after(TICK_MS * (1 - JITTER * Math.random()), tick);
  };
  plan();
  return () => {
    cancel();
    closing.abort(new Failure("cancelled", "The gateway stops."));
  };
}
