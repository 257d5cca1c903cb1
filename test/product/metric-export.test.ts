import { afterAll, beforeAll, expect, it } from "vitest";
import { type Collector, startCollector } from "../support/otlp.ts";
import { type Product, startProduct } from "../support/product.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";

let collector: Collector;
let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  [collector, upstream] = await Promise.all([
    startCollector(),
    startUpstream((exchange) => answerText(exchange, "hi")),
  ]);
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
    OTEL_TRACES_EXPORTER: "none",
    OTEL_SERVICE_NAME: "gateway",
  };
  product = await startProduct({ config: { ...localModel(upstream.url), workers: 2 }, env });
}, 60_000);

afterAll(async () => {
  await product?.stop();
  await upstream?.close();
  await collector?.close();
});

async function complete(): Promise<number> {
  const response = await postChat(product.url, product.firstKey, {
    model: "local/test",
    messages: [{ role: "user", content: "hello" }],
  });
  await response.text();
  return response.status;
}

const served = (): number[] =>
  collector.metrics.filter(({ name }) => name === "parley_completions_total").map(({ value }) => value!);

it("sends the sum of two workers at the interval, and the last values at the end", async () => {
  for (let count = 0; count < 6; count++) expect(await complete()).toBe(200);
  await expect.poll(() => served().at(-1), { timeout: 20_000 }).toBe(6);
  expect(await complete()).toBe(200);
  product.signal("SIGTERM");
  expect(await product.ending).toEqual({ code: 0, signal: null });
  expect(served().at(-1)).toBe(7);
  const { resource, attributes, isCumulative, isMonotonic } = collector.metrics.find(
    ({ name }) => name === "parley_completions_total",
  )!;
  expect(resource).toMatchObject({ "service.name": "gateway", "service.instance.id": expect.any(String) as string });
  expect([attributes["model"], isCumulative, isMonotonic]).toEqual(["local/test", true, true]);
  // One process sends, however many workers there are.
  expect(new Set(collector.metrics.map((metric) => metric.resource["service.instance.id"])).size).toBe(1);
  expect(collector.bytes().includes(product.firstKey)).toBe(false);
}, 60_000);
