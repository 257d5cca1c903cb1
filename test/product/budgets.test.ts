import { once } from "node:events";
import { type IncomingMessage, request as sendRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";
import { createKey, runJson } from "../support/cli.ts";

/** Time in which the gateway reads on for a count after its caller has left. */
const SETTLE_MS = 3_000;

/** The provider answers when this resolves. */
let released = Promise.resolve();
let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream(async (exchange) => {
    await released;
    answerText(exchange, "Hello.");
  });
  product = await startProduct({
    config: { ...localModel(upstream.url), limits: UNLIMITED, timeouts: { settle_ms: SETTLE_MS } },
  });
});
afterAll(async () => {
  await product.stop();
  await upstream.close();
});

function ask(
  key: string,
  body: object,
  { at = product, signal }: { readonly at?: Product; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return postChat(
    at.url,
    key,
    { model: "local/test", messages: [{ role: "user", content: "Hi." }], ...body },
    { signal },
  );
}

const sent = (): Record<string, unknown> => JSON.parse(upstream.exchanges.at(-1)!.body) as Record<string, unknown>;

const OPTIONS = {
  service_tier: "priority",
  store: true,
  web_search_options: {},
  prompt_cache_retention: "24h",
};

describe("a request under a budget", () => {
  it("is refused when any text that is sent makes its worst case exceed the budget", async () => {
    const { key } = await createKey(product, "--budget 0.05");
    const long = "x".repeat(200_000);
    const schema = { name: "s", description: long, schema: { type: "object", properties: {} } };
    for (const body of [
      { messages: [{ role: "user", content: long }] },
      { response_format: { type: "json_schema", json_schema: schema } },
      { tools: [{ type: "function", function: { name: "f", description: long } }] },
      { user: long },
      { stop: [long] },
      { prompt_cache_key: long },
    ]) {
      const asked = upstream.exchanges.length;
      const response = await ask(key, { max_tokens: 1, ...body });
      expect([Object.keys(body), response.status]).toEqual([Object.keys(body), 429]);
      expect(upstream.exchanges).toHaveLength(asked);
    }
    expect((await ask(key, { max_tokens: 1 })).status).toBe(200);
  });

  it("has a cap on its answer, and no option that costs extra or lets the provider store data", async () => {
    const { key } = await createKey(product, "--budget 1");
    const response = await ask(key, OPTIONS);
    const { parley } = (await response.json()) as { parley: { omitted: string[] } };
    expect(response.status).toBe(200);
    expect(sent()).toMatchObject({ max_tokens: 8_192 });
    expect(Object.keys(sent())).not.toEqual(expect.arrayContaining([expect.stringMatching(/tier|store|search|cache/)]));
    expect(parley.omitted.toSorted()).toEqual(Object.keys(OPTIONS).toSorted());
    const strict = await ask(key, { ...OPTIONS, parley: { strict: true } });
    expect(strict.status).toBe(400);
    expect(await strict.text()).toContain("service_tier: is not allowed for this API key and provider");
  });

  it("has the options that its key allows", async () => {
    const { id, key } = await createKey(product, "--budget 1 --options service_tier,store");
    await ask(key, OPTIONS);
    expect(sent()).toMatchObject({ service_tier: "priority", store: true });
    expect(Object.keys(sent())).not.toEqual(expect.arrayContaining([expect.stringMatching(/search|cache/)]));
    expect(await runJson(`keys update ${id} --options none`, product)).toMatchObject({ options: [] });
    expect(await runJson(`keys update ${id} --options default`, product)).toMatchObject({ options: "default" });
  });
});

describe("a request without a budget", () => {
  it("has every option, and no added cap", async () => {
    const { key } = await createKey(product);
    await ask(key, OPTIONS);
    expect(sent()).toMatchObject(OPTIONS);
    expect(Object.keys(sent())).not.toContain("max_tokens");
  });
});

describe("a request that its provider does not answer", () => {
  /** Money for two prompts of this length. */
  const PROMPT = { messages: [{ role: "user", content: "x".repeat(40_000) }], max_tokens: 1 };
  const BUDGET = "--budget 0.1";

  /** A key asks five times. Returns the statuses, and how often the provider was asked. */
  function askFiveTimes(model: string, status: number, error: object) {
    return askFiveTimesWhere({ model }, ({ response }) => answerJson(response, status, { error }));
  }

  async function askFiveTimesWhere(body: object, answer: (exchange: UpstreamExchange) => void) {
    const refusing = await startUpstream(answer);
    const { providers, models } = localModel(refusing.url) as { providers: object; models: Record<string, object> };
    const azure = {
      preset: "azure",
      base_url: `${refusing.url}/v1`,
      allow_private: true,
      api_keys: ["a-key-of-azure"],
    };
    const responses = { ...azure, dialect: "openai-responses" };
    const gemini = { dialect: "gemini", base_url: refusing.url, allow_private: true, api_keys: ["a-key-of-google"] };
    const world = await startProduct({
      config: {
        providers: { ...providers, azure, responses, gemini },
        models: {
          ...models,
          "azure/test": { ...models["local/test"], provider: "azure" },
          "responses/test": { ...models["local/test"], provider: "responses" },
          "gemini/test": { ...models["local/test"], provider: "gemini" },
        },
        limits: UNLIMITED,
        retries: { base_ms: 0, cap_ms: 0 },
      },
    });
    try {
      const { key } = await createKey(world, BUDGET);
      const statuses: number[] = [];
      for (let time = 0; time < 5; time++)
        statuses.push((await ask(key, { ...body, ...PROMPT }, { at: world })).status);
      return { statuses, asked: refusing.exchanges.length };
    } finally {
      await world.stop();
      await refusing.close();
    }
  }

  it.each([
    ["because its time ran out", "local/test", 504, { message: "upstream timed out" }],
    ["because Azure's time ran out", "azure/test", 408, { code: "Timeout" }],
    ["because Azure's content filter refuses it", "azure/test", 400, { code: "content_filter" }],
    ["because it is too long for Azure", "azure/test", 400, { code: "context_length_exceeded" }],
    [
      "because its model has used all tokens for reasoning",
      "local/test",
      400,
      { message: "Could not finish the message because max_tokens or model output limit was reached." },
    ],
    ["because what its model generated is invalid", "local/test", 400, { failed_generation: "{" }],
    ["because a picture is refused", "local/test", 400, { code: "moderation_blocked" }],
  ])("is booked, as the provider may bill it: %s", async (_, model, status, error) => {
    const { statuses, asked } = await askFiveTimes(model, status, error);
    expect(statuses.at(-1)).toBe(429);
    expect(asked).toBeLessThanOrEqual(2);
  });

  it("is booked when Azure's content filter refuses it within a stream", async () => {
    const events = [
      { type: "response.created", response: { status: "in_progress", output: [] } },
      { type: "response.failed", response: { status: "failed", error: null, usage: null } },
      {
        type: "error",
        error: { type: "invalid_request_error", code: "content_policy_violation", message: "Filtered." },
      },
    ];
    const { statuses, asked } = await askFiveTimesWhere({ model: "responses/test", stream: true }, ({ response }) => {
      beginStream(response);
      response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    });
    expect([statuses[0], statuses.at(-1)]).toEqual([400, 429]);
    expect(asked).toBeLessThanOrEqual(2);
  });

  it("is booked when Gemini's stream fails after a count", async () => {
    const events = [
      { usageMetadata: { promptTokenCount: 40_000, thoughtsTokenCount: 500 } },
      { error: { code: 503, status: "UNAVAILABLE", message: "Overloaded." } },
    ];
    const { statuses, asked } = await askFiveTimesWhere({ model: "gemini/test", stream: true }, ({ response }) => {
      beginStream(response);
      response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    });
    expect([statuses[0], statuses.at(-1)]).toEqual([503, 429]);
    expect(asked).toBeLessThanOrEqual(2);
  });

  it("is booked by the count when Gemini blocks it", async () => {
    const blocked = { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 10 } };
    const { statuses } = await askFiveTimesWhere({ model: "gemini/test" }, ({ response }) => {
      answerJson(response, 200, blocked);
    });
    expect(statuses).toEqual([200, 200, 200, 200, 200]);
  });

  it("costs nothing when it is refused elsewhere", async () => {
    const { statuses, asked } = await askFiveTimes("local/test", 400, { code: "content_filter" });
    expect(statuses).toEqual([400, 400, 400, 400, 400]);
    expect(asked).toBe(5);
  });
});

