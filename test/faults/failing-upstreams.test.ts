import { rmSync } from "node:fs";
import { onTestFinished, describe, expect, it } from "vitest";
import { findFreePort } from "../support/free-port.ts";
import { makeHome, type Product, type ProductOptions, startProduct } from "../support/product.ts";
import { answerJson, localModel, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { postChat } from "../support/post-json.ts";

async function openProduct(options: ProductOptions): Promise<Product> {
  const product = await startProduct(options);
  onTestFinished(() => product.stop());
  return product;
}

/** A provider that responds with 503 to every request. */
async function openFailing(): Promise<Upstream> {
  const upstream = await startUpstream(({ response }) => answerJson(response, 503, { error: { message: "down" } }));
  onTestFinished(() => upstream.close());
  return upstream;
}

/** A configured provider at this address with these models, without limits. */
function modelsAt(url: string, names: readonly string[]): object {
  const { providers, models } = localModel(url);
  const [model] = Object.values(models) as [object];
  const named = names.map((name) => [name, { ...model, upstream_model: name }]);
  return { providers, models: Object.fromEntries(named), limits: UNLIMITED };
}

function ask({ url }: Pick<Product, "url">, key: string, body: object): Promise<Response> {
  return postChat(url, key, { messages: [{ role: "user", content: "hello" }], ...body });
}

describe("a provider that always fails", () => {
  it(
    "receives hardly more calls than requests while its callers retry three times",
    async () => {
      const upstream = await openFailing();
      const callers = scale(100, 1_000);
      const tries = 4;
      // Enough models that no circuit breaker opens: only the retry budget limits the calls.
      const names = Array.from({ length: (callers * tries) / 2 }, (_, index) => `local/${index}`);
      const product = await openProduct({ config: modelsAt(upstream.url, names) });
      let requests = 0;
      const caller = async (): Promise<void> => {
        for (let attempt = 0; attempt < tries; attempt++) {
          const model = names[requests++ % names.length];
          const response = await ask(product, product.firstKey, { model });
          await response.text();
          expect(response.status).toBe(503);
          expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
      expect(requests).toBe(callers * tries);
      const calls = upstream.exchanges.length;
      // Every request has reached the provider.
      figure({ name: "upstream calls while the upstream fails", value: calls, unit: "", atLeast: requests });
      figure({
        name: "upstream calls beyond 1.2 for each request",
        value: Math.ceil(calls - 1.2 * requests),
        unit: "",
        atMost: 3,
      });
    },
    timeLimit(60, 120),
  );

  it("is called once for each fallback, and twice for the primary", async () => {
    const upstream = await openFailing();
    const chain = ["a", "b", "c", "d"].map((name) => `local/${name}`);
    const product = await openProduct({ config: modelsAt(upstream.url, chain) });
    const [first, ...others] = chain as [string, ...string[]];
    for (const stream of [false, true]) {
      const body = { model: first, fallback_models: [...others, first, ...others], stream };
      const response = await ask(product, product.firstKey, body);
      expect(response.status).toBe(503);
      const calls = upstream.exchanges.splice(0);
      const asked = calls.map((call) => (JSON.parse(call.body) as { model: string }).model);
      expect(asked).toEqual([first, first, ...others]);
      figure({
        name: `upstream calls of a ${stream ? "stream" : "whole answer"} with four models that all fail`,
        value: asked.length,
        unit: "",
        atMost: chain.length + 1,
      });
    }
  });
});

/** A gateway whose provider is the HTTP entrance at this port, once it has the key for it. */
async function openCircle(port: number, options: ProductOptions) {
  const home = makeHome();
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const { providers, models } = localModel(`http://127.0.0.1:${port}`) as {
    providers: { local: object };
    models: object;
  };
  const { "local/test": model } = models as Record<string, object>;
  // Its upstream model also has to be one of its own models.
  const config = {
    ...options.config,
    providers,
    models: { "local/test": model, test: model },
    // Ends an infinite loop.
    limits: { concurrent_requests: 8 },
  };
  const product = await openProduct({ ...options, home, config });
  const api_keys = [product.firstKey];
  product.writeConfig({ ...config, providers: { local: { ...providers.local, api_keys } } });
  product.signal("SIGHUP");
  await expect.poll(() => product.output.stderr, { timeout: 10_000 }).toContain('"msg":"configuration reloaded"');
  return product;
}

/** How a request in a loop ends. */
const END_OF_CIRCLE = {
  status: 400,
  error: {
    type: "invalid_request_error",
    message: expect.stringContaining("has come through 2 gateways already") as string,
  },
};

/** Requests a completion that leads to the gateway itself, counts the completions it causes, and returns its end. */
async function goRound(
  entrance: Product,
  { gateway, stream }: { gateway: Product; stream: boolean },
): Promise<{ status: number; error: unknown }> {
  const countCompletions = (): number => gateway.output.stderr.split('"msg":"completion"').length - 1;
  const before = countCompletions();
  const response = await ask(entrance, gateway.firstKey, { model: "local/test", stream });
  const { error } = (await response.json()) as { error: unknown };
  await expect.poll(() => countCompletions() - before, { timeout: 5_000 }).toBeGreaterThan(1);
  figure({
    name: "completions of one request in a loop",
    value: countCompletions() - before,
    unit: "",
    atMost: 2,
  });
  const refusal = /has come through 2 gateways already.*"msg":"refused"/;
  await expect.poll(() => entrance.output.stderr, { timeout: 5_000 }).toMatch(refusal);
  return { status: response.status, error };
}

describe("a gateway that is its own provider", () => {
  it("calls itself at most once, and reports the loop", async () => {
    const port = await findFreePort();
    const gateway = await openCircle(port, { config: { http: { listen: `127.0.0.1:${port}` } } });
    for (const stream of [false, true])
      expect(await goRound(gateway, { gateway, stream })).toMatchObject(END_OF_CIRCLE);
  });

  it("calls itself at most once through a front", async () => {
    const port = await findFreePort();
    const core = await openCircle(port, { flags: ["--role", "core"] });
    const front = await openProduct({
      config: { http: { listen: `127.0.0.1:${port}` } },
      flags: ["--role", "front", "--core", `127.0.0.1:${core.grpcPort}`],
    });
    for (const stream of [false, true])
      expect(await goRound(front, { gateway: core, stream })).toMatchObject(END_OF_CIRCLE);
  });
});
