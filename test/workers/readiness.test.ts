import { expect, it } from "vitest";
import { mergeReadiness } from "../../src/workers/readiness.ts";

const facts = (changes: object) => ({
  ready: true,
  active_calls: 1,
  rates: { counted_in: "memory", alone: false },
  ledger: { waiting: 2, away: false, unwritable: false },
  breakers: { "alpha/one": "closed", "alpha/two": "open" },
  ...changes,
});

it("sums the workers' counts, and reports the worst state of each component", () => {
  const other = facts({
    rates: { counted_in: "memory", alone: true },
    ledger: { waiting: 3, away: true, unwritable: true },
    breakers: { "alpha/one": "half_open", "alpha/two": "closed" },
  });
  expect(mergeReadiness([facts({}), other])).toEqual({
    ready: true,
    active_calls: 2,
    rates: { counted_in: "memory", alone: true },
    ledger: { waiting: 5, away: true, unwritable: true },
    breakers: { "alpha/one": "half_open", "alpha/two": "open" },
  });
});

it("has the version of the stored configuration that all workers have reached", () => {
  const of = (version: number | undefined) => facts({ stored_configuration: { version, left_out: version } });
  const merged = (...versions: readonly (number | undefined)[]) =>
    mergeReadiness(versions.map(of)) as { readonly stored_configuration?: unknown };
  expect(merged(4, 3, 4).stored_configuration).toEqual({ version: 3, left_out: 3 });
  expect(merged(4, undefined).stored_configuration).toEqual({ version: undefined, left_out: undefined });
});

it("is ready while at least one worker is", () => {
  expect(mergeReadiness([facts({ ready: false }), facts({})]).ready).toBe(true);
  expect(mergeReadiness([])).toEqual({ ready: false, active_calls: 0 });
});

it("keeps the core state that fronts report", () => {
  const front = { ready: true, active_calls: 1, core: "READY" };
  expect(mergeReadiness([front, front])).toEqual({ ready: true, active_calls: 2, core: "READY" });
});
