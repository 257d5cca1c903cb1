import { expect, it, onTestFinished } from "vitest";
import { startProduct } from "../support/product.ts";
import { startCollector } from "../support/otlp.ts";
import { figure } from "./support/figures.ts";
import { postChat } from "../support/post-json.ts";

it.each([1, 2])(
  "a collector of traces that never answers delays no answer, and the end of %d workers by two seconds",
  async (workers) => {
    const collector = await startCollector({ hangs: true });
    onTestFinished(() => collector.close());
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "1" };
    const product = await startProduct({ config: { workers, simulator: { first_token_ms: 0 } }, env });
    onTestFinished(() => product.stop());
    for (let count = 0; count < 20; count++) {
      const response = await postChat(product.url, product.firstKey, { model: "alpha-haiku-4.5", max_tokens: 1 });
      expect(response.status).toBe(200);
      await response.text();
    }
    const beganMs = performance.now();
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    const value = Math.round(performance.now() - beganMs);
    figure({ name: `end with a collector that hangs, ${workers} workers`, value, unit: "ms", atMost: 8_000 });
  },
  60_000,
);
