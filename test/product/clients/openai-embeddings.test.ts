import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../../support/product.ts";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { answerJson, startUpstream, type Upstream } from "../support/upstream.ts";
import { rejectionsOf } from "../../support/errors.ts";
import { postJson } from "../../support/post-json.ts";

/** What a float of 32 bits holds exactly. */
const VECTORS = [
  [0.5, -0.25, 0.125],
  [1, 0, -1],
];

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream(({ body, response }) => {
    if (body.includes("limited")) return answerJson(response, 429, { error: { message: "slow down", type: "x" } });
    answerJson(response, 200, {
      object: "list",
      data: VECTORS.map((embedding, index) => ({ object: "embedding", index, embedding })),
      model: "emb",
      usage: { prompt_tokens: 2, total_tokens: 2 },
    });
  });
  product = await startProduct({
    config: {
      providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
      models: {
        vectors: {
          provider: "local",
          upstream_model: "emb",
          modalities: { input: ["text"], output: ["embedding"] },
          price: { input: 1 },
        },
        words: { provider: "local", upstream_model: "words" },
      },
      retries: { base_ms: 1, cap_ms: 1 },
    },
  });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

beforeEach(cleanEnvironment);

function client(): OpenAI {
  return new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0 });
}

const errorOf = rejectionsOf<InstanceType<typeof OpenAI.APIError>>(OpenAI.APIError);

describe("the openai client's embeddings", () => {
  it("are asked for and read as base64, which the client does unasked", async () => {
    const made = await client().embeddings.create({ model: "vectors", input: ["a", "b"], dimensions: 3, user: "u" });
    expect(made.data.map(({ embedding }) => embedding)).toEqual(VECTORS);
    expect(made).toMatchObject({ object: "list", model: "vectors", usage: { prompt_tokens: 2, total_tokens: 2 } });
    const { model, input, dimensions, user } = JSON.parse(upstream.exchanges.at(-1)!.body) as Record<string, unknown>;
    expect({ model, input, dimensions, user }).toEqual({ model: "emb", input: ["a", "b"], dimensions: 3, user: "u" });
  });

  it.each([
    ["float", VECTORS],
    ["base64", ["AAAAPwAAgL4AAAA+", "AACAPwAAAAAAAIC/"]],
  ] as const)("are %s for a caller who asks for it", async (encoding, expected) => {
    const response = await postJson(`${product.url}/v1/embeddings`, product.firstKey, {
      model: "vectors",
      input: ["a", "b"],
      encoding_format: encoding,
      later: 1,
    });
    expect(response.headers.get("parley-served-model")).toBe("vectors");
    const made = (await response.json()) as { data: { embedding: unknown }[]; parley: object };
    expect(made.data.map(({ embedding }) => embedding)).toEqual(expected);
    expect(made.parley).toMatchObject({ omitted: ["later"], attempts: [{ model: "vectors", outcome: "served" }] });
  });

  it("fail with the client's own classes", async () => {
    const { embeddings } = client();
    expect(await errorOf(embeddings.create({ model: "nothing", input: "a" }))).toBeInstanceOf(OpenAI.NotFoundError);
    const ofWords = await errorOf(embeddings.create({ model: "words", input: "a" }));
    expect(ofWords).toBeInstanceOf(OpenAI.BadRequestError);
    const tokens = await errorOf(embeddings.create({ model: "vectors", input: [1, 2] }));
    expect(tokens).toMatchObject({ status: 400, param: "input", code: null });
    expect(await errorOf(embeddings.create({ model: "vectors", input: ["limited", "b"] }))).toBeInstanceOf(
      OpenAI.RateLimitError,
    );
    const empty = await errorOf(embeddings.create({ model: "vectors", input: ["a", ""] }));
    expect(empty).toMatchObject({ status: 400, param: "input[1]" });
  });
});
