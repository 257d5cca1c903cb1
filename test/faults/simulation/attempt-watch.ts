import { Failure } from "../../../src/core/failure.ts";
import { STOPPED } from "../../../src/core/ledger.ts";
import { upstreamKey } from "../../../src/core/model.ts";
import type { Journey, UpstreamRecord } from "./journey.ts";
import type { CallWatch } from "./upstreams.ts";
import type { Watch } from "./watch.ts";

/** Expected state of the circuit breaker of one upstream model. */
interface Health {
  /** Failures in a row of each account. */
  readonly failed: Map<string, number>;
  /** Whether the latest attempts of each account failed. */
  readonly latest: Map<string, readonly boolean[]>;
  /** When each account was last answered. */
  readonly answeredMs: Map<string, number>;
  /** Ends of the open periods of accounts. */
  readonly openPeriods: Map<string, { sinceMs: number; untilMs: number }>;
  /** The running probe of each account with an open period. */
  readonly probes: Map<string, UpstreamRecord>;
}

/** A retry in flight, with the provider's requests in flight when it was decided. */
interface Retry {
  readonly requests: number;
}

export interface AttemptWatchPorts {
  readonly watch: Watch;
  readonly nowMs: () => number;
  readonly breaker: { readonly failures: number; readonly openMs: number };
  /** Number of requests in flight whose primary model belongs to this provider. */
  readonly requestsOf: (provider: string) => number;
}

/** Checks the upstream calls of one process: no more than planned, none while a breaker is open, and few retries. */
export class AttemptWatch implements CallWatch {
  readonly #ports: AttemptWatchPorts;
  #healths = new Map<string, Health>();
  /** Health by call: a reload resets health, and calls from before do not count. */
  readonly #healthOf = new Map<UpstreamRecord, Health>();
  readonly #retries = new Map<string, Map<UpstreamRecord, Retry>>();
  /** Requests in flight when a completion's last call failed. */
  readonly #requestsAtFailure = new Map<Journey, number>();
  readonly #journeyOf = new Map<UpstreamRecord, Journey>();

  constructor(ports: AttemptWatchPorts) {
    this.#ports = ports;
  }

  /** Resets health. */
  reloaded(): void {
    this.#healths = new Map();
  }

  began(call: UpstreamRecord, journey: Journey): void {
    this.#journeyOf.set(call, journey);
    this.#expectPlanned(call, journey);
    this.#expectNotOpen(call, journey);
    this.#expectAffordable(call, journey);
  }

  committed(call: UpstreamRecord): void {
    const health = this.#healthOf.get(call);
    if (health !== undefined) this.#answered(call, health);
  }

  ended(call: UpstreamRecord, failure: unknown): void {
    const journey = this.#journeyOf.get(call)!;
    const outlived = this.#isStopped(call);
    this.#journeyOf.delete(call);
    const { accountId } = journey.key.grant.record;
    const provider = call.model.providerName;
    this.#retries.get(provider)?.delete(call);
    this.#requestsAtFailure.set(journey, this.#ports.requestsOf(provider));
    this.#learn(call, failure, { outlived, accountId });
  }

