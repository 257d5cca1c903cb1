import { afterAll, beforeAll, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

let product: Product;
beforeAll(async () => {
  const simulator = { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 };
  product = await startProduct({ config: { simulator } });
});
afterAll(() => product?.stop());

const MODEL = "alpha-haiku-4.5";
const MESSAGES = [{ role: "user", content: "hi" }];
const CONNECT = "/parley.v1.CompletionService/Create";

it.each([
  ["a whole completion", "/v1/chat/completions", { model: MODEL, messages: MESSAGES }, "no-store"],
  // What streams say is settled by their format.
  ["a stream", "/v1/chat/completions", { model: MODEL, messages: MESSAGES, stream: true }, "no-cache"],
  ["a failure", "/v1/chat/completions", { model: "none", messages: MESSAGES }, "no-store"],
  ["the list of models", "/v1/models", undefined, "no-store"],
  ["an unknown path", "/v1/nothing", undefined, "no-store"],
  ["a Connect call", CONNECT, { model: MODEL, messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] }, "no-store"],
  ["a Connect call that fails", CONNECT, { model: "none" }, "no-store"],
])("keeps caches from %s, and browsers from guessing its type", async (_, path, body, cacheControl) => {
  const response = await fetch(product.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  await response.text();
  expect(response.headers.get("cache-control")).toBe(cacheControl);
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
});
