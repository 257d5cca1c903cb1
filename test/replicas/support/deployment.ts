import { rmSync } from "node:fs";
import { join } from "node:path";
import { openStore, type Store } from "../../../src/store/store.ts";
import { makeHome, type Product, type ProductOptions, startProduct } from "../../support/product.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../../support/scripted-upstream.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** Stores of a deployment. */
export interface Backing {
  /** Undefined: SQLite, for a single process. */
  readonly databaseUrl: string | undefined;
  /** Undefined: rates are stored in PostgreSQL, or in memory. */
  readonly redisUrl: string | undefined;
}

export interface DeploymentOptions extends Backing {
  readonly replicas: number;
  /** Configuration in addition to the model, its provider and the limits. */
  readonly config?: object;
  /** HTTP ports, one for each replica. Default: free ones. */
  readonly ports?: readonly number[];
  /** Program and environment in addition to the stores'. Default: the sources. */
  readonly program?: Pick<ProductOptions, "program" | "env">;
}

/** Running replicas with shared state and a scripted upstream. */
export interface Deployment {
  readonly products: Product[];
  readonly upstream: ScriptedUpstream;
  /** The shared store, opened by the test process. */
  readonly store: Store;
  /** Restarts the replica with this index and its settings. `program`: default that of the others. */
  restart(index: number, program?: DeploymentOptions["program"]): Promise<Product>;
  close(): Promise<void>;
}

/** The only model. A completion of `MAX_TOKENS` costs at most `WORST_CASE_MICRO_USD`. */
export const MODEL = "held";
export const MAX_TOKENS = 100;
export const WORST_CASE_MICRO_USD = 100_000;

/** Starts replicas of the product as processes. */
export async function startDeployment({
  replicas,
  databaseUrl,
  redisUrl,
  config,
  program = {},
  ports,
}: DeploymentOptions): Promise<Deployment> {
  const upstream = await startScriptedUpstream();
  const homes = Array.from({ length: replicas }, makeHome);
  const env = {
    ...(databaseUrl !== undefined && { PARLEY_DATABASE_URL: databaseUrl }),
    ...(redisUrl !== undefined && { PARLEY_REDIS_URL: redisUrl }),
  };
  const full = {
    log: { level: "warn" },
    limits: UNLIMITED,
    providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
    models: {
      [MODEL]: {
        provider: "local",
        upstream_model: MODEL,
        max_output_tokens: 1_000,
        // Only completion tokens have a price, so that the maximum cost is a round number.
        price: { input: 0, output: WORST_CASE_MICRO_USD / MAX_TOKENS },
      },
    },
    ...config,
  };
  const start = (home: string, index: number, as = program): Promise<Product> => {
    const http = ports && { http: { listen: `127.0.0.1:${ports[index]}` } };
    return startProduct({ ...as, home, config: { ...full, ...http }, env: { ...as.env, ...env } });
  };
  const products = await Promise.all(homes.map((home, index) => start(home, index)));
  const store = await openStore({ dataDir: join(homes[0]!, "data"), databaseUrl });
  return {
    products,
    upstream,
    store,
    async restart(index, as) {
      await products[index]!.stop();
      return (products[index] = await start(homes[index]!, index, as));
    },
    async close() {
      await store.close();
      await Promise.all(products.map((product) => product.stop()));
      await upstream.close();
      for (const home of homes) rmSync(home, { recursive: true, force: true });
    },
  };
}
