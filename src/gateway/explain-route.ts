import { permit } from "../access/principal.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { explainFor } from "../core/completions.ts";
import { createStateSeal, STATE_SECRET } from "../core/provider-state.ts";
import { readChatRequest } from "../formats/openai-chat/request.ts";
import { type RoutePlanJson, writeRoutePlan } from "../formats/route-plan.ts";
import { addFields } from "../inbound/attribution.ts";
import { newCompletionId, requestIdFrom } from "../inbound/calls.ts";
import { findPrincipal } from "../inbound/dashboard/key-principal.ts";
import { createLimiter } from "../limits/limiter.ts";
import { createMemoryRates } from "../limits/memory.ts";
import { createRouter } from "../router/router.ts";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import type { Store } from "../store/store.ts";
import { buildCatalogue } from "./catalogue.ts";

/** A request to explain. */
export interface AskedRoute {
  readonly keyId: string;
  /** The parsed body of a chat completion. */
  readonly json: unknown;
}

/** Nothing is sent to it. */
const SIMULATOR_URL = "http://127.0.0.1";

/**
 * Explains the plan for a request of a key by a configuration and its database. This process takes every provider for up,
 * has measured none and counts no rates. Throws a Failure as the completion would.
 */
export async function explainRoute(
  config: Config,
  store: Pick<Store, "keys" | "budgets" | "ledger" | "secret">,
  { keyId, json }: AskedRoute,
): Promise<RoutePlanJson> {
  const clock = systemClock;
  const { burstMs, limits } = config;
  const principal = await findPrincipal({ keys: store.keys, clock }, keyId);
  const catalogue = buildCatalogue(config, { simulatorUrl: SIMULATOR_URL, readScheduler: new ReadScheduler() });
  const rates = createMemoryRates({ clock, burstMs });
  const limiter = createLimiter({
    rates,
    budgets: store.budgets,
    spending: (subjects, month) => store.ledger.spending(subjects, month),
    defaults: () => limits,
    clock,
    burstMs,
    replicaId: "explain",
  });
  try {
    const { models, routes } = catalogue;
    const { aliases, retries, breaker } = config;
    const router = createRouter({ models, routes, aliases, clock, random: Math.random, backoff: retries, breaker });
    const { request, unrecognized, stream, nameOf } = readChatRequest(json);
    const call = {
      principal,
      attribution: addFields(undefined, request),
      requestId: requestIdFrom(undefined),
      completionId: newCompletionId(),
      entrance: "console",
      signal: new AbortController().signal,
      arrivedMs: clock.monotonic(),
      unrecognized,
      admitted: () => undefined,
    } as const;
    const seal = createStateSeal(await store.secret(STATE_SECRET));
    const plan = await explainFor({ router, permit, limiter, seal }, request, {
      call,
      mode: stream ? "stream" : "whole",
    });
    return writeRoutePlan(plan, nameOf);
  } finally {
    limiter.close();
    await Promise.all([rates.close(), catalogue.close()]);
  }
}
