import { expect, it } from "vitest";
import { createMetrics } from "../../src/telemetry/metrics.ts";

it("has the time per token after the first content of streams that have several, and waits", async () => {
  const metrics = createMetrics({
    activeCalls: () => 0,
    breakers: () => new Map(),
    hedges: () => new Map(),
    outliers: () => new Map(),
    ledgerWaiting: () => 0,
    ratesLocal: () => false,
    ratesDecidedLocally: () => 0,
    admissionWaiting: () => 0,
    shed: () => ({}),
    connectionsRefused: () => 0,
  });
  const completion = (firstContentMs: number | undefined, completionTokens: number): void =>
    metrics.completion({
      entrance: "http",
      model: "words",
      outcome: "served",
      streamed: firstContentMs !== undefined,
      durationMs: 1500,
      firstContentMs,
      promptTokens: 1,
      completionTokens,
      costMicroUsd: 0,
      attempts: [],
    });
  completion(500, 11);
  completion(500, 1);
  completion(500, 0);
  completion(undefined, 11);
  metrics.admitted(30);
  metrics.ledgerWritten(4);
  const text = await metrics.text();
  expect(text).toContain('\nparley_output_token_seconds_count{model="words"} 1\n');
  expect(text).toContain('\nparley_output_token_seconds_sum{model="words"} 0.1\n');
  expect(text).toContain("\nparley_admission_wait_seconds_sum 0.03\n");
  expect(text).toContain("\nparley_ledger_write_seconds_sum 0.004\n");
});
