import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";
import { postJson } from "../support/post-json.ts";

const SEARCHES = 5;
const REQUESTS = 40;

/** Resolves when the provider may answer. */
let released = Promise.resolve();
let upstream: Upstream;
let product: Product;
let store: Store;

/** As many uses of its tools as the request allows, and as the operator states. */
function answer({ request, response }: UpstreamExchange): void {
  if (request.url === "/v1/messages")
    return answerJson(response, 200, {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "It is." }],
      stop_reason: "end_turn",
      usage: { input_tokens: 9, output_tokens: 9, server_tool_use: { web_search_requests: SEARCHES } },
    });
  if (request.url === "/v1/responses") {
    const search = { type: "file_search_call", status: "completed", queries: ["a"] };
    const code = { type: "code_interpreter_call", container_id: "cntr_1", status: "completed" };
    const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "It is." }] };
    return answerJson(response, 200, {
      id: "resp_1",
      status: "completed",
      output: [...Array.from({ length: SEARCHES }, (_, index) => ({ ...search, id: `fs_${index}` })), code, said],
      usage: { input_tokens: 9, output_tokens: 9 },
    });
  }
  if (request.url === "/v1/chat/completions")
    return answerJson(response, 200, {
      choices: [{ index: 0, message: { role: "assistant", content: "It is." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
    });
  answerJson(response, 200, {
    candidates: [
      {
        content: { parts: [{ text: "It is." }] },
        finishReason: "STOP",
        groundingMetadata: { webSearchQueries: ["", "a", "a", "b", "c", "d", "e"] },
      },
    ],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 9 },
  });
}

beforeAll(async () => {
  upstream = await startUpstream(async (exchange) => {
    await released;
    answer(exchange);
  });
  const provider = (dialect: string, path = "") => ({
    dialect,
    base_url: upstream.url + path,
    allow_private: true,
    api_keys: ["key-of-the-tests"],
  });
  const model = (name: string, more: object) => ({
    provider: name,
    upstream_model: name,
    context_window: 1_000,
    max_output_tokens: 10,
    ...more,
  });
  // Tokens cost next to nothing beside the fees.
  const tokens = { input: 0.1, output: 0.1 };
  product = await startProduct({
    config: {
      limits: UNLIMITED,
      providers: {
        anthropic: provider("anthropic"),
        gemini: provider("gemini"),
        responses: provider("openai-responses", "/v1"),
        chat: provider("openai", "/v1"),
      },
      models: {
        anthropic: model("anthropic", { price: { ...tokens, web_search: 10 } }),
        unpriced: model("anthropic", { price: tokens }),
        gemini: model("gemini", { price: { ...tokens, web_search: 14 }, max_tool_uses: { web_search: SEARCHES } }),
        unbounded: model("gemini", { price: { ...tokens, web_search: 14 } }),
        responses: model("responses", {
          price: { ...tokens, file_search: 2.5, code_execution: 30 },
          max_tool_uses: { file_search: SEARCHES, code_execution: 1 },
        }),
        chat: model("chat", { price: { ...tokens, request: 12 } }),
      },
    },
  });
  store = await openStore({ dataDir: join(product.home, "data"), databaseUrl: undefined });
});
afterAll(async () => {
  await store.close();
  await product.stop();
  await upstream.close();
});

async function newKey(budgetMicroUsd?: number): Promise<string> {
  const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: budgetMicroUsd };
  const options = ["provider_tools"] as const;
  const { secret } = await createKey({ store: store.keys, clock: systemClock }, { name: "a", limits, options });
  return secret;
}

function body(model: string, tools: readonly (readonly [dialect: string, tool: object])[]) {
  return {
    model,
    messages: [{ role: "ROLE_USER", parts: [{ text: "Hi." }] }],
    tools: tools.map(([dialect, tool]) => ({ native: { dialect, json: JSON.stringify(tool) } })),
  };
}

function post(key: string, method: string, request: object): Promise<Response> {
  return postJson(`${product.url}/parley.v1.CompletionService/${method}`, key, request);
}

const ask = (key: string, ...asked: Parameters<typeof body>) => post(key, "Create", body(...asked));
const explain = (key: string, ...asked: Parameters<typeof body>) =>
  post(key, "Explain", { completion: body(...asked) });

