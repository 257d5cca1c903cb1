import { afterAll, beforeAll, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.stop());

it("the log has no API key that a caller put into a path, a model's name or a request ID", async () => {
  const { url, firstKey: key, output } = product;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": key };
  await fetch(`${url}/v1/${key}`, { headers });
  await fetch(`${url}/v1/models/${key}`, { headers });
  const body = JSON.stringify({ model: key, messages: [{ role: "user", content: "hi" }] });
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  expect(response.status).toBe(404);
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  await expect.poll(() => output.stderr.match(/sk_parley_\[redacted\]/g)?.length ?? 0).toBeGreaterThanOrEqual(2);
  expect(output.stderr).not.toContain(key);
});
