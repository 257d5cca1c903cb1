import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, answerText, startUpstream, type Upstream } from "./support/upstream.ts";
import { postChat, postJson } from "../support/post-json.ts";
import { createKey, runJson } from "../support/cli.ts";

/** The providers of the models `a` and `b`. */
const upstreams: Partial<Record<"a" | "b", Upstream>> = {};
/** Models whose provider is down. */
const down = new Set<string>();
let product: Product;
/** May use the route `chat`, and none of its models. */
let routeKey: string;
/** May use the model `a` only. */
let modelKey: string;

beforeAll(async () => {
  for (const name of ["a", "b"] as const)
    upstreams[name] = await startUpstream((exchange) =>
      down.has(name) ? answerJson(exchange.response, 503, {}) : answerText(exchange, `from ${name}`),
    );
  const providers = Object.fromEntries(
    Object.entries(upstreams).map(([name, { url }]) => [
      name,
      { dialect: "openai", base_url: `${url}/v1`, allow_private: true },
    ]),
  );
  const model = { context_window: 100_000, max_output_tokens: 10_000 };
  const [a, b] = [{ model: "a" }, { model: "b" }];
  product = await startProduct({
    config: {
      providers,
      models: {
        // Without `seed`, and with a smaller answer.
        a: {
          ...model,
          provider: "a",
          upstream_model: "m",
          max_output_tokens: 5_000,
          capabilities: { seed: false },
          price: { input: 1, output: 2 },
        },
        b: { ...model, provider: "b", upstream_model: "m", price: { input: 3, output: 4 } },
        chat: { description: "Either of two", targets: [{ ...a, weight: 3 }, b], policy: "weighted" },
        first: { targets: [a, b] },
        cheap: { targets: [b, a], policy: "cheapest" },
        quick: { targets: [a, b], policy: "least_latency" },
        tools: { targets: [{ ...a, when: { tools: true } }] },
        pictures: { targets: [{ ...b, when: { modalities: ["image"] } }, a] },
      },
      aliases: { "gpt-*": "first" },
      limits: { requests_per_minute: "unlimited", concurrent_requests: "unlimited" },
      // Neither a wait before a retry nor an open breaker: a test sees what the next one begins with.
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1_000 },
    },
  });
  routeKey = (await createKey(product, "--models chat")).key;
  modelKey = (await createKey(product, "--models a")).key;
});

afterAll(async () => {
  await product?.stop();
  await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
});

beforeEach(() => down.clear());

interface Answer {
  readonly model: string;
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly parley: {
    readonly targets?: readonly string[];
    readonly omitted: readonly string[];
    readonly clamped: readonly unknown[];
    readonly attempts: readonly { readonly model: string; readonly outcome: string }[];
  };
  readonly error?: { readonly message: string };
}

async function ask(body: object, key = product.firstKey) {
  const response = await postChat(product.url, key, body);
  return { status: response.status, headers: response.headers, answer: (await response.json()) as Answer };
}

const says = (content: string): object => ({ messages: [{ role: "user", content }] });