describe("a stream that Parley ends", () => {
  /** A call with arguments that are nested deeper than Parley reads, in an event that is long enough to be measured. */
  const deep = { text: "x".repeat(20_000), list: JSON.parse("[".repeat(200) + "]".repeat(200)) as unknown };
  const events = [
    { candidates: [{ content: { parts: [{ text: "Now I call it." }] } }] },
    { candidates: [{ content: { parts: [{ functionCall: { name: "f", args: deep } }] } }] },
  ];

  it("costs no more than its budget where the provider generates on, and bills the whole answer", async () => {
    const generating = await startUpstream(({ response }) => {
      beginStream(response);
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
    });
    const { models } = localModel(generating.url) as { models: Record<string, object> };
    const gemini = { dialect: "gemini", base_url: generating.url, allow_private: true, api_keys: ["a-key-of-google"] };
    const world = await startProduct({
      config: {
        providers: { gemini },
        models: { "gemini/test": { ...models["local/test"], provider: "gemini" } },
        limits: UNLIMITED,
        breaker: { failures: 100 },
      },
    });
    try {
      const { key } = await createKey(world, "--budget 0.1");
      /** 10,000 tokens at 2 USD per million. */
      const billedMicroUsd = 20_000;
      let status = 0;
      for (let time = 0; time < 12; time++) {
        const response = await ask(key, { model: "gemini/test", stream: true, max_tokens: 10_000 }, { at: world });
        status = response.status;
        await response.text().catch(() => undefined);
      }
      expect(status).toBe(429);
      expect(generating.exchanges.length * billedMicroUsd).toBeLessThanOrEqual(100_000 + billedMicroUsd);
    } finally {
      await world.stop();
      await generating.close();
    }
  });
});

