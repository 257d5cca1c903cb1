import { type Authenticator, createAuthenticator } from "../../../src/access/key-cache.ts";
import { permit } from "../../../src/access/principal.ts";
import { createCompletions, type OwnedCompletions } from "../../../src/core/completions.ts";
import type { CompletionRecord, NewLedgerEntry } from "../../../src/core/ledger.ts";
import type { Model, Price, Timeouts } from "../../../src/core/model.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { drainCalls } from "../../../src/gateway/gateway.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { createLedger, type OwnedLedger } from "../../../src/ledger/ledger.ts";
import { createLimiter, type OwnedLimiter } from "../../../src/limits/limiter.ts";
import { createRouter, type OwnedRouter } from "../../../src/router/router.ts";
import { createHealthRecorder } from "../../../src/router/upstream-health.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import { seal } from "../../support/core-ports.ts";
import { memoryFiles } from "../../support/memory-files.ts";
import { modelOf } from "../../support/scripted-provider.ts";
import { AttemptWatch } from "./attempt-watch.ts";
import type { Bank } from "./bank.ts";
import type { Journey } from "./journey.ts";
import type { KeyDirectory } from "./key-directory.ts";
import { ProcessClock } from "./process-clock.ts";
import { type Sky, Upstreams } from "./upstreams.ts";
import { WatchedRates } from "./watched-rates.ts";

/** A model of the configuration. */
export interface ModelSpec {
  readonly id: string;
  readonly provider: string;
  readonly upstream: string;
  readonly timeouts: Timeouts;
  readonly price: Price | undefined;
  readonly maxTokensPerSecond: number;
}

/** Dependencies of a process. */
export interface Surroundings {
  readonly clock: FakeClock;
  readonly sky: Sky;
  readonly bank: Bank;
  readonly keys: KeyDirectory;
  readonly burstMs: number;
}

const BREAKER = { failures: 5, openMs: 2_000, maxOpenMs: 10_000 };
const BACKOFF = { baseMs: 250, capMs: 2_000 };

/** One gateway without sockets: its parts, connected as in `gateway/gateway.ts`, on a world's clock. */
export class SimulatedProcess {
  readonly number: number;
  readonly clock: ProcessClock;
  readonly calls: Calls;
  readonly completions: OwnedCompletions;
  readonly authenticator: Authenticator;
  readonly ledger: OwnedLedger;
  readonly limiter: OwnedLimiter;
  readonly rates: WatchedRates;
  readonly router: OwnedRouter;
  /** Completions in flight by provider of their primary model. */
  readonly requests = new Map<string, number>();
  readonly #around: Surroundings;
  readonly #attempts: AttemptWatch;
  readonly #unsubscribe: () => void;
  readonly #files = memoryFiles();
  #provider: Upstreams | undefined;