describe("a name with targets", () => {
  it("is answered by one of them, which answer, report and headers name", async () => {
    const { headers, answer } = await ask({ model: "first" });
    expect(answer).toMatchObject({
      model: "a",
      choices: [{ message: { content: "from a" } }],
      parley: { targets: ["a", "b"], attempts: [{ model: "a", outcome: "served" }] },
    });
    expect(headers.get("parley-requested-model")).toBe("first");
    expect(headers.get("parley-served-model")).toBe("a");
    expect((await ask({ model: "a" })).answer.parley).not.toHaveProperty("targets");
  });

  it("streams from one of them", async () => {
    const response = await postChat(product.url, product.firstKey, { model: "quick", stream: true, ...says("hi") });
    expect(await response.text()).toMatch(/"content":"from [ab]"/);
  });

  it.each([
    ["/v1/messages", { model: "first", max_tokens: 9, ...says("hi") }],
    ["/v1/responses", { model: "first", input: "hi" }],
    ["/v1beta/models/first:generateContent", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }],
    [
      "/parley.v1.CompletionService/Create",
      { model: "first", messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] },
    ],
    [
      "/parley.v1.CompletionService/Count",
      { model: "first", messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] },
    ],
  ])("serves %s", async (path, body) => {
    const response = await postJson(product.url + path, product.firstKey, body);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(text).toMatch(/"(?:model|modelVersion)":"a"/);
  });

  it("makes no embeddings", async () => {
    const response = await postJson(`${product.url}/v1/embeddings`, product.firstKey, { model: "first", input: "hi" });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("first does not make embeddings");
  });

  it("spreads conversations by the weights, and keeps each at its target", async () => {
    const served: string[] = [];
    const converse = async (number: number): Promise<void> => {
      const conversation = says(`Conversation ${number}`);
      const { model } = (await ask({ model: "chat", ...conversation })).answer;
      expect((await ask({ model: "chat", ...conversation })).answer.model).toBe(model);
      served.push(model);
    };
    // Few at a time: a target with more than its share of the calls in flight is passed over.
    for (let number = 0; number < 200; number += 8)
      await Promise.all(Array.from({ length: 8 }, (_, index) => converse(number + index)));
    const share = served.filter((model) => model === "a").length / served.length;
    // Three quarters, plus or minus three standard deviations.
    expect(share).toBeGreaterThan(0.65);
    expect(share).toBeLessThan(0.85);
  });

  it("is served by the cheapest one", async () => {
    expect((await ask({ model: "cheap" })).answer.parley.targets).toEqual(["a", "b"]);
  });

  it("is served by the next one when the first fails", async () => {
    down.add("a");
    const { answer } = await ask({ model: "first" });
    expect(answer.model).toBe("b");
    expect(answer.parley.attempts.map(({ model, outcome }) => `${model} ${outcome}`)).toEqual([
      "a upstream_unavailable",
      "a upstream_unavailable",
      "b served",
    ]);
  });

  it("is tried before the request's own fallbacks, each model once", async () => {
    down.add("a");
    const { answer } = await ask({ model: "tools", tools: [TOOL], fallback_models: ["first", "b"] });
    expect(answer.parley.attempts.map(({ model }) => model)).toEqual(["a", "a", "b"]);
  });

  it("is served by a target that loses nothing of the request", async () => {
    for (const strict of [false, true]) {
      const { status, answer } = await ask({ model: "first", seed: 7, parley: { strict } });
      expect(status).toBe(200);
      expect(answer).toMatchObject({ model: "b", parley: { omitted: [], targets: ["b", "a"] } });
    }
    expect((await ask({ model: "first", max_tokens: 6_000 })).answer).toMatchObject({
      model: "b",
      parley: { clamped: [] },
    });
  });

  it("serves with a loss when every target loses something, and refuses that to a strict request", async () => {
    const lossy = { model: "tools", tools: [TOOL], seed: 7 };
    expect((await ask(lossy)).answer).toMatchObject({ model: "a", parley: { omitted: ["seed"] } });
    const { status, answer } = await ask({ ...lossy, parley: { strict: true } });
    expect(status).toBe(400);
    expect(answer.error!.message).toContain("seed");
  });

  it("has conditions of its targets", async () => {
    const picture = [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }];
    const seeing = { messages: [{ role: "user", content: picture }] };
    expect((await ask({ model: "pictures", ...says("hi") })).answer.parley.targets).toEqual(["a"]);
    const { status, answer } = await ask({ model: "tools", ...says("hi") });
    expect(status).toBe(400);
    expect(answer.error!.message).toContain("tools has only targets with conditions, of which none is met");
    // Neither model sees pictures; the one with the condition is asked first.
    expect((await ask({ model: "pictures", ...seeing })).status).toBe(400);
  });

  it("has aliases", async () => {
    const { headers, answer } = await ask({ model: "gpt-9" });
    expect(answer.model).toBe("a");
    expect(headers.get("parley-requested-model")).toBe("first");
  });
});

const TOOL = { type: "function", function: { name: "look", parameters: { type: "object" } } };
/** A picture of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

describe("permissions", () => {
  it("are those of the name", async () => {
    expect((await ask({ model: "chat" }, routeKey)).status).toBe(200);
    expect((await ask({ model: "a" }, routeKey)).status).toBe(403);
    expect((await ask({ model: "a" }, modelKey)).status).toBe(200);
    const { status, answer } = await ask({ model: "chat" }, modelKey);
    expect(status).toBe(403);
    expect(answer.error!.message).toContain('may not use the model "chat"');
  });
});

describe("lists of models", () => {
  const headers = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
  const withKey: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${product.firstKey}`);
    return next(request);
  };

  it("have the name, with what holds for all its targets", async () => {
    const listed = (await (await fetch(`${product.url}/v1/models`, { headers: headers(product.firstKey) })).json()) as {
      readonly data: readonly { readonly id: string }[];
    };
    expect(listed.data.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["a", "b", "chat", "first", "cheap", "quick", "tools", "pictures"]),
    );
    const service = createClient(
      ModelService,
      createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", interceptors: [withKey] }),
    );
    const { provider, dialect, price, maxOutputTokens, capabilities, ...facts } = await service.get({ id: "chat" });
    expect(facts).toMatchObject({ id: "chat", description: "Either of two", contextWindow: 100_000 });
    expect({ provider, dialect, price }).toEqual({ provider: "", dialect: "openai", price: undefined });
    expect({ maxOutputTokens, seed: capabilities!.seed }).toEqual({ maxOutputTokens: 5_000, seed: false });
  });

  it("have only what the key may use", async () => {
    const response = await fetch(`${product.url}/v1/models`, { headers: headers(routeKey) });
    expect(await response.json()).toMatchObject({ data: [{ id: "chat" }] });
  });
});

it("is in the ledger and in metrics by the model that served", async () => {
  await ask({ model: "first" });
  // Refused requests, of other tests, are counted by the model that was asked for.
  const { usage } = await runJson<{ usage: readonly { group: string; completions: number }[] }>(
    "usage --by model",
    product,
  );
  const served = usage.filter(({ completions }) => completions > 0).map(({ group }) => group);
  expect(served).toContain("a");
  expect(served).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(chat|first)$/)]));
  const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
  expect(metrics).toMatch(/parley_completions_total\{[^}]*model="chat"/);
  expect(metrics).toMatch(/parley_attempts_total\{target="a"/);
});