describe("a document", () => {
  it("is refused under a budget where its provider reads documents for a fee", async () => {
    const { models } = localModel(upstream.url) as { models: Record<string, object> };
    const openrouter = {
      preset: "openrouter",
      base_url: `${upstream.url}/v1`,
      allow_private: true,
      api_keys: ["a-key"],
    };
    const modalities = { input: ["text", "file"], output: ["text"] };
    const world = await startProduct({
      config: {
        providers: { openrouter },
        models: {
          "local/test": { ...models["local/test"], provider: "openrouter" },
          reader: { ...models["local/test"], provider: "openrouter", modalities },
        },
        limits: UNLIMITED,
      },
    });
    try {
      const file = { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQK" };
      const body = { messages: [{ role: "user", content: [{ type: "file", file }] }] };
      const { key } = await createKey(world, "--budget 5");
      const asked = upstream.exchanges.length;
      const refused = await ask(key, body, { at: world });
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("charges for documents")]);
      expect(upstream.exchanges).toHaveLength(asked);
      expect((await ask(key, { ...body, model: "reader" }, { at: world })).status).toBe(200);
      expect((await ask(world.firstKey, body, { at: world })).status).toBe(200);
    } finally {
      await world.stop();
    }
  });
});

describe("a request whose body is still arriving", () => {
  it.each([
    ["/v1/chat/completions", { role: "user", content: "Hi." }],
    ["/parley.v1.CompletionService/Create", { role: "ROLE_USER", parts: [{ text: "Hi." }] }],
  ])("has the budget that its key has when it has arrived: %s", async (path, message) => {
    const { id, key } = await createKey(product, "--budget 1");
    const body = Buffer.from(JSON.stringify({ model: "local/test", messages: [message] }));
    const request = sendRequest(product.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-length": body.length },
    });
    const answered = once(request, "response") as Promise<[IncomingMessage]>;
    request.write(body.subarray(0, 8));
    await runJson(`keys update ${id} --budget 0`, product);
    await expect.poll(async () => (await ask(key, {})).status, { timeout: 10_000, interval: 100 }).toBe(429);
    const asked = upstream.exchanges.length;
    request.end(body.subarray(8));
    const [response] = await answered;
    expect([response.statusCode, upstream.exchanges.length]).toEqual([429, asked]);
    response.resume();
  });
});

