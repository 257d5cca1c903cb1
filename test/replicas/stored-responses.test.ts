import { randomBytes } from "node:crypto";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { answerText, localModel, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { type Product, startProduct } from "../support/product.ts";

const MODEL = "local/test";
let databaseUrl: string;
let upstream: Upstream;
const products: Product[] = [];

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "Yes."));
  databaseUrl = await createDatabase(inject("postgresUrl"));
  const responses = { store_days: 1, encryption_key: randomBytes(32).toString("base64") };
  const config = { ...localModel(upstream.url), database: { url: databaseUrl }, responses };
  // One after the other: the first one makes the key.
  for (let count = 0; count < 2; count++) products.push(await startProduct({ config }));
});

afterAll(async () => {
  await Promise.all(products.map((product) => product.stop()));
  await upstream.close();
});

const responsesAt = (replica: number): OpenAI["responses"] =>
  new OpenAI({ baseURL: `${products[replica]!.url}/v1`, apiKey: products[0]!.firstKey, maxRetries: 0 }).responses;

it("stored responses are continued at once on another replica, and encrypted in PostgreSQL", async () => {
  let previous: string | undefined;
  const contents: string[] = [];
  for (let turn = 0; turn < 10; turn++) {
    const ask = {
      model: MODEL,
      input: `Turn ${turn}`,
      ...(previous !== undefined && { previous_response_id: previous }),
    };
    const responses = responsesAt(turn % 2);
    const { id, store } = (
      turn % 3 === 0 ? await responses.stream(ask).finalResponse() : await responses.create(ask)
    ) as { id: string; store?: boolean };
    expect(store).toBe(true);
    previous = id;
  }
  const { messages } = JSON.parse(upstream.exchanges.at(-1)!.body) as { messages: unknown[] };
  expect(messages).toHaveLength(19);
  expect(await responsesAt(0).retrieve(previous!)).toMatchObject({ id: previous });
  for (const row of await queryPostgres(databaseUrl, "select content from kept_responses"))
    contents.push(Buffer.from(String(row["content"]), "base64").toString("latin1"));
  expect(contents).toHaveLength(10);
  expect(contents.some((content) => content.includes("Turn"))).toBe(false);
  await responsesAt(0).delete(previous!);
  await expect(responsesAt(1).retrieve(previous!)).rejects.toMatchObject({ status: 404 });
});