const SEARCH = ["anthropic", { type: "web_search_20250305", name: "web_search", max_uses: SEARCHES }] as const;
const GROUNDING = ["gemini", { googleSearch: {} }] as const;
const FILES = ["openai-responses", { type: "file_search", vector_store_ids: ["vs_1"] }] as const;
const CODE = ["openai-responses", { type: "code_interpreter", container: { type: "auto" } }] as const;

describe("a budget", () => {
  it.each([
    ["searches that the request bounds", "anthropic", [SEARCH], SEARCHES * 10_000],
    ["searches that the operator bounds", "gemini", [GROUNDING], SEARCHES * 14_000],
    ["searches of files and containers", "responses", [FILES, CODE], SEARCHES * 2_500 + 30_000],
    ["the fee for a request", "chat", [], 12_000],
  ] as const)("is never overrun by simultaneous requests with %s", async (_, model, tools, feesMicroUsd) => {
    const budgetMicroUsd = 7.5 * feesMicroUsd;
    const key = await newKey(budgetMicroUsd);
    const release = Promise.withResolvers<void>();
    released = release.promise;
    const asked = upstream.exchanges.length;
    let refused = 0;
    const costs = Promise.all(
      Array.from({ length: REQUESTS }, async () => {
        const response = await ask(key, model, tools);
        if (response.status !== 200) refused += 1;
        const { report } = (await response.json()) as { report?: { costMicroUsd: string } };
        return Number(report?.costMicroUsd ?? 0);
      }),
    );
    await expect.poll(() => upstream.exchanges.length - asked + refused, { timeout: 20_000 }).toBe(REQUESTS);
    release.resolve();
    const served = (await costs).filter((cost) => cost > 0);
    // The tokens of each cost less than half of its fees.
    expect([served.length, refused]).toEqual([7, REQUESTS - 7]);
    for (const cost of served) expect(cost).toBeGreaterThanOrEqual(feesMicroUsd);
    expect(served.reduce((sum, cost) => sum + cost)).toBeLessThanOrEqual(budgetMicroUsd);
  });

  it.each([
    ["whose price is not known", "unpriced", [SEARCH], "let the operator write price.web_search"],
    ["without a bound", "unbounded", [GROUNDING], "let the operator state max_tool_uses.web_search of unbounded"],
    [
      "that Parley does not know",
      "gemini",
      [["gemini", { googleMaps: {} }]],
      "what googleMaps costs is not known here",
    ],
    [
      "with a container of a higher price",
      "responses",
      [["openai-responses", { type: "code_interpreter", container: { type: "auto", memory_limit: "64g" } }]],
      "what code_interpreter with memory_limit costs is not known here",
    ],
    [
      "for pictures at the price of text",
      "responses",
      [["openai-responses", { type: "image_generation" }]],
      "what image_generation costs is not known here",
    ],
  ] as const)("refuses a tool %s, and says what would help", async (_, model, tools, advice) => {
    const key = await newKey(1_000_000);
    const asked = upstream.exchanges.length;
    const response = await ask(key, model, tools);
    expect([response.status, upstream.exchanges.length]).toEqual([400, asked]);
    const { message } = (await response.json()) as { message: string };
    expect(message).toContain(advice);
    expect(await (await explain(key, model, tools)).json()).toMatchObject({ message });
  });

  it("is shown what would be held, fees included", async () => {
    const response = await explain(await newKey(1_000_000), "anthropic", [SEARCH]);
    const { reservedMicroUsd } = (await response.json()) as { reservedMicroUsd: string };
    expect(Number(reservedMicroUsd)).toBeGreaterThanOrEqual(SEARCHES * 10_000);
    expect(Number(reservedMicroUsd)).toBeLessThan(SEARCHES * 10_000 + 1_000);
  });
});

it("a count without a price is named, in the answer and without a budget", async () => {
  const key = await newKey();
  const response = await ask(key, "unpriced", [SEARCH]);
  expect(await response.json()).toMatchObject({ usage: { webSearches: SEARCHES, unknownUnits: ["web searches"] } });
});
