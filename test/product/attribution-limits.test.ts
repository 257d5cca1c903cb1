import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { create as createMessage, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AttributionService, BudgetHolder } from "../../gen/parley/console/v1/attribution_pb.js";
import { CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { openStore } from "../../src/store/store.ts";
import { type Product, startProduct } from "../support/product.ts";
import { signUpFirst } from "../support/signed-up.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";
import { createKey, runJson } from "../support/cli.ts";

const MODEL = "local/test";
/** Of each answer two are used. */
const MAX_TOKENS = 4;
const TOKEN_MICRO_USD = 1_000;

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hello"));
  const { providers, models } = localModel(upstream.url) as { providers: object; models: Record<string, object> };
  const price = { input: 0, output: TOKEN_MICRO_USD };
  product = await startProduct({ config: { providers, models: { [MODEL]: { ...models[MODEL], price } } } });
});
afterAll(async () => {
  await product?.stop();
  await upstream?.close();
});

/** A request of each format. Its session is in a header. */
const FORMATS: Readonly<Record<string, (endUser: string | undefined) => { path: string; body: object }>> = {
  "chat completions": (user) => ({
    path: "/v1/chat/completions",
    body: { model: MODEL, max_tokens: MAX_TOKENS, messages: [{ role: "user", content: "hi" }], user },
  }),
  responses: (user) => ({
    path: "/v1/responses",
    body: { model: MODEL, max_output_tokens: MAX_TOKENS, input: "hi", user },
  }),
  messages: (user) => ({
    path: "/v1/messages",
    body: {
      model: MODEL,
      max_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: "hi" }],
      ...(user !== undefined && { metadata: { user_id: user } }),
    },
  }),
  gemini: () => ({
    path: `/v1beta/models/${MODEL}:generateContent`,
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }], generationConfig: { maxOutputTokens: MAX_TOKENS } },
  }),
  connect: (endUserId) => ({
    path: "/parley.v1.CompletionService/Create",
    body: {
      model: MODEL,
      maxOutputTokens: MAX_TOKENS,
      messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }],
      endUserId,
    },
  }),
};

