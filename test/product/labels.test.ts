import { join } from "node:path";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { RouteReason } from "../../gen/parley/v1/route_pb.js";
import { captureCli, createKey } from "../support/cli.ts";
import type { RoutePlanJson } from "../../src/formats/route-plan.ts";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, answerText, startUpstream, type Upstream } from "./support/upstream.ts";
import { postJson } from "../support/post-json.ts";

let upstream: Upstream;
let product: Product;
/** The provider's models that are down. */
const down = new Set<string>();
/** Keys by what they are for. */
const keys = {} as Record<"plain" | "eu" | "premium" | "poor", { readonly id: string; readonly key: string }>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { model } = JSON.parse(exchange.body) as { readonly model: string };
    if (down.has(model)) answerJson(exchange.response, 503, {});
    else answerText(exchange, `from ${model}`);
  });
  const at = { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true };
  const model = { context_window: 100_000, max_output_tokens: 10_000, price: { input: 1, output: 2 } };
  product = await startProduct({
    config: {
      providers: { here: { ...at, labels: { region: "eu", retention: "none" } }, there: at },
      models: {
        "eu-1": { ...model, provider: "here", upstream_model: "eu-1" },
        "eu-2": { ...model, provider: "here", upstream_model: "eu-2", labels: { retention: "30d" } },
        us: { ...model, provider: "there", upstream_model: "us", labels: { region: "us" } },
        vectors: {
          provider: "there",
          upstream_model: "vectors",
          context_window: 8_000,
          modalities: { input: ["text"], output: ["embedding"] },
        },
        chat: {
          targets: [{ model: "us", when: { key_tags: ["premium"] } }, { model: "eu-1" }, { model: "eu-2" }],
        },
        abroad: { targets: [{ model: "us" }] },
      },
      aliases: { "gpt-*": "chat" },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1_000 },
    },
  });
  keys.plain = await createKey(product);
  keys.eu = await createKey(product, "--require-region eu,ch");
  keys.premium = await createKey(product, "--tags premium,batch");
  keys.poor = await createKey(product, "--budget 0.001 --rpm 3");
});

afterAll(async () => {
  await product?.stop();
  await upstream?.close();
});

beforeEach(() => down.clear());

/** Runs a command beside the product, on its database. */
const run = (input: string, ...argv: readonly string[]) =>
  captureCli([...argv, "--config", join(product.home, "parley.yaml")], {
    env: { PARLEY_DATA_DIR: join(product.home, "data") },
    readInput: () => Promise.resolve(input),
  });

interface Sent {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function post(path: string, body: object, { key = keys.plain.key, headers = {} }: Sent = {}) {
  const response = await postJson(product.url + path, key, body, { headers });
  const json: unknown = await response.json();
  return { status: response.status, headers: response.headers, json };
}

const CHAT = { messages: [{ role: "user", content: "hi" }] };
const chat = (body: object, sent?: Sent) => post("/v1/chat/completions", { ...CHAT, ...body }, sent);
const explain = async (body: object, sent?: Sent) => {
  const { status, json } = await post("/v1/route", { ...CHAT, ...body }, sent);
  return { status, plan: json as RoutePlanJson };
};
/** In the words of the contract. */
const MESSAGES = { messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] };
const paramOf = (json: unknown): unknown => (json as { readonly error?: { readonly param?: unknown } }).error?.param;
const asked = (): string[] =>
  upstream.exchanges.map(({ body }) => (JSON.parse(body) as { readonly model: string }).model);

