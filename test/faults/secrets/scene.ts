import { type Product, type ProductOptions, startProduct } from "../../support/product.ts";
import {
  begins,
  hangsUp,
  refuses,
  says,
  type ScriptedUpstream,
  sends,
  startScriptedUpstream,
  staysSilent,
} from "../../support/scripted-upstream.ts";
import { builtProgram } from "../../support/built-program.ts";
import type { Planted } from "./planted.ts";

/** The product with planted secrets, and an upstream that also sends secrets, at the most detailed log level. */
export interface Scene {
  readonly planted: Planted;
  readonly product: Product;
  /** Environment and arguments of the product and its commands. */
  readonly run: Required<Pick<ProductOptions, "program" | "env">>;
  readonly upstream: ScriptedUpstream;
  /** Bodies and headers of error responses: they may contain no secret, not even the caller's. */
  readonly errors: string[];
  close(): Promise<void>;
}

/** Names of the upstream models, one per kind of failure. */
export const FAILING = ["refusing", "unauthorized", "garbled", "cut", "silent", "hanging-up", "unlikely"] as const;

/** Crashes the process: SIGUSR2 throws an uncaught exception. */
const THROW_ON_SIGNAL = `--import=data:text/javascript,${encodeURIComponent(
  'process.on("SIGUSR2", () => { throw new Error("a crash by the test"); });',
)}`;

/** Shared stores of the product, if any. */
export interface SceneOptions {
  readonly databaseUrl?: string;
  /** Default: a closed port, so that the product logs errors about it. */
  readonly redisUrl?: string;
}

/** Starts it. */
export async function openScene(planted: Planted, { databaseUrl, redisUrl }: SceneOptions = {}): Promise<Scene> {
  const plant = (what: string): string => planted.plant(what);
  const upstream = await startScriptedUpstream();
  const provider = { allow_private: true };
  const model = (upstreamModel: string, name = "local"): object => ({ provider: name, upstream_model: upstreamModel });
  const built = await builtProgram();
  const run: Scene["run"] = { ...built, env: { ...built.env, SECRET_HEADER: plant("a provider's header") } };
  const product = await startProduct({
    ...run,
    env: { ...run.env, NODE_OPTIONS: `${run.env["NODE_OPTIONS"]} ${THROW_ON_SIGNAL}` },
    config: {
      log: { level: "trace" },
      ...(databaseUrl !== undefined && { database: { url: databaseUrl } }),
      redis: { url: redisUrl ?? `redis://parley:${plant("Redis' password")}@127.0.0.1:1` },
      timeouts: { first_content_ms: 300, idle_ms: 300 },
      retries: { base_ms: 1 },
      breaker: { failures: 1_000 },
      providers: {
        local: {
          ...provider,
          dialect: "openai",
          base_url: `${upstream.url}/v1`,
          api_keys: [plant("a provider's credential")],
          headers: { "x-tenant": "${SECRET_HEADER}" },
        },
        other: {
          ...provider,
          dialect: "anthropic",
          base_url: upstream.url,
          api_keys: [plant("another one's credential")],
        },
      },
      models: {
        m: { ...model("m"), modalities: { input: ["text", "image"], output: ["text"] } },
        ...Object.fromEntries(FAILING.map((name) => [name, model(name, name === "unauthorized" ? "other" : "local")])),
      },
    },
  });
  upstream.script("m", [says(plant("an answer"))]);
  upstream.script("refusing", [refuses(400, plant("a provider's 400"))]);
  upstream.script("unauthorized", [refuses(401, plant("a provider's 401"))]);
  upstream.script("garbled", [sends(200, "application/json", `{"oops": "${plant("an unreadable answer")}`)]);
  upstream.script("cut", [begins(plant("an answer that breaks off"), "reset")]);
  upstream.script("silent", [staysSilent]);
  upstream.script("hanging-up", [hangsUp]);
  upstream.script("unlikely", [sends(200, "text/html", `<title>${plant("a page in place of an answer")}</title>`)]);
  return {
    planted,
    product,
    run,
    upstream,
    errors: [],
    async close() {
      await product.stop();
      await upstream.close();
    },
  };
}
