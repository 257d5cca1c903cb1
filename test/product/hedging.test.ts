import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { AttemptOutcome } from "../../gen/parley/v1/report_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerText, startUpstream, type Upstream } from "./support/upstream.ts";

/** Answers while `isQuick`, else never. */
let slow: Upstream;
let isQuick = true;
/** Counts of the metrics before the tests: on a busy machine requests before them were hedged, too. */
let before: readonly number[] = [];
let quick: Upstream;
let product: Product;

beforeAll(async () => {
  slow = await startUpstream((exchange) => (isQuick ? answerText(exchange, "from slow") : undefined));
  quick = await startUpstream((exchange) => answerText(exchange, "from quick"));
  const providers = Object.fromEntries(
    Object.entries({ slow, quick }).map(([name, { url }]) => [
      name,
      { dialect: "openai", base_url: `${url}/v1`, allow_private: true },
    ]),
  );
  const model = {
    upstream_model: "m",
    context_window: 100_000,
    max_output_tokens: 10_000,
    price: { input: 1_000, output: 1_000 },
  };
  product = await startProduct({
    config: {
      providers,
      models: {
        slow: { ...model, provider: "slow" },
        quick: { ...model, provider: "quick" },
        chat: { targets: [{ model: "slow" }, { model: "quick" }], hedge: { after: "150ms", budget: 0.5 } },
      },
      limits: { ...UNLIMITED, monthly_budget_usd: 1_000 },
    },
  });
  // A share of these may be hedged.
  for (let count = 0; count < 20; count++) await (await fetch(`${product.url}/v1/chat/completions`, post(CHAT))).text();
  isQuick = false;
  before = await countsOf();
});

afterAll(async () => {
  await product?.stop();
  await slow?.close();
  await quick?.close();
});

const CHAT = { model: "chat", max_tokens: 10, messages: [{ role: "user", content: "hi" }] };

function post(body: object): RequestInit {
  return {
    method: "POST",
    headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  };
}

const COUNTED = [
  'parley_hedges_total{model="chat",event="started"}',
  'parley_hedges_total{model="chat",event="won"}',
  'parley_attempts_total{target="slow",provider="slow",outcome="cancelled"}',
];

async function countsOf(): Promise<number[]> {
  const lines = (await (await fetch(`${product.operationsUrl}/metrics`)).text()).split("\n");
  return COUNTED.map((name) => Number(lines.find((line) => line.startsWith(name))?.split(" ")[1] ?? 0));
}

/** Resolves when the provider has seen the end of its latest call. */
async function expectClosed(upstream: Upstream): Promise<void> {
  await expect.poll(() => upstream.exchanges.at(-1)!.closed, { timeout: 10_000 }).toBe(true);
}

it.each([
  ["/v1/chat/completions", CHAT],
  ["/v1/chat/completions", { ...CHAT, stream: true }],
  ["/v1/messages", CHAT],
  ["/v1/responses", { model: "chat", input: "hi", stream: true }],
  ["/v1beta/models/chat:generateContent", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }],
])("%s is answered by the second target, and the call of the first is closed", async (path, body) => {
  const asked = slow.exchanges.length;
  const answer = await (await fetch(product.url + path, post(body))).text();
  expect(answer).toContain("from quick");
  expect(slow.exchanges.length).toBe(asked + 1);
  await expectClosed(slow);
});

it("gRPC is, too, and both attempts are in the report and in its cost", async () => {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` });
  const { report, usage } = await createClient(CompletionService, transport).create(
    {
      model: "chat",
      maxOutputTokens: 10,
      messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] }],
    },
    { headers: { authorization: `Bearer ${product.firstKey}` }, timeoutMs: 20_000 },
  );
  expect(report?.attempts).toMatchObject([
    { model: "slow", outcome: AttemptOutcome.FAILED, message: "Another attempt was faster." },
    { model: "quick", outcome: AttemptOutcome.SERVED },
  ]);
  // A token costs 1,000 micro-dollars; the lost attempt may have made all tokens that it was allowed.
  expect(Number(report?.costMicroUsd) / 1_000).toBeGreaterThanOrEqual(usage!.totalTokens + 10);
  await expectClosed(slow);
});

it("the log and the metrics have both attempts and the hedges", async () => {
  expect(await countsOf()).toEqual(before.map((count) => count + 6));
  const lineOf = (): string | undefined =>
    product.output.stderr.split("\n").findLast((each) => each.includes('"entrance":"grpc"'));
  await expect.poll(lineOf, { timeout: 10_000 }).toBeDefined();
  const logged = JSON.parse(lineOf()!) as { attempts: { outcome: string }[]; cost_micro_usd: number };
  expect(logged.attempts.map(({ outcome }) => outcome)).toEqual(["cancelled", "served"]);
  expect(logged.cost_micro_usd).toBeGreaterThan(10_000);
});
