import { startSimulator } from "../../../src/simulator/server.ts";
import { type Product, startProduct } from "../../support/product.ts";
import { UNLIMITED } from "../../support/unlimited.ts";
import { createKey } from "../../support/cli.ts";

/** One model for each dialect, by the name that clients ask for. */
export const MODELS = { anthropic: "alpha-haiku-4.5", gemini: "beta-3-flash", openai: "local/test" } as const;

/** The same as a table for `describe.each`, with `dialect` and `model`. */
export const EACH_DIALECT = Object.entries(MODELS).map(([dialect, model]) => ({ dialect, model }));

const LOCAL_MODEL = {
  provider: "local",
  upstream_model: "gpt-5-mini",
  modalities: { input: ["text", "image", "audio"], output: ["text"] },
} as const;

/** The product with a provider of every dialect behind it. */
export interface ThreeDialects {
  /** What clients call their base URL: ends in `/v1`. */
  readonly baseURL: string;
  readonly apiKey: string;
  readonly product: Product;
  stop(): Promise<void>;
}

export interface ThreeDialectsOptions {
  /** Further names of `local/test`, for clients that go by a model's name. */
  readonly aliases?: readonly string[];
}

/**
 * Starts the product with its own simulator behind the Anthropic and Gemini models, and with another one as the
 * OpenAI-compatible server behind `local/test`. Answers come at once.
 */
export async function startThreeDialects({ aliases = [] }: ThreeDialectsOptions = {}): Promise<ThreeDialects> {
  const simulator = await startSimulator();
  const config = {
    simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 },
    retries: { base_ms: 0, cap_ms: 0 },
    breaker: { failures: 1000 },
    // All suites of a client share one key: on a fast machine they send more in a minute than an account may by default.
    limits: UNLIMITED,
    providers: {
      local: { dialect: "openai", base_url: `${simulator.url}/v1`, allow_private: true, api_keys: ["any"] },
    },
    models: Object.fromEntries(["local/test", ...aliases].map((name) => [name, LOCAL_MODEL])),
  };
  const product = await startProduct({ config }).catch(async (error: unknown) => {
    await simulator.close();
    throw error;
  });
  return {
    baseURL: `${product.url}/v1`,
    apiKey: product.firstKey,
    product,
    async stop() {
      await product.stop();
      await simulator.close();
    },
  };
}

/** Creates a key whose budget is too small for any request to a model with a price. */
export const createSpentKey = async (product: Product): Promise<string> =>
  (await createKey(product, "--budget 0.000001")).key;