  /** Expects the primary at most twice, then each fallback once, in order. */
  #expectPlanned(call: UpstreamRecord, { calls, request, number }: Journey): void {
    const planned = [
      request.model,
      request.model,
      ...new Set(request.fallbackModels.filter((id) => id !== request.model)),
    ];
    let at = 0;
    for (const { model } of calls) at = planned.indexOf(model.id, at) + 1 || Infinity;
    if (at === Infinity) {
      const names = calls.map(({ model }) => model.id).join();
      this.#ports.watch.breach("attempts", `${names} were called, but the plan is ${planned.join()}`, number);
    }
    if (calls.length > 1) this.#ports.watch.count(calls.at(-2)!.model === call.model ? "retries" : "fallbacks");
    const open = calls.filter(({ state }) => state === "open").length;
    if (open > 1) this.#ports.watch.breach("attempts", `${open} calls are open at once`, number);
  }

  /** Expects no call of an account during its open period, and one probe of it at a time. */
  #expectNotOpen(call: UpstreamRecord, { number, key: { grant } }: Journey): void {
    const { accountId } = grant.record;
    const { watch, nowMs } = this.#ports;
    const key = upstreamKey(call.model);
    let health = this.#healths.get(key);
    if (health === undefined)
      this.#healths.set(
        key,
        (health = {
          failed: new Map(),
          latest: new Map(),
          answeredMs: new Map(),
          openPeriods: new Map(),
          probes: new Map(),
        }),
      );
    this.#healthOf.set(call, health);
    const period = health.openPeriods.get(accountId);
    if (period === undefined) return;
    if (period.untilMs > nowMs() && !worksForOthers(health, accountId, period.sinceMs))
      watch.breach("attempts", `${key} was called, but its breaker is open until ${period.untilMs}`, number);
    watch.count("probes");
    const probe = health.probes.get(accountId);
    if (probe !== undefined && !this.#isStopped(probe))
      watch.breach("attempts", `${key} has two probes at once, calls ${probe.number} and ${call.number}`, number);
    health.probes.set(accountId, call);
  }

  /** Expects one retry in flight for five first calls of a provider, or up to three. */
  #expectAffordable(call: UpstreamRecord, journey: Journey): void {
    const before = journey.calls.at(-2);
    if (before?.model !== call.model) return;
    const provider = call.model.providerName;
    let retries = this.#retries.get(provider);
    if (retries === undefined) this.#retries.set(provider, (retries = new Map()));
    retries.set(call, { requests: this.#requestsAtFailure.get(journey) ?? 0 });
    for (const other of retries.keys()) if (this.#isStopped(other)) retries.delete(other);
    const requests = Math.max(...[...retries.values()].map((retry) => retry.requests));
    if (retries.size > Math.max(3, Math.ceil(requests / 6))) {
      const what = `${retries.size} retries of ${provider} are in flight, with ${requests} requests`;
      this.#ports.watch.breach("attempts", what, journey.number);
    }
  }

  /** Whether its completion has ended, and the call continues only for its token counts. */
  #isStopped(call: UpstreamRecord): boolean {
    const journey = this.#journeyOf.get(call);
    return journey === undefined || journey.isStopped(this.#ports.nowMs());
  }

  #learn(
    call: UpstreamRecord,
    failure: unknown,
    { outlived, accountId }: { readonly outlived: boolean; readonly accountId: string },
  ): void {
    const health = this.#healthOf.get(call);
    this.#healthOf.delete(call);
    if (health === undefined) return;
    const isProbe = health.probes.get(accountId) === call;
    if (isProbe) health.probes.delete(accountId);
    // A call that we aborted does not count.
    if (outlived || (call.signal.aborted && !isOwnTimeout(call.signal.reason))) return;
    const latest = [...(health.latest.get(accountId) ?? []), failure !== undefined].slice(-WINDOW);
    health.latest.set(accountId, latest);
    if (failure === undefined) {
      if (isProbe) health.openPeriods.delete(accountId);
      health.failed.delete(accountId);
      health.answeredMs.set(accountId, this.#ports.nowMs());
      return;
    }
    if (!(failure instanceof Failure)) return;
    const { breaker, nowMs } = this.#ports;
    const works = worksForOthers(health, accountId, nowMs() - OTHERS_MS);
    const open = (openMs: number): void => {
      const before = health.openPeriods.get(accountId)?.untilMs ?? 0;
      health.openPeriods.set(accountId, { sinceMs: nowMs(), untilMs: Math.max(before, nowMs() + openMs) });
      this.#ports.watch.count("circuit breakers opened");
    };
    if (failure.code === "upstream_rate_limited" && failure.retryAfterMs !== undefined && !works)
      open(Math.min(failure.retryAfterMs, MAX_RATE_LIMIT_MS));
    if (!COUNTED.has(failure.code) || failure.requestBound) return;
    const inARow = (health.failed.get(accountId) ?? 0) + 1;
    health.failed.set(accountId, inARow);
    // Its open period may have begun before, by its latest attempts or as a probe for all: neither is known here.
    const mayBeOpen = latest.filter((failed) => failed).length > WINDOW / 2 || health.failed.size > 1;
    if (isProbe || (inARow >= breaker.failures && !mayBeOpen && !health.openPeriods.has(accountId)))
      open(breaker.openMs);
  }

  #answered(call: UpstreamRecord, health: Health): void {
    const accountId = this.#journeyOf.get(call)?.key.grant.record.accountId;
    if (accountId === undefined) return;
    health.answeredMs.set(accountId, this.#ports.nowMs());
    // Less than there may be: whether the call was a probe for all accounts is not known here.
    health.failed.delete(accountId);
    if (health.probes.get(accountId) !== call) return;
    health.probes.delete(accountId);
    health.openPeriods.delete(accountId);
  }
}

/** Whether another account has been answered since then. */
function worksForOthers({ answeredMs }: Health, accountId: string, sinceMs: number): boolean {
  return [...answeredMs].some(([other, atMs]) => other !== accountId && atMs > sinceMs);
}

/** Time after another account's answer in which failures of an account have no effect. */
const OTHERS_MS = 10_000;
const MAX_RATE_LIMIT_MS = 60_000;
/** Latest attempts of an account of which no more than half may fail. */
const WINDOW = 20;

const COUNTED: ReadonlySet<string> = new Set([
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_protocol",
  "upstream_refused_us",
]);

/** Whether the attempt's own timeout was exceeded: not the caller's, and not the total one. */
function isOwnTimeout(reason: unknown): boolean {
  return reason instanceof Failure && !STOPPED.has(reason.code) && !isTotalTimeout(reason);
}

/** Whether the timeout for all attempts was exceeded. */
function isTotalTimeout({ message }: Failure): boolean {
  return message.startsWith("The completion took longer");
}
