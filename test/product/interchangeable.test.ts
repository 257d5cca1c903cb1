import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, startUpstream, type Upstream } from "./support/upstream.ts";

let upstream: Upstream;
let product: Product;
/** Names of the upstream models that were asked, and the inputs. */
const asked: [model: string, input: unknown][] = [];

const EMBEDDED = {
  object: "list",
  data: [
    { object: "embedding", index: 0, embedding: [0.5, 1] },
    { object: "embedding", index: 1, embedding: [1, 0.5] },
  ],
  usage: { prompt_tokens: 4, total_tokens: 4 },
};

beforeAll(async () => {
  upstream = await startUpstream(({ body, response }) => {
    const { model, input } = JSON.parse(body) as { readonly model: string; readonly input: unknown };
    asked.push([model, input]);
    if (model === "first") answerJson(response, 503, {});
    else answerJson(response, 200, { ...EMBEDDED, model });
  });
  const provider = { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true };
  const modalities = { input: ["text"], output: ["embedding"] };
  const fixed = { capabilities: { embedding_dimensions: false } };
  product = await startProduct({
    config: {
      providers: { one: provider, two: provider },
      models: {
        vectors: { provider: "one", upstream_model: "first", modalities, interchangeable: ["fixed", "same"] },
        fixed: { provider: "two", upstream_model: "second", modalities, ...fixed },
        same: { provider: "two", upstream_model: "third", modalities },
      },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1_000 },
    },
  });
});

afterAll(async () => {
  await product?.stop();
  await upstream?.close();
});

it("a model that makes the same vectors serves when the one that was asked for fails", async () => {
  const client = new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0 });
  const input = ["the cat sat", "a dog ran"];
  const made = await client.embeddings.create({ model: "vectors", input });
  expect(made.model).toBe("fixed");
  expect(made.data.map(({ embedding }) => embedding)).toEqual([
    [0.5, 1],
    [1, 0.5],
  ]);
  expect(asked).toEqual([
    ["first", input],
    ["first", input],
    ["second", input],
  ]);

  asked.length = 0;
  const shorter = await client.embeddings.create({ model: "vectors", input, dimensions: 2 });
  expect(shorter.model).toBe("same");
  expect(asked.map(([model]) => model)).toEqual(["first", "first", "third"]);
});
