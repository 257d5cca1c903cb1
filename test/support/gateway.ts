import { rmSync } from "node:fs";
import { pino } from "pino";
import { withLines } from "../../src/telemetry/logger.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { createKey, type KeyContext } from "../../src/access/keys.ts";
import type { Config } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createStateSeal, STATE_SECRET, type StateSeal } from "../../src/core/provider-state.ts";
import { type Changed, startGateway } from "../../src/gateway/gateway.ts";
import { openStore } from "../../src/store/store.ts";
import { makeDataDir } from "./data-dir.ts";

/** One line of the gateway's log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

export interface TestGatewayOptions {
  /** Configuration in addition to addresses and data directory. */
  readonly config: object;
  /** Creates additional keys before the gateway starts. */
  readonly prepareKeys?: (context: KeyContext) => Promise<void>;
}

/** A gateway in this process, on free loopback ports. */
export interface TestGateway {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsPort: number;
  /** Secret of a key with all permissions. */
  readonly key: string;
  /** State of a provider as it is in answers to an account. Default: that of `key`. */
  seal(provider: string, state: string, accountId?: string): string;
  /** All log lines so far. */
  readonly log: readonly LogLine[];
  /** Reloads with other providers and models; the rest of `config` is unchanged. Default of `changed`: the file. */
  configure(config: object, changed?: Changed): Promise<void>;
  /** The configuration that `configure` would apply, for several calls of `apply`. */
  parse(config: object): Config;
  apply(config: Config, changed?: Changed): Promise<void>;
  /** Number of calls in flight. */
  activeCalls(): Promise<number>;
  /** Calls and circuit breakers from the operations port. */
  readiness(): Promise<{ readonly active_calls: number; readonly breakers: Readonly<Record<string, string>> }>;
  /** Metrics from the operations port, as text. */
  metrics(): Promise<string>;
  /** Aborts calls in flight at once, as at the end of a drain. */
  abort(): void;
  close(): Promise<void>;
}

const FREE_PORT = { listen: "127.0.0.1:0" };

/** Starts a gateway with a temporary data directory, which `close` removes. */
export async function startTestGateway({ config, prepareKeys }: TestGatewayOptions): Promise<TestGateway> {
  const dataDir = await makeDataDir("parley-test-");
  const parse = (sections: object): ReturnType<typeof parseConfig> => {
    // YAML accepts JSON.
    const text = JSON.stringify({ http: FREE_PORT, grpc: FREE_PORT, operations: FREE_PORT, ...sections });
    const parsed = parseConfig({ file: "parley.yaml", text, env: {} });
    return { ...parsed, dataDir };
  };
  const { key, stateSeal } = await prepareStore(dataDir, prepareKeys);
  const log: LogLine[] = [];
  const lines = { write: (line: string) => void log.push(JSON.parse(line) as LogLine) };
  const logger = withLines(pino({ level: "info" }, lines), { lines });
  const gateway = await startGateway(parse(config), logger);
  const operations = async (path: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${gateway.operationsPort}${path}`);
  return {
    httpPort: gateway.httpPort,
    grpcPort: gateway.grpcPort,
    operationsPort: gateway.operationsPort,
    key,
    seal: (provider, state, accountId = DEFAULT_ACCOUNT_ID) => stateSeal.seal(state, { accountId, provider }),
    log,
    configure: (next, changed = "file") => gateway.reload(parse({ ...config, ...next }), changed),
    parse: (next) => parse({ ...config, ...next }),
    apply: (next, changed = "file") => gateway.reload(next, changed),
    activeCalls: async () => gateway.activeCalls(),
    readiness: async () => (await operations("/readyz")).json() as ReturnType<TestGateway["readiness"]>,
    metrics: async () => (await operations("/metrics")).text(),
    abort: () => gateway.abort(),
    async close() {
      await gateway.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function prepareStore(
  dataDir: string,
  prepareKeys: TestGatewayOptions["prepareKeys"],
): Promise<{ readonly key: string; readonly stateSeal: StateSeal }> {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  try {
    const context: KeyContext = { store: store.keys, clock: systemClock };
    const { secret } = await createKey(context, { name: "may do everything" });
    await prepareKeys?.(context);
    return { key: secret, stateSeal: createStateSeal(await store.secret(STATE_SECRET)) };
  } finally {
    await store.close();
  }
}
