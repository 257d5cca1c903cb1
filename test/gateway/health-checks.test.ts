import { expect, it } from "vitest";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Config } from "../../src/config/config.ts";
import { startHealthChecks } from "../../src/gateway/health-checks.ts";
import type { HealthCheck } from "../../src/router/health-check.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";

it("checks the models of the providers that are to be checked, and soon again after a failure", async () => {
  const clock = new FakeClock();
  const provider = new ScriptedProvider(clock, {});
  const models = ["checked", "other"].map((providerName) => modelOf("m", provider, { providerName }));
  const dear = [Modality.EMBEDDING, Modality.IMAGE].map((modality) =>
    modelOf("dear", provider, { providerName: "checked", upstream: { outputModalities: new Set([modality]) } }),
  );
  const providers = [
    { name: "checked", simulated: false, checkedMs: 60_000 },
    { name: "other", simulated: false, checkedMs: undefined },
  ] as unknown as Config["providers"];
  const checks: (readonly [string, number])[] = [];
  let passes = false;
  let signal: AbortSignal | undefined;
  const stop = startHealthChecks({
    clock,
    config: () => ({ providers }),
    router: {
      list: () => [...models, ...dear],
      async check({ providerName }, check: HealthCheck) {
        checks.push([providerName, check.idleMs]);
        ({ signal } = check);
        return passes;
      },
    },
  });
  await clock.pass(5_000);
  passes = true;
  await clock.pass(5_000);
  await clock.pass(5_000);
  expect(checks).toEqual([
    ["checked", 60_000],
    ["checked", 0],
    ["checked", 60_000],
  ]);
  stop();
  expect([clock.pending, signal?.aborted]).toEqual([0, true]);
});
