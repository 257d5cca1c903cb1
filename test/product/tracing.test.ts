import * as published from "@opentelemetry/semantic-conventions/incubating";
import { afterEach, describe, expect, it } from "vitest";
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
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

const SECRET = "planted-secret-9184";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const SAMPLED = `00-${TRACE}-${CALLER}-01`;
const UNSAMPLED = `00-4bf92f3577b34da6a3ce929d0e0e4736-${CALLER}-00`;

/** Fails for `bad/test`, and says the secret for others. */
function answer(exchange: UpstreamExchange): void {
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
      "good/test": { ...models!["local/test"], provider: "traced", upstream_model: "good" },
    },
    retries: { base_ms: 1, cap_ms: 1 },
  };
}

async function start(collector: Collector | undefined, options: ProductOptions): Promise<Product> {
  const env = collector && { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "1" };
  const product = await startProduct({ ...options, ...(env !== undefined && { env: { ...env, ...options.env } }) });
  undo.push(() => product.stop());
  return product;
}

async function open(): Promise<{ collector: Collector; upstream: Upstream }> {
  const [collector, upstream] = await Promise.all([startCollector(), startUpstream(answer)]);
  undo.push(
    () => collector.close(),
    () => upstream.close(),
  );
  return { collector, upstream };
}

async function ask({ url, firstKey }: Product, body: object, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${firstKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ messages: [{ role: "user", content: `Say ${SECRET}` }], ...body }),
  });
  return `${response.status} ${await response.text()}`;
}

const isServer = ({ kind }: ReceivedSpan): boolean => kind === 2;
const isClient = ({ kind }: ReceivedSpan): boolean => kind === 3;

describe("traces", () => {
  it("follow a stream with a fallback from the caller to the provider, without what was said", async () => {
    const { collector, upstream } = await open();
    const product = await start(collector, { config: configOf(upstream) });
    const body = { model: "bad/test", fallback_models: ["good/test", "local/test"], stream: true };
    const headers = { traceparent: SAMPLED, tracestate: "vendor=value", baggage: `user=${SECRET}` };
    expect(await ask(product, body, headers)).toContain(SECRET);
    await collector.until((spans) => spans.some(isServer) && spans.some(({ name }) => name === "ledger"));

    const { spans } = collector;
    const [server] = spans.filter(isServer);
    expect(server).toMatchObject({
      name: "POST /v1/chat/completions",
      parentSpanId: CALLER,
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
      expect(span).toMatchObject({ traceId: TRACE, traceState: "vendor=value" });
      if (!isServer(span)) expect(span.parentSpanId).toBe(server!.spanId);
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
      "gen_ai.provider.name": "traced",
      "gen_ai.request.model": "good",
    });
    // Each attempt is the parent of what the provider does.
    expect(
      upstream.exchanges.map(({ request: { headers: sent } }) => [sent["traceparent"], sent["tracestate"]]),
    ).toEqual(attempts.map(({ spanId }) => [`00-${TRACE}-${spanId}-01`, "vendor=value"]));
    expect(upstream.exchanges.some(({ request }) => "baggage" in request.headers)).toBe(false);
    expect(collector.bytes().includes(SECRET)).toBe(false);
    expect(collector.bytes().includes(product.firstKey)).toBe(false);
    product.signal("SIGTERM");
    await product.ending;
    expect(product.output.stderr).toContain(`"trace_id":"${TRACE}"`);
  });

  it("are exported of failures that the sampler left out, and at the end of the process", async () => {
    const { collector, upstream } = await open();
    const env = { OTEL_BSP_SCHEDULE_DELAY: "600000" };
    const product = await start(collector, { config: configOf(upstream), env });
    expect(await ask(product, { model: "local/test" }, { traceparent: UNSAMPLED })).toMatch(/^200/);
    expect(await ask(product, { model: "good/test" }, { traceparent: UNSAMPLED })).toMatch(/^200/);
    expect(await ask(product, { model: SECRET }, { traceparent: UNSAMPLED })).toMatch(/^404/);
    expect(await ask(product, { model: "bad/test" }, { traceparent: UNSAMPLED })).toMatch(/^503/);
    // The caller's own sampled one, for a name that only it knows.
    expect(await ask(product, { model: SECRET }, { traceparent: SAMPLED })).toMatch(/^404/);
    // A wrong parent is none.
    expect(await ask(product, { model: "local/test" }, { traceparent: `${SAMPLED}-more` })).toMatch(/^200/);
    expect(collector.spans).toEqual([]);
    product.signal("SIGTERM");
    await product.ending;
    const servers = collector.spans.filter(isServer);
    expect(
      servers.map(({ parentSpanId, isError, attributes }) => [parentSpanId, isError, attributes["parley.outcome"]]),
    ).toEqual([
      [CALLER, true, "upstream_unavailable"],
      [CALLER, false, "model_not_found"],
      ["", false, "served"],
    ]);
    expect(servers[0]!.attributes["error.type"]).toBe("upstream_unavailable");
    expect(collector.bytes().includes(SECRET)).toBe(false);
    const sent = upstream.exchanges.map(({ request }) => request.headers["traceparent"]?.toString());
    expect(sent.slice(0, 2)).toEqual([undefined, expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-.*-00$/)]);
  });

  it("pass a front, and without the variables there are none", async () => {
    const { collector, upstream } = await open();
    const core = await start(collector, { config: configOf(upstream), flags: ["--role", "core"] });
    const flags = ["--role", "front", "--core", `127.0.0.1:${core.grpcPort}`];
    const front = { ...(await start(undefined, { flags })), firstKey: core.firstKey };
    expect(await ask(front, { model: "good/test" }, { traceparent: SAMPLED, tracestate: "a=b" })).toMatch(/^200/);
    await collector.until((spans) => spans.some(isServer));
    expect(collector.spans.find(isServer)).toMatchObject({
      name: "parley.v1.CompletionService/Create",
      traceId: TRACE,
      parentSpanId: CALLER,
      traceState: "a=b",
      attributes: {
        "rpc.system.name": "grpc",
        "rpc.method": "parley.v1.CompletionService/Create",
        "rpc.status_code": "OK",
      },
    });
  });
});

describe("the names of attributes", () => {
  it("are of the published conventions, or Parley's own", () => {
    const known = new Set(Object.values(published));
    const ours = [...Object.values(ATTRIBUTES), ...Object.values(EVENTS)].filter((name) => !name.startsWith("parley."));
    expect(ours.filter((name) => !known.has(name))).toEqual([]);
  });
});