  constructor(
    number: number,
    around: Surroundings,
    { models, onRecord }: { models: readonly ModelSpec[]; onRecord: (entry: CompletionRecord) => void },
  ) {
    this.number = number;
    this.#around = around;
    const { sky, bank, keys, burstMs } = around;
    const clock = new ProcessClock(around.clock);
    const random = (): number => sky.chance.fraction();
    this.clock = clock;
    this.calls = new Calls(clock);
    this.#attempts = new AttemptWatch({
      watch: sky.watch,
      nowMs: () => clock.monotonic(),
      breaker: BREAKER,
      requestsOf: (provider) => this.requests.get(provider) ?? 0,
    });
    this.rates = new WatchedRates(clock, { burstMs, watch: sky.watch });
    this.limiter = createLimiter({
      rates: this.rates,
      budgets: {
        hold: (demand) => clock.hear(bank.hold(demand)),
        cancel: (id) => clock.hear(bank.cancel(id)),
        reap: () => clock.hear(bank.reap()),
      },
      // Nothing is explained here.
      spending: async () => [],
      defaults: () => NO_LIMITS,
      burstMs,
      clock,
      replicaId: `process-${number}`,
      random,
    });
    this.ledger = createLedger({
      store: {
        insert: (entries) => clock.hear(bank.insert(entries)),
        begin: (note) => clock.hear(bank.begin(note)),
        flush: () => clock.hear(bank.insert([])),
      },
      files: this.#files.files,
      clock,
      process: `process-${number}`,
      onTrouble: (trouble) =>
        sky.watch.note(`process ${number}: ledger ${trouble === undefined ? "available" : "unavailable"}`),
    });
    this.authenticator = createAuthenticator({
      store: { findByHash: (hash) => clock.hear(keys.findByHash(hash)) },
      clock,
    });
    this.#unsubscribe = keys.subscribe((hash) => this.authenticator.invalidate(hash));
    this.router = createRouter({
      models: this.#connect(models),
      clock,
      random,
      backoff: BACKOFF,
      breaker: BREAKER,
    });
    const health = createHealthRecorder(this.router, clock);
    const recorder = {
      record(entry: CompletionRecord): void {
        health.record(entry);
        onRecord(entry);
      },
    };
    const { router, limiter, ledger } = this;
    this.completions = createCompletions({ router, permit, limiter, ledger, seal, recorder, clock });
  }

  /** As the gateway: calls in flight end with the configuration of their start. */
  reload(models: readonly ModelSpec[]): void {
    const before = this.#provider!;
    this.router.replace(this.#connect(models));
    this.#attempts.reloaded();
    void this.calls.passed().then(() => before.close());
  }

  /** Counts an admitted completion for its provider. Returns the function that ends that. */
  admitted({ primary }: Journey): () => void {
    const provider = primary?.providerName ?? "";
    const count = (by: number): void => void this.requests.set(provider, (this.requests.get(provider) ?? 0) + by);
    count(1);
    return () => count(-1);
  }

  /** Drains: lets calls in flight end, aborts those that exceed the time, and closes. Returns the unwritten entries. */
  async stop(drainMs: number): Promise<readonly NewLedgerEntry[]> {
    const { settling } = this.completions;
    await drainCalls([], { calls: this.calls, settling, clock: this.clock, drainMs });
    this.#unsubscribe();
    this.limiter.close();
    await this.ledger.close();
    const { watch } = this.#around.sky;
    if (this.clock.pending > 0)
      watch.breach("end", `${this.clock.pending} timers are pending after process ${this.number} has closed`);
    if (this.rates.outstanding().length > 0)
      watch.breach("limits", `${this.rates.outstanding().join()} of process ${this.number} were not released`);
    const busy = [...this.requests.values()].some((count) => count !== 0);
    if (busy) watch.breach("end", `process ${this.number} has completions in flight after close`);
    const subjects = this.#around.keys.keys.flatMap(({ grant: { record, accountLimits } }) => [
      [`key:${record.keyFamilyId}`, record.limits] as const,
      [`account:${record.accountId}`, accountLimits] as const,
    ]);
    await this.rates.audit(new Map(subjects));
    return this.#files.entries;
  }

  /** Kills the process. Returns the entries that it leaves in files. */
  kill(): readonly NewLedgerEntry[] {
    this.#unsubscribe();
    this.clock.kill();
    return this.#files.entries;
  }

  #connect(specs: readonly ModelSpec[]): Model[] {
    const models = new Map<string, Model>();
    const { sky } = this.#around;
    const modelBy = (name: string): Model => models.get(name)!;
    this.#provider = new Upstreams({ clock: this.clock, sky, calls: this.#attempts, modelOf: modelBy });
    for (const { id, provider, upstream, ...spec } of specs) {
      const facts = { name: upstream, maxOutputTokens: 200, defaultMaxTokens: 100, contextWindow: 4_000 };
      const model = modelOf(id, this.#provider, { ...spec, providerName: provider, upstream: facts });
      models.set(upstream, model);
    }
    return [...models.values()];
  }
}
