import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LoggedRequest, RequestService } from "../../gen/parley/console/v1/request_pb.js";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { toMs } from "../../src/core/attempt.ts";
import { type Collector, startCollector } from "../support/otlp.ts";
import { type Product, startProduct } from "../support/product.ts";
import {
  answerJson,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { signUpFirst } from "../support/signed-up.ts";

/** What the provider says of its failure, with a credential that must not be visible. */
const QUOTA = "The quota of this month is used up, key sk-proj-abcdefgh12345678.";
const HEAD_MS = 60;
const TOKEN_MS = 60;

let upstream: Upstream;
let collector: Collector;
let product: Product;
let log: ReturnType<typeof createClient<typeof RequestService>>;

async function answer({ body, response }: UpstreamExchange): Promise<void> {
  if (body.includes('"broken"')) return answerJson(response, 503, { error: { message: QUOTA } });
  await delay(HEAD_MS);
  beginStream(response);
  response.flushHeaders();
  await delay(TOKEN_MS);
  response.end(textEvent("Hello") + END_EVENTS);
}

beforeAll(async () => {
  [collector, upstream] = await Promise.all([startCollector(), startUpstream(answer)]);
  const { providers, models } = localModel(upstream.url) as Record<string, Record<string, object>>;
  product = await startProduct({
    config: {
      providers: { ...providers, away: { ...providers!["local"], base_url: "http://127.0.0.1:1/v1" } },
      models: {
        ...models,
        "broken/test": { ...models!["local/test"], upstream_model: "broken" },
        "away/test": { ...models!["local/test"], provider: "away" },
      },
      retries: { base_ms: 40, cap_ms: 40 },
      tracing: { url: "https://traces.example.com/{trace_id}" },
    },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  });
  const transport = await signUpFirst(product.url);
  log = createClient(RequestService, transport);
});
afterAll(async () => {
  await product?.stop();
  await upstream?.close();
  await collector?.close();
});

/** Sends a request, and returns what the log has of it. */
async function ask(request: object): Promise<{ readonly logged: LoggedRequest; readonly told: string }> {
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${product.firstKey}`,
      "content-type": "application/json",
      "user-agent": "my-app/1.0 (test)",
    },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hi" }], ...request }),
  });
  const told = await response.text();
  const { request: logged } = await log.get({ id: response.headers.get("x-request-id")! });
  return { logged: logged!, told };
}

describe("what is kept of a request", () => {
  it("has the times within each attempt, the provider's error, and what the caller was not told", async () => {
    const asked = { model: "broken/test", fallback_models: ["local/test"], stream: true, temprature: 1 };
    const { logged, told } = await ask(asked);
    expect(logged).toMatchObject({
      outcome: "served",
      format: "openai-chat",
      client: "my-app/1.0 (test)",
      finishReason: FinishReason.STOP,
      omitted: [{ field: "temprature", reason: OmissionReason.UNKNOWN }],
      omittedCount: 1,
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      traceUrl: `https://traces.example.com/${logged.traceId}`,
    });
    const [first, retry, last] = logged.attemptDetails;
    for (const failed of [first!, retry!]) {
      expect(failed.providerError).toBe("The quota of this month is used up, key [key]");
      expect(failed.firstContentMs).toBeUndefined();
    }
    expect(told).not.toContain("quota");
    const attempt = logged.attempts[2]!;
    const [startMs, endMs] = [toMs(attempt.startOffset), toMs(attempt.startOffset) + toMs(attempt.duration)];
    expect(last!.sentMs).toBeGreaterThanOrEqual(startMs);
    // Whole milliseconds, and timers that may be early by one.
    expect(last!.headMs! - last!.sentMs!).toBeGreaterThanOrEqual(HEAD_MS - 2);
    expect(last!.firstContentMs! - last!.headMs!).toBeGreaterThanOrEqual(TOKEN_MS - 2);
    expect(last!.firstContentMs).toBeLessThanOrEqual(endMs + 1);
  });

  it("has the error of a connection, with an address that callers do not get", async () => {
    const { logged, told } = await ask({ model: "away/test" });
    expect(logged.attemptDetails[0]?.providerError).toMatch(/ECONNREFUSED/);
    expect(logged.attemptDetails[0]?.sentMs).toBeUndefined();
    expect(told).not.toMatch(/ECONNREFUSED|127\.0\.0\.1/);
  });
});
