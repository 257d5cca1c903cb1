import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, answerText, startUpstream, type Upstream } from "./support/upstream.ts";

let listed = ["first"];
let upstream: Upstream;
let product: Product;
let config: object;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    if (exchange.request.method === "POST") return answerText(exchange, "Hello.");
    answerJson(exchange.response, 200, { data: listed.map((id) => ({ id })) });
  });
  config = {
    providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
    models: { "*": "import" },
  };
  product = await startProduct({ config });
});
afterAll(async () => {
  await product.stop();
  await upstream.close();
});

const call = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(product.url + path, {
    ...init,
    headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
  });

async function models(): Promise<string[]> {
  const { data } = (await (await call("/v1/models")).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

describe("models that a provider lists", () => {
  it("are served from the start on, and those of a later list from a reload on", async () => {
    expect(await models()).toEqual(["first"]);
    const body = JSON.stringify({ model: "first", messages: [{ role: "user", content: "Hi." }] });
    expect((await call("/v1/chat/completions", { method: "POST", body })).status).toBe(200);
    listed = ["second", "first"];
    product.signal("SIGHUP");
    await expect.poll(models, { timeout: 10_000 }).toEqual(["second", "first"]);
  });
});
