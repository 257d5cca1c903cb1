import { expect, it } from "vitest";
import type { Caller } from "../../src/telemetry/completion-metrics.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { completionSample, QUIET } from "../support/metrics.ts";

const callerOf = (key: string, ...tags: string[]): Caller => ({
  key,
  tags: tags.length > 0 ? new Set(tags) : undefined,
});

it("has none by key or tag unless it is asked for", async () => {
  const metrics = createMetrics(QUIET);
  metrics.completion(completionSample({ caller: callerOf("key_1", "batch") }));
  metrics.refusal("http", "rate_limited", callerOf("key_1", "batch"));
  expect(await metrics.text()).not.toMatch(/parley_(key|tag)_[a-z_]*total|key_1|batch/);
});

it("gives the first keys series of their own, and all others one", async () => {
  const metrics = createMetrics(QUIET, { keys: 2, tags: 0 });
  for (const key of ["key_1", "key_2", "key_3", "key_4", "key_2"])
    metrics.completion(completionSample({ costMicroUsd: 5, caller: callerOf(key, "batch") }));
  metrics.refusal("http", "rate_limited", callerOf("key_1"));
  metrics.refusal("http", "rate_limited", callerOf("key_5"));
  metrics.refusal("http", "unauthenticated");
  const lines = (await metrics.text()).split("\n");
  const of = (name: string): string[] => lines.filter((line) => line.startsWith(`${name}{`));
  expect(of("parley_key_completions_total")).toEqual([
    'parley_key_completions_total{key="key_1",outcome="served"} 1',
    'parley_key_completions_total{key="key_2",outcome="served"} 2',
    'parley_key_completions_total{key="other",outcome="served"} 2',
  ]);
  expect(of("parley_key_refusals_total")).toEqual([
    'parley_key_refusals_total{key="key_1",code="rate_limited"} 1',
    'parley_key_refusals_total{key="other",code="rate_limited"} 1',
  ]);
  expect(of("parley_key_cost_micro_usd_total")).toContain('parley_key_cost_micro_usd_total{key="key_2"} 10');
  expect(of("parley_key_completion_seconds_count")).toHaveLength(3);
  expect(lines.some((line) => line.includes("tag="))).toBe(false);
});

it("counts a completion once for each tag of its key", async () => {
  const metrics = createMetrics(QUIET, { keys: 0, tags: 1 });
  metrics.completion(completionSample({ caller: callerOf("key_1", "premium", "batch") }));
  metrics.completion(completionSample({ caller: callerOf("key_2") }));
  const text = await metrics.text();
  expect(text).toContain('parley_tag_completions_total{tag="premium",outcome="served"} 1\n');
  expect(text).toContain('parley_tag_completions_total{tag="other",outcome="served"} 1\n');
  expect(text).not.toContain("key_");
});
