import { beforeAll, expect, it, onTestFinished } from "vitest";
import { answerJson, answerText, localModel, startUpstream, type Upstream } from "../product/support/upstream.ts";
import type { ReceivedSpan } from "../support/otlp.ts";
import { startProduct } from "../support/product.ts";
import { goTools } from "../../scripts/go-tools.ts";
import { startRealCollector } from "./support/collector.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
/** Time of building the Collector, and of an export. */
const BUILD_MS = 600_000;
const EXPORT_MS = 20_000;

let program: string;
beforeAll(async () => {
  program = await goTools.collector();
}, BUILD_MS);

/** A model that fails, `bad/test`, and one that answers, `good/test`, of a provider that continues traces. */
function configOf({ url }: Upstream): object {
  const { providers, models } = localModel(url) as Record<string, Record<string, object>>;
  const model = (name: string): object => ({ ...models!["local/test"], provider: "traced", upstream_model: name });
  return {
    providers: { traced: { ...providers!["local"], trace_context: true } },
    models: { "bad/test": model("bad"), "good/test": model("good") },
    retries: { base_ms: 1, cap_ms: 1 },
  };
}

it.each(["http/protobuf", "http/json", "grpc"] as const)(
  "an OpenTelemetry Collector gets the trace of a stream with a fallback, and the metrics, by OTLP over %s",
  async (protocol) => {
    const [collector, upstream] = await Promise.all([
      startRealCollector(program),
      startUpstream((exchange) => {
        if (exchange.body.includes('"bad"')) answerJson(exchange.response, 503, { error: { message: "no" } });
        else answerText(exchange, "Hello.");
      }),
    ]);
    onTestFinished(() => upstream.close());
    const product = await startProduct({
      config: configOf(upstream),
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoints[protocol === "grpc" ? "grpc" : "http"],
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_BSP_SCHEDULE_DELAY: "100",
        OTEL_METRIC_EXPORT_INTERVAL: "1000",
        OTEL_METRIC_EXPORT_TIMEOUT: "1000",
      },
    });
    onTestFinished(() => product.stop());
    const response = await fetch(`${product.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${product.firstKey}`,
        "content-type": "application/json",
        traceparent: `00-${TRACE}-${CALLER}-01`,
      },
      body: JSON.stringify({
        model: "bad/test",
        fallback_models: ["good/test"],
        stream: true,
        messages: [{ role: "user", content: "Hi." }],
      }),
    });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("Hello.")]);

    const spans = (): readonly ReceivedSpan[] => collector.received.spans.filter(({ traceId }) => traceId === TRACE);
    const expected = [
      ["POST /v1/chat/completions", 2, CALLER],
      ["admission", 1, "server"],
      ["reservation", 1, "server"],
      ["chat bad", 3, "server"],
      ["chat bad", 3, "server"],
      ["chat good", 3, "server"],
      ["ledger", 1, "server"],
    ];
    const withParents = (): unknown[] => {
      const server = spans().find(({ kind }) => kind === 2)?.spanId;
      return spans().map(({ name, kind, parentSpanId }) => [
        name,
        kind,
        parentSpanId === server ? "server" : parentSpanId,
      ]);
    };
    await expect.poll(withParents, { timeout: EXPORT_MS }).toEqual(expected);

    // Each attempt at a provider is the parent of what the provider does.
    const attempts = spans().filter(({ kind }) => kind === 3);
    expect(upstream.exchanges.map(({ request }) => request.headers["traceparent"])).toEqual(
      attempts.map(({ spanId }) => `00-${TRACE}-${spanId}-01`),
    );
    expect(attempts.map(({ isError }) => isError)).toEqual([true, true, false]);
    expect(attempts[2]!.events.map(({ name }) => name)).toEqual(["parley.connected", "parley.first_content"]);
    expect(spans()[0]).toMatchObject({
      isError: false,
      attributes: { "gen_ai.request.model": "bad/test", "gen_ai.response.model": "good/test" },
      resource: { "service.name": "parley" },
    });

    const completions = (): unknown[] =>
      collector.received.metrics
        .filter(({ name, value }) => name === "parley_completions_total" && value === 1)
        .map(({ attributes, isMonotonic, resource }) => [attributes["outcome"], isMonotonic, resource["service.name"]]);
    await expect.poll(completions, { timeout: EXPORT_MS }).toContainEqual(["served", true, "parley"]);
  },
  120_000,
);