describe("a label that a key or a request requires", () => {
  it.each([
    ["/v1/chat/completions", { model: "us", ...CHAT }, "model"],
    ["/v1/messages", { model: "us", max_tokens: 9, ...CHAT }, undefined],
    ["/v1/messages/count_tokens", { model: "us", ...CHAT }, undefined],
    ["/v1/responses", { model: "us", input: "hi" }, "model"],
    ["/v1beta/models/us:generateContent", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }, undefined],
    ["/v1/embeddings", { model: "vectors", input: "hi" }, "model"],
    ["/v1/route", { model: "us", ...CHAT }, "model"],
    ["/parley.v1.CompletionService/Create", { model: "us", ...MESSAGES }, undefined],
    ["/parley.v1.CompletionService/Explain", { completion: { model: "us", ...MESSAGES } }, undefined],
    ["/parley.v1.EmbeddingService/Create", { model: "vectors", inputs: [{ text: "hi" }] }, undefined],
  ])("refuses a model without it at %s, by the rule's name", async (path, body, param) => {
    const before = upstream.exchanges.length;
    const ofKey = await post(path, body, { key: keys.eu.key });
    expect(ofKey.status).toBe(403);
    expect(JSON.stringify(ofKey.json)).toContain("region eu or ch, as this API key requires");
    expect(paramOf(ofKey.json)).toBe(param);
    const ofRequest = await post(path, body, { headers: { "parley-require-region": "eu, ch" } });
    expect(ofRequest.status).toBe(400);
    expect(JSON.stringify(ofRequest.json)).toContain("region eu or ch, as the request requires");
    expect(paramOf(ofRequest.json)).toBe(param);
    expect(upstream.exchanges.length).toBe(before);
  });

  it("is that of the model, else of its provider, and limits a name to the models that have it", async () => {
    const model = async (body: object, sent: Sent): Promise<unknown> => (await chat(body, sent)).json;
    expect(await model({ model: "gpt-5" }, { headers: { "parley-require-retention": "30d" } })).toMatchObject({
      model: "eu-2",
      parley: { targets: ["eu-2"] },
    });
    expect(await model({ model: "chat" }, { key: keys.premium.key })).toMatchObject({ model: "us" });
    const here = { key: keys.premium.key, headers: { "parley-require-region": "eu" } };
    expect(await model({ model: "chat" }, here)).toMatchObject({
      model: "eu-1",
      parley: { targets: ["eu-1", "eu-2"] },
    });
    expect(await model({ model: "chat" }, { key: keys.eu.key })).toMatchObject({ model: "eu-1" });
  });

  it("holds for fallbacks: a failure goes to no model without it", async () => {
    for (const fallback of ["us", "abroad"]) {
      const { status, json } = await chat({ model: "eu-1", fallback_models: [fallback] }, { key: keys.eu.key });
      expect(status).toBe(403);
      expect(json).toMatchObject({ error: { param: "fallback_models[0]" } });
    }
    for (const model of ["eu-1", "eu-2"]) down.add(model);
    const before = asked().length;
    const headers = { "parley-require-region": "eu" };
    const { status } = await chat({ model: "chat" }, { key: keys.premium.key, headers });
    expect(status).toBe(503);
    expect(new Set(asked().slice(before))).toEqual(new Set(["eu-1", "eu-2"]));
  });

  it("is refused where it is no value", async () => {
    const { status, json } = await chat({ model: "us" }, { headers: { "parley-require-region": "EU" } });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param: "parley-require-region" } });
    const twice = { model: "us", ...MESSAGES, requiredLabels: { regions: ["us"] } };
    const headers = { "parley-require-region": "eu" };
    expect((await post("/parley.v1.CompletionService/Create", twice, { headers })).json).toMatchObject({
      message: "required_labels: must not be sent beside its headers.",
    });
  });

  it("is listed with the model", async () => {
    const get = async (name: string): Promise<unknown> =>
      (await post("/parley.v1.ModelService/Get", { id: name })).json;
    expect(await get("eu-2")).toMatchObject({ region: "eu", retention: "30d" });
    expect(await get("chat")).not.toHaveProperty("region");
  });
});

