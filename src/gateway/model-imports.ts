import type { Config, ProviderConfig, RemoteProvider } from "../config/config.ts";
import type { ModelLists, OfferedModel } from "../config/imports.ts";
import { type ConfigSource, parseConfig } from "../config/parse.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import type { Logger } from "../telemetry/logger.ts";
import { connectProvider } from "./catalogue.ts";

/** Longest that a start, and a reload, waits for lists; a later one waits longer for its own. */
const START_LIMIT_MS = 5_000;
const REFRESH_LIMIT_MS = 30_000;

/** Interval of reading the lists: while all are known, and after one could not be read. */
const EVERY_MS = 15 * 60_000;
const AFTER_FAILURE_MS = 60_000;

/** Share of a pause by which it is shortened at random, so that replicas do not read the lists at the same moment. */
const JITTER = 0.2;

/** Ports of the imports. */
export interface ImportPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Random number from 0 to 1. Default: Math.random. */
  readonly random?: () => number;
}

/**
 * Completes a configuration with the models that its providers list, and reads the lists again periodically. The last list
 * of a provider is kept while it cannot be reached.
 */
export class ModelImports {
  readonly #ports: ImportPorts;
  readonly #ending = new AbortController();
  /** Lists by the names of providers, and the addresses that they are from. */
  readonly #known = new Map<string, { readonly baseUrl: string; readonly list: readonly OfferedModel[] }>();
  #source: ConfigSource | undefined;
  /** Source that `revert` goes back to. */
  #kept: ConfigSource | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(ports: ImportPorts) {
    this.#ports = ports;
  }

  /**
   * Resolves with the configuration of a source and the models that are imported, after START_LIMIT_MS at the latest.
   * Undefined when another source has taken its place meanwhile. `apply` is called with it whenever the lists have changed.
   * With `waits: false` the known lists are used at once, and the lists are read after that. Throws ConfigError.
   */
  async use(
    source: ConfigSource,
    apply: (config: Config) => Promise<void>,
    { waits = true }: { readonly waits?: boolean } = {},
  ): Promise<Config | undefined> {
    const config = parseConfig(source);
    this.#source = source;
    this.#cancelTimer?.();
    if (config.imports.length === 0) return config;
    if (!waits) {
      const areKnown = this.#lists(config).size === config.imports.length;
      this.#plan(source, { pauseMs: areKnown ? this.#pauseMs(false) : 0 }, apply);
      return this.#complete(source);
    }
    const { failed } = await this.#look(config, START_LIMIT_MS);
    if (this.#source !== source) return undefined;
    this.#plan(source, { pauseMs: this.#pauseMs(failed) }, apply);
    return this.#complete(source);
  }

  /** Notes that the gateway runs with the source of the latest `use`. */
  keep(): void {
    this.#kept = this.#source;
  }

  /**
   * Goes back to the source that the gateway runs with, when the latest one could not be put in force; its lists are read
   * soon.
   */
  revert(apply: (config: Config) => Promise<void>): void {
    if (this.#source === this.#kept || this.#ending.signal.aborted) return;
    this.#cancelTimer?.();
    this.#source = this.#kept;
    if (this.#kept !== undefined && parseConfig(this.#kept).imports.length > 0)
      this.#plan(this.#kept, { pauseMs: this.#pauseMs(true) }, apply);
  }

  close(): void {
    this.#source = undefined;
    this.#cancelTimer?.();
    this.#ending.abort(new Failure("cancelled", "The gateway stops."));
  }

  #pauseMs(failed: boolean): number {
    const { random = Math.random } = this.#ports;
    return (failed ? AFTER_FAILURE_MS : EVERY_MS) * (1 - JITTER * random());
  }

  #plan(
    source: ConfigSource,
    { pauseMs }: { readonly pauseMs: number },
    apply: (config: Config) => Promise<void>,
  ): void {
    const { clock, log } = this.#ports;
    const refresh = async (): Promise<void> => {
      const looked = await this.#look(parseConfig(source), REFRESH_LIMIT_MS);
      if (this.#source !== source) return;
      this.#plan(source, { pauseMs: this.#pauseMs(looked.failed) }, apply);
      if (looked.changed) await apply(this.#complete(source));
    };
    this.#cancelTimer = clock.after(pauseMs, () => {
      void refresh().catch((error: unknown) => log.error({ cause: String(error) }, "imported models not applied"));
    });
  }

  /** Asks all providers for their lists. A failure leaves the last list as it is. */
  async #look(config: Config, limitMs: number): Promise<{ readonly failed: boolean; readonly changed: boolean }> {
    const { clock, log } = this.#ports;
    const before = this.#state();
    const looks = config.imports.map(async ({ provider: name }) => {
      const provider = remoteProvider(config.providers, name);
      try {
        const list = await listModels(config, provider, { clock, limitMs, ending: this.#ending.signal });
        this.#known.set(name, { baseUrl: provider.baseUrl, list });
        return true;
      } catch (reason) {
        if (this.#ending.signal.aborted) return false;
        const { message, upstreamStatus } = Failure.from(reason);
        const kept = this.#lists(config).get(name)?.length ?? 0;
        log.warn({ provider: name, status: upstreamStatus, reason: message, kept }, "a provider's models not listed");
        return false;
      }
    });
    const succeeded = await Promise.all(looks);
    return { failed: succeeded.includes(false), changed: this.#state() !== before };
  }

  /** The known lists as text to compare: a provider may list the same models in another order each time. */
  #state(): string {
    const byName = (one: OfferedModel, other: OfferedModel): number => (one.name < other.name ? -1 : 1);
    return JSON.stringify([...this.#known].map(([name, { baseUrl, list }]) => [name, baseUrl, list.toSorted(byName)]));
  }

  #complete(source: ConfigSource): Config {
    const { log } = this.#ports;
    const config = parseConfig({ ...source, lists: this.#lists(parseConfig(source)) });
    for (const { provider, prefix, shadowed } of config.imports) {
      const own = new Set(this.#known.get(provider)?.list.map(({ name }) => prefix + name));
      const models = config.models.filter((model) => model.provider === provider && own.has(model.id));
      const unpriced = models.filter(({ price }) => price === undefined).length;
      log.info({ provider, models: models.length, without_price: unpriced }, "models imported");
      if (shadowed.length > 0)
        log.warn({ provider, names: shadowed }, `another provider has these names; import "${provider}/*" for both`);
    }
    return config;
  }

  /** The lists of the addresses that are configured. */
  #lists({ imports, providers }: Config): ModelLists {
    const lists = new Map<string, readonly OfferedModel[]>();
    for (const { provider: name } of imports) {
      const known = this.#known.get(name);
      if (known?.baseUrl === remoteProvider(providers, name).baseUrl) lists.set(name, known.list);
    }
    return lists;
  }
}

/** The models that a provider lists. Throws a Failure, `upstream_timeout` after the limit. */
export async function listModels(
  { timeouts }: Pick<Config, "timeouts">,
  configured: RemoteProvider,
  { clock, limitMs, ending }: { readonly clock: Clock; readonly limitMs: number; readonly ending?: AbortSignal },
): Promise<readonly OfferedModel[]> {
  const { connectMs } = timeouts;
  const provider = connectProvider(configured, { connectMs, readScheduler: new ReadScheduler() });
  const timer = new AbortController();
  const tooLate = new Failure("upstream_timeout", `There was no list in ${limitMs / 1000} s.`);
  const cancelTimer = clock.after(limitMs, () => timer.abort(tooLate));
  try {
    if (provider.list === undefined)
      throw new Failure("invalid_request", `A provider of the dialect ${configured.dialect} has no list of models.`);
    return await provider.list(ending === undefined ? timer.signal : AbortSignal.any([timer.signal, ending]));
  } finally {
    cancelTimer();
    await provider.close();
  }
}

function remoteProvider(providers: readonly ProviderConfig[], name: string): RemoteProvider {
  return providers.find((provider) => provider.name === name) as RemoteProvider;
}
