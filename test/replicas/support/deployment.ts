import { rmSync } from "node:fs";
import { join } from "node:path";
import { openStore, type Store } from "../../../src/store/store.ts";
import { makeHome, type Product, type ProductOptions, startProduct } from "../../support/product.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../../support/scripted-upstream.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** Where a deployment keeps its state. */
export interface Backing {
  /** Undefined: SQLite, which one process has for itself. */
  readonly databaseUrl: string | undefined;
  /** Undefined: rates are kept in PostgreSQL, or in the process. */
  readonly redisUrl: string | undefined;
}

export interface DeploymentOptions extends Backing {
  readonly replicas: number;
  /** What `parley.yaml` says beside the model, its provider and the limits. */
  readonly config?: object;
  /** Of HTTP, one for each replica. Default: free ones. */
  readonly ports?: readonly number[];
  /** What is run, and with which variables beside those of the backing. Default: the sources. */
  readonly program?: Pick<ProductOptions, "program" | "env">;
}

/** Some running replicas with the same state, in front of an upstream that does what the test says. */
export interface Deployment {
  readonly products: Product[];
  readonly upstream: ScriptedUpstream;
  /** The state, as another process sees it. */
  readonly store: Store;
  /** Starts the replica at this place again, with what it had. */
  restart(index: number): Promise<Product>;
  close(): Promise<void>;
}

/** The only model of a deployment. A completion of `MAX_TOKENS` costs at most `WORST_CASE_MICRO_USD`. */
export const MODEL = "held";
export const MAX_TOKENS = 100;
export const WORST_CASE_MICRO_USD = 100_000;

/** Starts replicas of the product as processes of their own. */
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
    ...program.env,
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
        // Only the answer costs anything, so that the worst case is a round number.
        price: { input: 0, output: WORST_CASE_MICRO_USD / MAX_TOKENS },
      },
    },
    ...config,
  };
  const start = (home: string, index: number): Promise<Product> => {
    const http = ports && { http: { listen: `127.0.0.1:${ports[index]}` } };
    return startProduct({ ...program, home, config: { ...full, ...http }, env });
  };
  const products = await Promise.all(homes.map(start));
  const store = await openStore({ dataDir: join(homes[0]!, "data"), databaseUrl });
  return {
    products,
    upstream,
    store,
    async restart(index) {
      await products[index]!.stop();
      return (products[index] = await start(homes[index]!, index));
    },
    async close() {
      await store.close();
      await Promise.all(products.map((product) => product.stop()));
      await upstream.close();
      for (const home of homes) rmSync(home, { recursive: true, force: true });
    },
  };
}
