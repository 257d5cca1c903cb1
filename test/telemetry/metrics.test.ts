import { expect, it } from "vitest";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { attemptSample, completionSample, QUIET } from "../support/metrics.ts";

it("has the time per token after the first content of streams that have several, and waits", async () => {
  const metrics = createMetrics(QUIET);
  const completion = (firstContentMs: number | undefined, completionTokens: number): void => {
    const streamed = firstContentMs !== undefined;
    metrics.completion(completionSample({ streamed, durationMs: 1500, firstContentMs, completionTokens }));
  };
  completion(500, 11);
  completion(500, 1);
  completion(500, 0);
  completion(undefined, 11);
  metrics.admitted(30);
  const text = await metrics.text();
  const labels = 'model="words",target="words",provider="local"';
  expect(text).toContain(`\nparley_output_token_seconds_count{${labels}} 1\n`);
  expect(text).toContain(`\nparley_output_token_seconds_sum{${labels}} 0.1\n`);
  expect(text).toContain("\nparley_admission_wait_seconds_sum 0.03\n");
});

it("counts money and tokens at the target that served, whichever attempt ended last", async () => {
  const metrics = createMetrics(QUIET);
  const served = attemptSample({ target: "east", provider: "one", firstContentMs: 250 });
  const lost = attemptSample({ target: "west", provider: "two", outcome: "cancelled" });
  const skipped = attemptSample({ target: "north", provider: "two", outcome: "skipped", durationMs: 0 });
  const facts = { model: "chat", costMicroUsd: 7, cachedTokens: 2, isEstimated: true, isOverReserved: true };
  metrics.completion(completionSample({ ...facts, attempts: [skipped, served, lost] }));
  const text = await metrics.text();
  const east = 'target="east",provider="one"';
  for (const line of [
    `parley_cost_micro_usd_total{model="chat",${east}} 7`,
    `parley_tokens_total{model="chat",${east},kind="prompt"} 3`,
    `parley_tokens_total{model="chat",${east},kind="completion"} 5`,
    `parley_cached_tokens_total{model="chat",${east}} 2`,
    `parley_estimated_completions_total{${east}} 1`,
    `parley_reservation_overruns_total{${east}} 1`,
    `parley_attempt_first_content_seconds_sum{${east}} 0.25`,
    'parley_attempts_total{target="west",provider="two",outcome="cancelled"} 1',
    'parley_attempts_total{target="north",provider="two",outcome="skipped"} 1',
    'parley_completions_total{entrance="http",model="chat",outcome="served",streamed="false"} 1',
  ])
    expect(text).toContain(`\n${line}\n`);
  expect(text).not.toMatch(/parley_attempt_seconds_count\{target="north"/);
});

it("counts no cost for a completion without any attempt", async () => {
  const metrics = createMetrics(QUIET);
  metrics.completion(completionSample({ outcome: "budget_spent", attempts: [], promptTokens: 0, completionTokens: 0 }));
  const text = await metrics.text();
  expect(text).toContain('outcome="budget_spent",streamed="false"} 1');
  expect(text).not.toMatch(/^parley_(tokens|cost_micro_usd|attempts)_total\{/m);
});

it("counts failed calls of stores, and the time of all", async () => {
  const metrics = createMetrics(QUIET);
  metrics.stored({ store: "redis", operation: "rates_take", durationMs: 4, failed: false });
  metrics.stored({ store: "redis", operation: "rates_take", durationMs: 60, failed: true });
  const text = await metrics.text();
  expect(text).toContain('\nparley_store_seconds_sum{store="redis",operation="rates_take"} 0.064\n');
  expect(text).toContain('\nparley_store_errors_total{store="redis",operation="rates_take"} 1\n');
});
