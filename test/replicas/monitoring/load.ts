import { setTimeout as sleep } from "node:timers/promises";
import type { Product } from "../../support/product.ts";
import {
  answerJson,
  beginStream,
  END_EVENTS,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "../../product/support/upstream.ts";
import { UNLIMITED } from "../../support/unlimited.ts";
import { postChat } from "../../support/post-json.ts";

/** What the upstream models do, by their names. */
const STATUSES: Readonly<Record<string, number>> = { broken: 503, refusing: 401, limited: 429 };

let asked = 0;

async function answer(exchange: UpstreamExchange): Promise<void> {
  const { body, response } = exchange;
  const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
  asked += 1;
  const status = STATUSES[model] ?? (model === "flaky" && asked % 3 === 0 ? 503 : 200);
  if (status !== 200) return answerJson(response, status, { error: { message: "no" } });
  if (model === "slow") await sleep(150);
  const usage = {
    prompt_tokens: 30,
    completion_tokens: model === "huge" ? 90_000 : 8,
    prompt_tokens_details: { cached_tokens: 20 },
  };
  if (stream !== true) {
    const message = { role: "assistant", content: "words" };
    return answerJson(response, 200, {
      choices: [{ index: 0, message, finish_reason: "stop" }],
      ...(model !== "uncounted" && { usage }),
    });
  }
  beginStream(response);
  response.write(textEvent("some "));
  await sleep(5);
  const counted = model === "uncounted" ? "" : `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
  response.end(textEvent("words") + END_EVENTS.replace("data: [DONE]", `${counted}data: [DONE]`));
}

/** Starts the provider of `configOf`. */
export function startProvider(): Promise<Upstream> {
  return startUpstream(answer);
}

/** Providers and models that make each metric move, whatever `deploy/grafana` asks for. */
export function configOf({ url }: Upstream): object {
  const provider = { dialect: "openai", base_url: `${url}/v1`, allow_private: true };
  const names = ["good", "slow", "flaky", "broken", "refusing", "limited", "uncounted", "huge"];
  const modelOf = (name: string): object => ({
    provider: name === "good" || name === "slow" ? "main" : "other",
    upstream_model: name,
    context_window: 100_000,
    max_output_tokens: 1_000,
    price: { input: 100, output: 200 },
  });
  return {
    limits: { ...UNLIMITED, monthly_budget_usd: 100_000 },
    metrics: { keys: 10, tags: 10 },
    providers: { main: provider, other: provider },
    models: {
      ...Object.fromEntries(names.map((name) => [name, modelOf(name)])),
      hedged: { targets: [{ model: "slow" }, { model: "good" }], hedge: { after: "60ms", budget: 0.5 } },
      mixed: { policy: "weighted", affinity: false, targets: [{ model: "flaky" }, { model: "good" }] },
    },
  };
}

/** Sends one completion, reads its answer and returns its status. */
export async function complete(
  { url }: Product,
  key: string,
  { model, stream = false }: { readonly model: string; readonly stream?: boolean },
): Promise<number> {
  const response = await postChat(url, key, { model, stream, max_tokens: 10 });
  await response.text();
  return response.status;
}

/** Completions of every kind at all replicas until the signal aborts. `keys`: one that is not limited, and one that soon is. */
export async function keepAsking(
  products: readonly Product[],
  keys: { readonly free: string; readonly limited: string },
  signal: AbortSignal,
): Promise<void> {
  const round = async (product: Product): Promise<void> => {
    const ask = (model: string, stream = false): Promise<number> => complete(product, keys.free, { model, stream });
    await Promise.all([
      ...["good", "good", "hedged", "hedged", "uncounted", "huge", "refusing", "limited"].map((model) => ask(model)),
      ...["good", "slow", "mixed", "mixed", "mixed"].map((model) => ask(model, true)),
      ...Array.from({ length: 12 }, () => ask("broken")),
      complete(product, keys.limited, { model: "good" }),
      complete(product, "sk_parley_wrong", { model: "good" }),
    ]);
  };
  while (!signal.aborted) {
    await Promise.all(products.map((product) => round(product).catch(() => undefined)));
    await sleep(100, undefined, { signal }).catch(() => undefined);
  }
}
