import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as published from "@opentelemetry/semantic-conventions/incubating";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ATTRIBUTES, EVENTS } from "../../src/gateway/spans.ts";
import { type Collector, type ReceivedSpan, startCollector } from "../support/otlp.ts";
import { type Product, type ProductOptions, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  localModel,
  startUpstream,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";

const undo: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

const SECRET = "planted-secret-9184";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
/** The caller's `traceparent` of the trace that begins with this digit. */
const parentOf = (digit: number, isSampled: boolean): string =>
  `00-${digit}${TRACE.slice(1)}-${CALLER}-${isSampled ? "01" : "00"}`;

/** Fails for `bad/test`, and says the secret for others. */
function answer(exchange: UpstreamExchange): void {
  const data = [{ index: 0, embedding: [1, 2] }];
  if (exchange.request.url?.endsWith("/embeddings") === true) return answerJson(exchange.response, 200, { data });
  if (exchange.body.includes('"bad"')) answerJson(exchange.response, 503, { error: { message: `no ${SECRET}` } });
  else answerText(exchange, `Again: ${SECRET}`);
}

/** A provider that gets traces, with a model that fails, and one that does not, which gets none. */
function configOf({ url }: Upstream): object {
  const { providers, models } = localModel(url) as Record<string, Record<string, object>>;
  return {
    providers: { ...providers, traced: { ...providers!["local"], trace_context: true } },
    models: {
      ...models,
      "bad/test": { ...models!["local/test"], provider: "traced", upstream_model: "bad" },
      "vectors/test": {
        provider: "traced",
        upstream_model: "vectors",
        context_window: 1000,
        modalities: { input: ["text"], output: ["embedding"] },
      },
      "good/test": { ...models!["local/test"], provider: "traced", upstream_model: "good" },
    },
    retries: { base_ms: 1, cap_ms: 1 },
  };
}

async function start(options: ProductOptions): Promise<Product> {
  const started = await startProduct(options);
  undo.push(() => started.stop());
  return started;
}

type TraceHeaders = Readonly<Record<string, string>>;

async function post({ url, firstKey }: Product, path: string, { body, ...headers }: TraceHeaders): Promise<string> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${firstKey}`, "content-type": "application/json", ...headers },
    body: body!,
  });
  return `${response.status} ${await response.text()}`;
}

function ask(of: Product, request: object, headers: TraceHeaders): Promise<string> {
  const body = JSON.stringify({ messages: [{ role: "user", content: `Say ${SECRET}` }], ...request });
  return post(of, "/v1/chat/completions", { ...headers, body });
}

function embed(of: Product, headers: TraceHeaders): Promise<string> {
  return post(of, "/v1/embeddings", { ...headers, body: JSON.stringify({ model: "vectors/test", input: SECRET }) });
}

const isServer = ({ kind }: ReceivedSpan): boolean => kind === 2;
const isClient = ({ kind }: ReceivedSpan): boolean => kind === 3;

/** Two workers, a front before them, and a collector that has got all that they sent. */
let product: Product;
let collector: Collector;
let upstream: Upstream;
/** Answers by their traces. */
const answers = new Map<number, string>();

beforeAll(async () => {
  [collector, upstream] = await Promise.all([startCollector(), startUpstream(answer)]);
  undo.push(
    () => collector.close(),
    () => upstream.close(),
  );
  // All of it is sent at the end.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "600000" };
  product = await start({ config: { ...configOf(upstream), workers: 2 }, env });
  const flags = ["--role", "front", "--core", `127.0.0.1:${product.grpcPort}`];
  const front = { ...(await start({ flags })), firstKey: product.firstKey };
  const stream = { model: "bad/test", fallback_models: ["good/test", "local/test"], stream: true };
  const state = { tracestate: "vendor=value", baggage: `user=${SECRET}` };
  const asks: [digit: number, asked: () => Promise<string>][] = [
    [1, () => ask(product, stream, { traceparent: parentOf(1, true), ...state })],
    [2, () => ask(product, { model: "local/test" }, { traceparent: parentOf(2, true) })],
    [3, () => ask(product, { model: "good/test" }, { traceparent: parentOf(3, false) })],
    [4, () => ask(product, { model: SECRET }, { traceparent: parentOf(4, false) })],
    [5, () => ask(product, { model: "bad/test" }, { traceparent: parentOf(5, false) })],
    [6, () => ask(product, { model: SECRET }, { traceparent: parentOf(6, true) })],
    [7, () => ask(product, { model: "local/test" }, { traceparent: `${parentOf(7, true)}-more` })],
    [8, () => ask(front, { model: "good/test" }, { traceparent: parentOf(8, true), ...state })],
    [9, () => embed(product, { traceparent: parentOf(9, true) })],
  ];
  for (const [digit, asked] of asks) answers.set(digit, await asked());
  product.signal("SIGTERM");
  await product.ending;
});

/** The spans of the trace that begins with this digit, the inbound call first. */
function spansOf(digit: number): ReceivedSpan[] {
  return collector.spans.filter(({ traceId }) => traceId === `${digit}${TRACE.slice(1)}`);
}

const sentTo = (model: string): UpstreamExchange["request"]["headers"][] =>
  upstream.exchanges.filter((exchange) => exchange.body.includes(`"${model}"`)).map(({ request }) => request.headers);

describe("traces", () => {
  it("follow a stream with a fallback from the caller to the provider", () => {
    expect(answers.get(1)).toContain(SECRET);
    const spans = spansOf(1);
    const [server] = spans;
    expect(server).toMatchObject({
      isError: false,
      attributes: {
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "gen_ai.request.model": "bad/test",
        "gen_ai.response.model": "good/test",
        "gen_ai.request.stream": true,
        "parley.outcome": "served",
      },
      resource: { "service.name": "parley" },
    });
    expect(spans.map(({ name, kind }) => [name, kind])).toEqual([
      ["POST /v1/chat/completions", 2],
      ["admission", 1],
      ["reservation", 1],
      ["chat bad", 3],
      ["chat bad", 3],
      ["chat good", 3],
      ["ledger", 1],
    ]);
    for (const span of spans) {
      expect(span.traceState).toBe("vendor=value");
      expect(span.parentSpanId).toBe(span === server ? CALLER : server!.spanId);
      // Times of attempts are whole milliseconds.
      expect(span.startMs).toBeGreaterThanOrEqual(server!.startMs - 1);
      expect(span.endMs).toBeLessThanOrEqual(server!.endMs + 1);
    }
    const attempts = spans.filter(isClient);
    expect(attempts.map(({ attributes, isError }) => [attributes["error.type"], isError])).toEqual([
      ["upstream_unavailable", true],
      ["upstream_unavailable", true],
      [undefined, false],
    ]);
    expect(attempts[2]!.events.map(({ name }) => name)).toEqual(["parley.connected", "parley.first_content"]);
    expect(attempts[2]!.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "parley.provider": "traced",
      "gen_ai.request.model": "good",
    });
    // Each attempt is the parent of what the provider does.
    const sent = [...sentTo("bad"), ...sentTo("good")].filter((headers) =>
      headers["traceparent"]?.includes(`-1${TRACE.slice(1)}`),
    );
    expect(sent.map((headers) => [headers["traceparent"], headers["tracestate"]])).toEqual(
      attempts.map(({ traceId, spanId }) => [`00-${traceId}-${spanId}-01`, "vendor=value"]),
    );
    expect(product.output.stderr).toContain(`"trace_id":"${server!.traceId}"`);
  });

  it("reach only providers that may have them, and never with baggage", () => {
    expect(answers.get(2)).toMatch(/^200/);
    expect(sentTo("test").map((headers) => headers["traceparent"])).toEqual([undefined, undefined]);
    expect(sentTo("good").map((headers) => "traceparent" in headers)).toEqual([true, true, true]);
    expect(upstream.exchanges.some(({ request }) => "baggage" in request.headers)).toBe(false);
  });

  it("are exported of failures that the sampler left out, and of nothing else that it left out", () => {
    expect(
      [3, 4, 5].map((digit) => [answers.get(digit)!.slice(0, 3), spansOf(digit)[0]?.attributes["error.type"]]),
    ).toEqual([
      ["200", undefined],
      ["404", undefined],
      ["503", "upstream_unavailable"],
    ]);
    expect([3, 4].flatMap(spansOf)).toEqual([]);
    expect(spansOf(5)[0]).toMatchObject({ parentSpanId: CALLER, isError: true });
    expect(sentTo("good")[1]!["traceparent"]).toMatch(/-00$/);
  });

  it("begin here without a valid parent", () => {
    expect(spansOf(7)).toEqual([]);
    const begun = collector.spans.filter((span) => isServer(span) && span.parentSpanId === "");
    expect(begun.map(({ attributes }) => attributes["gen_ai.response.model"])).toEqual(["local/test"]);
  });

  it("pass a front", () => {
    expect(answers.get(8)).toMatch(/^200/);
    expect(spansOf(8)[0]).toMatchObject({
      name: "parley.v1.CompletionService/Create",
      parentSpanId: CALLER,
      traceState: "vendor=value",
      attributes: {
        "rpc.system.name": "grpc",
        "rpc.method": "parley.v1.CompletionService/Create",
        "rpc.status_code": "OK",
      },
    });
  });

  it("have embeddings, too", () => {
    expect(spansOf(9).map(({ name }) => name)).toContain("embeddings vectors");
    expect(spansOf(9)[0]!.attributes).toMatchObject({ "gen_ai.operation.name": "embeddings" });
  });

  it("have nothing of prompts, answers, errors and keys", () => {
    expect(spansOf(6)[0]!.attributes).toMatchObject({ "parley.outcome": "model_not_found" });
    expect(collector.bytes().includes(SECRET)).toBe(false);
    expect(collector.bytes().includes(product.firstKey)).toBe(false);
  });
});

describe("the names of attributes", () => {
  it("are of the published conventions, or Parley's own", () => {
    const known = new Set<unknown>(Object.values(published));
    const ours = [...Object.values(ATTRIBUTES), ...Object.values(EVENTS)].filter((name) => !name.startsWith("parley."));
    expect(ours.filter((name) => !known.has(name))).toEqual([]);
  });

  it("are all in the documentation", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/operations/tracing.md"), "utf8");
    const names = [...Object.values(ATTRIBUTES), ...Object.values(EVENTS)];
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