describe("a completion whose caller leaves", () => {
  const ROUNDS = 12;
  const LEAVES_MS = 200;

  /** Waits until the gateway has seen that all callers have left. */
  const untilLeft = (): Promise<void> =>
    expect
      .poll(async () => {
        const { active_calls } = (await (await fetch(`${product.operationsUrl}/readyz`)).json()) as {
          readonly active_calls: number;
        };
        return active_calls;
      })
      .toBe(0);

  interface KeyUsage {
    readonly group: string;
    readonly completions: number;
    readonly estimated: number;
    readonly completion_tokens: number;
    readonly cost_micro_usd: number;
  }

  /** What the ledger has of a key. */
  async function usageOf(id: string): Promise<KeyUsage | undefined> {
    const { usage } = await runJson<{ usage: readonly KeyUsage[] }>("usage --by key", product);
    return usage.find(({ group }) => group === id);
  }

  it.each([
    // The provider counts two tokens for a whole answer, and nothing for a stream.
    ["by the provider's count where it came in the time to settle", true, (ROUNDS / 2) * (2 + LEAVES_MS)],
    ["by all that can have been generated where none came", false, ROUNDS * LEAVES_MS],
  ])("is booked %s", async (_, answersInTime, leastTokens) => {
    const release = Promise.withResolvers<void>();
    released = release.promise;
    const { id, key } = await createKey(product, "--budget 1");
    const asked = upstream.exchanges.length;
    const leaving = new AbortController();
    const calls = Array.from({ length: ROUNDS }, (_unused, index) =>
      ask(key, { stream: index % 2 === 0, max_tokens: 2_000 }, { signal: leaving.signal }).then(
        (response) => response.text(),
        () => undefined,
      ),
    );
    await expect.poll(() => upstream.exchanges.length - asked, { timeout: 10_000 }).toBe(ROUNDS);
    await new Promise((resolve) => setTimeout(resolve, LEAVES_MS));
    leaving.abort();
    await Promise.all(calls);
    await untilLeft();
    if (answersInTime) release.resolve();
    await expect.poll(() => usageOf(id), { timeout: 15_000 }).toMatchObject({ completions: ROUNDS });
    release.resolve();
    const usage = (await usageOf(id))!;
    expect(usage.estimated).toBe(answersInTime ? ROUNDS / 2 : ROUNDS);
    expect(usage.completion_tokens).toBeGreaterThanOrEqual(leastTokens);
    expect(usage.cost_micro_usd).toBeGreaterThan(2 * leastTokens);
    expect(usage.cost_micro_usd).toBeLessThanOrEqual(1_000_000);
  });

  it("costs no more than its budget where the provider generates on, and bills each whole answer", async () => {
    const release = Promise.withResolvers<void>();
    released = release.promise;
    const { key } = await createKey(product, "--budget 0.1");
    const asked = upstream.exchanges.length;
    /** 10,000 tokens at 2 USD per million. */
    const billedMicroUsd = 20_000;
    let statuses: number[] = [0];
    for (let round = 0; round < 6 && statuses.includes(0); round++) {
      const leaving = new AbortController();
      const before = upstream.exchanges.length;
      let refused = 0;
      const calls = Array.from({ length: 6 }, async () => {
        const response = await ask(key, { max_tokens: 10_000 }, { signal: leaving.signal }).catch(() => undefined);
        if (response !== undefined) refused += 1;
        return response?.status ?? 0;
      });
      await expect.poll(() => upstream.exchanges.length - before + refused).toBe(6);
      leaving.abort();
      statuses = await Promise.all(calls);
      await untilLeft();
      // After the time to settle the hold is released.
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS + 500));
    }
    release.resolve();
    expect(statuses).toEqual(Array.from({ length: 6 }, () => 429));
    expect((upstream.exchanges.length - asked) * billedMicroUsd).toBeLessThanOrEqual(100_000 + billedMicroUsd);
  });
});
