import { expect } from "vitest";
import { type Product, startProduct } from "../../support/product.ts";
import { answerText, localModel, startUpstream, type UpstreamExchange } from "../../product/support/upstream.ts";

export const MIB = 1024 * 1024;
export const CHAT = "POST /v1/chat/completions";
export const CREATE = "/parley.v1.CompletionService/Create";
export const STREAM = "/parley.v1.CompletionService/Stream";
/** A valid request. */
export const BODY = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] });

/** The product with an upstream that counts calls. */
export interface Target {
  readonly product: Product;
  /** Number of upstream calls. */
  heard(): number;
  /** Headers of a valid chat request. */
  chatHeaders(...more: readonly string[]): string[];
  /** Sends one valid HTTP request and returns its duration in milliseconds. Rejects unless it is served. */
  goodRequest(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts the product with an upstream that says "hi", or calls `answer`. `env`: more variables of its process. */
export async function startTarget(
  answer: (exchange: UpstreamExchange) => void | Promise<void> = (exchange) => answerText(exchange, "hi"),
  env: Readonly<Record<string, string>> = {},
): Promise<Target> {
  const upstream = await startUpstream(answer);
  // High limits, because normal clients send continuously and large answers have many tokens.
  const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited", concurrent_requests: 500 };
  // The circuit breaker must not open for a hostile provider.
  const config = { ...localModel(upstream.url), limits, breaker: { failures: 1000 } };
  const product = await startProduct({ config, env });
  const authorization = `Bearer ${product.firstKey}`;
  return {
    product,
    heard: () => upstream.exchanges.length,
    chatHeaders: (...more) => [
      "host: parley.example",
      "content-type: application/json",
      `authorization: ${authorization}`,
      ...more,
    ],
    async goodRequest() {
      const begunMs = performance.now();
      const response = await fetch(`${product.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: BODY,
      });
      expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 });
      return performance.now() - begunMs;
    },
    async stop() {
      await product.stop();
      await upstream.close();
    },
  };
}