async function ask(key: string, format: string, { endUser, session }: { endUser?: string; session?: string } = {}) {
  const { path, body } = FORMATS[format]!(endUser);
  const response = await fetch(product.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(session !== undefined && { "parley-session-id": session }),
      // The format of Gemini has no field for it.
      ...(format === "gemini" && endUser !== undefined && { "parley-end-user": endUser }),
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

interface Refusal {
  readonly flags: string;
  /** Refused requests of this end user and session, after `before` served ones. */
  readonly asked: { readonly endUser?: string; readonly session?: string };
  readonly before: number;
  /** A request that is served nevertheless. */
  readonly other: { readonly endUser?: string; readonly session?: string };
  readonly status: number;
  readonly message: RegExp;
  readonly error: Readonly<Record<string, object>>;
}

const OF_BUDGETS = {
  "chat completions": { error: { type: "rate_limit_error", code: "budget_exceeded" } },
  responses: { error: { type: "rate_limit_error", code: "budget_exceeded" } },
  messages: { type: "error", error: { type: "rate_limit_error" } },
  gemini: { error: { code: 429, status: "RESOURCE_EXHAUSTED" } },
  connect: { code: "resource_exhausted" },
};
const OF_RATES = {
  ...OF_BUDGETS,
  "chat completions": { error: { type: "rate_limit_error", code: "rate_limit_exceeded" } },
  responses: { error: { type: "rate_limit_error", code: "rate_limit_exceeded" } },
};
const OF_FIELDS = {
  "chat completions": { error: { type: "invalid_request_error", param: "user" } },
  responses: { error: { type: "invalid_request_error", param: "user" } },
  messages: { type: "error", error: { type: "invalid_request_error" } },
  gemini: { error: { code: 400, status: "INVALID_ARGUMENT" } },
  connect: { code: "invalid_argument" },
};

const REFUSALS: Readonly<Record<string, Refusal>> = {
  "the rate of an end user": {
    flags: "--end-user-rpm 1",
    asked: { endUser: "ann" },
    before: 1,
    other: { endUser: "ben" },
    status: 429,
    message: /Rate limit reached for this end user: 1 request per minute\. Try again in \d+ s\./,
    error: OF_RATES,
  },
  "the budget of an end user": {
    flags: "--end-user-budget 0.005/day",
    asked: { endUser: "ann" },
    before: 1,
    other: { endUser: "ben" },
    status: 429,
    message: /The daily budget of this end user, 0\.005 USD, has no room .* It begins anew on \d+ \w+ 20\d\d \(UTC\)\./,
    error: OF_BUDGETS,
  },
  "the budget of a session": {
    flags: "--session-budget 0.005",
    asked: { endUser: "ann", session: "run 7" },
    before: 1,
    other: { endUser: "ann", session: "run 8" },
    status: 429,
    message: /The budget of this session, 0\.005 USD, has no room .* Begin a new session\./,
    error: OF_BUDGETS,
  },
  "the lack of an end user": {
    flags: "--require-end-user yes",
    asked: { session: "run 7" },
    before: 0,
    other: { endUser: "ann" },
    status: 400,
    message: /is required with this API key: name the end user in this field, or in the header parley-end-user/,
    error: OF_FIELDS,
  },
};

describe.each(Object.keys(REFUSALS))("%s", (name) => {
  const { flags, asked, before, other, status, message, error } = REFUSALS[name]!;

  it.each(Object.keys(FORMATS))("refuses a request in its format: %s", async (format) => {
    const { key } = await createKey(product, flags);
    for (let count = 0; count < before; count += 1) expect((await ask(key, format, asked)).status).toBe(200);
    const refused = await ask(key, format, asked);
    expect([refused.status, refused.text]).toEqual([status, expect.stringMatching(message)]);
    expect(JSON.parse(refused.text)).toMatchObject(error[format]!);
    expect((await ask(key, format, other)).status).toBe(200);
  });

  it("refuses a request over gRPC", async () => {
    const { key } = await createKey(product, flags);
    const client = createClient(
      CompletionService,
      createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` }),
    );
    const create = ({ endUser, session }: Refusal["asked"]) =>
      client.create(
        {
          model: MODEL,
          maxOutputTokens: MAX_TOKENS,
          messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] }],
          ...(endUser !== undefined && { endUserId: endUser }),
          ...(session !== undefined && { sessionId: session }),
        },
        { headers: { authorization: `Bearer ${key}` } },
      );
    for (let count = 0; count < before; count += 1) await create(asked);
    await expect(create(asked)).rejects.toThrow(message);
    await create(other);
  });
});

it("charges an end user what completions cost, until the next one has no room, and says who it was nowhere", async () => {
  const { id, key } = await createKey(product, "--end-user-budget 0.02/month --rpm 60");
  const asked = { endUser: "secret-ann" };
  let served = 0;
  let last = await ask(key, "chat completions", asked);
  for (; last.status === 200 && served < 20; last = await ask(key, "chat completions", asked)) served += 1;
  // 2 of 4 tokens are used: with the ninth 18,000 micro-USD are spent.
  expect([served, last.status, last.headers.get("x-ratelimit-limit-requests")]).toEqual([9, 429, "60"]);
  expect(last.text).toContain("The monthly budget of this end user, 0.02 USD, has no room for this request");
  expect(await runJson(`keys update ${id} --end-user-budget 0.03/month`, product)).toMatchObject({
    attribution_limits: { end_user_budget_usd: 0.03, end_user_budget_period: "month", require_end_user: false },
  });
  await expect
    .poll(async () => (await ask(key, "chat completions", asked)).status, { timeout: 20_000, interval: 200 })
    .toBe(200);
  const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
  expect(metrics + product.output.stdout + product.output.stderr).not.toContain("secret-ann");
  const store = await openStore({ dataDir: join(product.home, "data"), databaseUrl: undefined });
  const { entries } = await store.ledger.list({ limit: 1 });
  await store.close();
  expect(entries[0]).toMatchObject({ attribution: { endUser: "secret-ann" } });
});

describe("an end user that is named twice", () => {
  const twice = ["ann", "mallory"];

  it("is refused over HTTP", async () => {
    const { key } = await createKey(product, "--end-user-rpm 1000");
    const { path, body } = FORMATS["chat completions"]!(undefined);
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "parley-end-user": twice };
    const asked = request(product.url + path, { method: "POST", headers });
    asked.end(JSON.stringify(body));
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(400);
    expect(await readText(response)).toContain("The Parley-End-User header is given twice.");
  });

  it("is refused over gRPC", async () => {
    const { key } = await createKey(product, "--end-user-rpm 1000");
    const client = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${key}`);
    for (const name of twice) metadata.add("parley-end-user", name);
    const message = createMessage(CompletionRequestSchema, { model: MODEL, messages: [{ role: Role.USER }] });
    const path = "/parley.v1.CompletionService/Create";
    const ended = new Promise((resolve) => {
      const toBytes = () => Buffer.from(toBinary(CompletionRequestSchema, message));
      client.makeUnaryRequest(
        path,
        toBytes,
        (bytes) => bytes,
        message,
        metadata,
        (error) => resolve(error?.details),
      );
    });
    expect(await ended).toContain("The metadata parley-end-user is given twice");
    client.close();
  });
});

it("lists what end users have used of their budgets, one of whom gets more in place of being refused", async () => {
  const { id: keyId, key } = await createKey(product, "--end-user-budget 0.005/day");
  const spender = { endUser: "spender" };
  expect((await ask(key, "chat completions", spender)).status).toBe(200);
  expect((await ask(key, "chat completions", spender)).status).toBe(429);
  const attribution = createClient(AttributionService, await signUpFirst(product.url));
  const list = async () => (await attribution.listBudgets({ keyId, holder: BudgetHolder.END_USER })).budgets;
  const [spent] = await list();
  expect(spent).toMatchObject({ name: "spender", spentMicroUsd: 2_000n, budgetMicroUsd: 5_000n, leftMicroUsd: 3_000n });
  const more = { keyId, holder: BudgetHolder.END_USER, name: "spender", budgetMicroUsd: 6_000n };
  await attribution.setBudget(more);
  expect((await ask(key, "chat completions", spender)).status).toBe(200);
  const refused = await ask(key, "chat completions", spender);
  expect([refused.status, refused.text]).toEqual([429, expect.stringContaining("this end user, 0.006 USD")]);
  expect(await list()).toMatchObject([{ spentMicroUsd: 4_000n, leftMicroUsd: 2_000n, isOwn: true }]);
});
