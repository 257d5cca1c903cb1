import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { createKey } from "../support/cli.ts";

let product: Product;
/** May use one model only. */
let limitedKey: string;

beforeAll(async () => {
  const simulator = { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 };
  const aliases = {
    "claude-haiku-*": "alpha-haiku-4.5",
    "claude-*": "alpha-sonnet-4.5",
    "embedding-*": "gamma-embedding-3-small",
  };
  product = await startProduct({ config: { simulator, aliases } });
  limitedKey = (await createKey(product, "--models alpha-haiku-4.5")).key;
});
afterAll(() => product?.stop());

const MESSAGES = [{ role: "user", content: "hi" }];

async function post(path: string, body: object, key = product.firstKey) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(product.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("an alias", () => {
  it.each([
    ["chat completions", "/v1/chat/completions", { model: "claude-haiku-9", messages: MESSAGES }],
    ["chat completions", "/v1/chat/completions", { model: "claude-haiku-9", messages: MESSAGES, stream: true }],
    ["Messages", "/v1/messages", { model: "claude-haiku-9", messages: MESSAGES, max_tokens: 9 }],
    ["Messages", "/v1/messages", { model: "claude-haiku-9", messages: MESSAGES, max_tokens: 9, stream: true }],
    ["Responses", "/v1/responses", { model: "claude-haiku-9", input: "hi" }],
    [
      "the Gemini API",
      "/v1beta/models/claude-haiku-9:generateContent",
      { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    ],
    [
      "Connect",
      "/parley.v1.CompletionService/Create",
      { model: "claude-haiku-9", messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] },
    ],
  ])("is its model in %s", async (_, path, body) => {
    const { status, headers, text } = await post(path, body, limitedKey);
    expect(status, text).toBe(200);
    expect(text).toContain("alpha-haiku-4.5");
    expect(headers.get("parley-requested-model")).toBe("alpha-haiku-4.5");
    expect(headers.get("parley-served-model")).toBe("alpha-haiku-4.5");
  });

  it("is its model for embeddings, fallbacks and the model itself", async () => {
    const embedded = await post("/v1/embeddings", { model: "embedding-1", input: "hi" });
    expect(JSON.parse(embedded.text)).toMatchObject({ model: "gamma-embedding-3-small" });
    const fallback = { model: "claude-1", fallback_models: ["claude-2", "alpha-sonnet-4.5"], messages: MESSAGES };
    expect(JSON.parse((await post("/v1/chat/completions", fallback)).text)).toMatchObject({
      model: "alpha-sonnet-4.5",
    });
    const headers = { authorization: `Bearer ${product.firstKey}` };
    const found = await fetch(`${product.url}/v1/models/claude-1`, { headers });
    expect(await found.json()).toMatchObject({ id: "alpha-sonnet-4.5" });
    const listed = (await (await fetch(`${product.url}/v1/models`, { headers })).json()) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id).filter((id) => /claude|embedding-\*/.test(id))).toEqual([]);
  });

  it.each([
    ["model", { model: "claude-opus-1", messages: MESSAGES }],
    ["fallback", { model: "alpha-haiku-4.5", fallback_models: ["claude-opus-1"], messages: MESSAGES }],
  ])("of a model that the key may not use is refused as a %s", async (_, body) => {
    const { status, text } = await post("/v1/chat/completions", body, limitedKey);
    expect(status).toBe(403);
    expect(text).toContain('may not use the model \\"alpha-sonnet-4.5\\"');
  });

  it("is the model in metrics, also of requests that are refused", async () => {
    for (const key of [limitedKey, product.firstKey])
      expect((await post("/v1/embeddings", { model: "claude-haiku-9", input: "hi" }, key)).status).toBe(400);
    expect((await post("/v1/embeddings", { model: "embedding-9", input: "hi" }, limitedKey)).status).toBe(403);
    const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
    expect(metrics).toMatch(/parley_completions_total\{[^}]*model="alpha-haiku-4\.5"/);
    expect(metrics).not.toMatch(/claude-haiku-9|embedding-9|model="unknown"/);
  });
});