describe("an explanation", () => {
  it("names the models in order, and those left out, with reasons, losses, prices and the worst case", async () => {
    const before = upstream.exchanges.length;
    const headers = { "parley-require-region": "eu" };
    const { status, plan } = await explain({ model: "gpt-5", max_tokens: 100 }, { headers });
    expect(status).toBe(200);
    expect(plan).toMatchObject({
      object: "route_plan",
      model: "chat",
      aliases: [{ name: "gpt-5", model: "chat" }],
      policy: "ordered",
      affinity: false,
      steps: [
        { model: "eu-1", reason: "policy", region: "eu", retention: "none", omitted: [], refusal: null, weight: 1 },
        { model: "eu-2", reason: "policy", region: "eu", retention: "30d" },
      ],
      left_out: [{ model: "us", reason: "label", message: "is not of region eu, as the request requires" }],
      refusals: [],
    });
    expect(plan.steps[0]).toMatchObject({ input_usd_per_mtok: 1, output_usd_per_mtok: 2 });
    expect(plan.reserved_tokens).toBe(plan.prompt_tokens + 100);
    expect(plan.steps[0]!.worst_case_usd).toBeGreaterThan(0.0002);
    expect(plan.reserved_usd).toBe(Math.max(...plan.steps.map((step) => step.worst_case_usd!)));
    const tagged = await explain({ model: "chat" });
    expect(tagged.plan.left_out).toMatchObject([{ model: "us", reason: "condition", message: "is for other keys" }]);
    expect(upstream.exchanges.length).toBe(before);
  });

  it("has the words of the Messages format for its callers", async () => {
    const headers = { "anthropic-version": "2023-06-01" };
    const body = { model: "chat", max_tokens: 9, top_k: 5, ...CHAT };
    expect((await post("/v1/route", body, { headers })).json).toMatchObject({
      steps: [{ model: "eu-1", omitted: ["top_k"] }, {}],
    });
    expect((await post("/v1/route", { ...body, max_tokens: -1 }, { headers })).json).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error" },
    });
  });

  it("is refused as the completion would be", async () => {
    for (const body of [{ model: "nothing" }, { model: "us", temperature: 9 }, { model: "vectors" }])
      expect((await post("/v1/route", { ...CHAT, ...body })).json).toEqual((await chat(body)).json);
  });

  it("names the budget that would refuse, takes nothing of it, and counts as a request", async () => {
    const sent = { key: keys.poor.key };
    const first = await explain({ model: "eu-1" }, sent);
    expect(first.plan.refusals).toMatchObject([{ reason: "budget_spent" }]);
    expect((await explain({ model: "eu-1", max_tokens: 10 }, sent)).plan.refusals).toEqual([]);
    expect((await explain({ model: "us", temperature: 9 }, sent)).status).toBe(400);
    expect((await explain({ model: "eu-1" }, sent)).status).toBe(429);
  });

  it.each(["gRPC", "Connect"])("is served over %s", async (protocol) => {
    const withKey: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${keys.premium.key}`);
      return next(request);
    };
    const interceptors = [withKey];
    const transport =
      protocol === "gRPC"
        ? createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}`, interceptors })
        : createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", interceptors });
    const client = createClient(CompletionService, transport);
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } as const }] }];
    const completion = { model: "chat", messages, requiredLabels: { retentions: ["none", "30d"] } };
    const plan = await client.explain({ completion, stream: true });
    expect(plan.steps.map(({ model }) => model)).toEqual(["eu-1", "eu-2"]);
    expect(plan.leftOut).toMatchObject([{ model: "us", reason: RouteReason.LABEL }]);
    await expect(client.explain({})).rejects.toThrow("model: is required");
    const headers = { "parley-require-region": "us" };
    const abroad = { completion: { model: "abroad", messages } };
    expect((await client.explain(abroad, { headers })).steps).toMatchObject([{ model: "us" }]);
    await expect(client.explain(abroad, { headers: { "parley-require-region": "eu" } })).rejects.toThrow("region eu");
    await expect(client.explain({ completion }, { headers })).rejects.toThrow("beside its headers");
    await expect(client.explain({ completion: { ...completion, model: "us" } })).rejects.toThrow(
      "model: must be a model of retention none or 30d, as the request requires",
    );
  });

  it("is printed by the command line, for any key", async () => {
    const body = JSON.stringify({ ...CHAT, model: "us", seed: 1 });
    const { stdout, code } = await run(body, "route", "explain", "--model", "gpt-5", "--key", keys.premium.id);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^gpt-5 stands for chat\nchat: ordered\n/);
    expect(stdout).toMatch(/^1 +us +policy +us +- +- +[\d.]+ USD +place 1 in the configured order$/m);
    const { stdout: json } = await run(body, "route", "explain", "--model", "chat", "--key", keys.eu.id, "--json");
    const { plan } = await explain({ model: "chat", seed: 1 }, { key: keys.eu.key });
    // Only the running process has measured times.
    expect(JSON.parse(json)).toEqual(
      JSON.parse(JSON.stringify(plan).replaceAll(/"expected_ms":\d+/g, '"expected_ms":null')),
    );
    const tagged = await run(body, "route", "explain", "--model", "chat", "--key", keys.plain.id);
    expect(tagged.stdout).toContain("is for keys with one of the tags premium");
    expect(await run(body, "route", "explain", "--key", keys.eu.id)).toMatchObject({
      code: 1,
      stderr: "parley: model: must be a model of region eu or ch, as this API key requires; us is not.\n",
    });
    expect((await run("no", "route", "explain", "--key", keys.eu.id)).stderr).toContain("standard input must be");
    expect((await run(body, "route", "explain", "--key", keys.eu.key)).stderr).not.toContain(keys.eu.key);
  });
});
