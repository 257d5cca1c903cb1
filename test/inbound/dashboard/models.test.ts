import { toPrice } from "../../support/prices.ts";
import { Code } from "@connectrpc/connect";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BreakerState } from "../../../gen/parley/console/v1/model_pb.js";
import { ModelStage } from "../../../gen/parley/v1/model_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { somebody } from "../../support/core-ports.ts";
import { errorOf } from "./errors.ts";
import { CONFIGURATION, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { Attempt } from "../../../src/core/attempt.ts";
import type { Model } from "../../../src/core/model.ts";
import { Failure } from "../../../src/core/failure.ts";
import { createRoute } from "../../../src/core/route.ts";
import { histogramOf } from "../../support/histograms.ts";
import { attemptOf } from "../../support/attempt.ts";

let site: ConsoleUnderTest;
beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
});
afterEach(() => site.close());

const wordsModel = (): Model => site.models[0] as Model;

function complete(outcome: Attempt["outcome"], firstContentMs?: number): void {
  const reason = outcome === "served" ? "" : "The upstream provider is <b>unavailable</b>.";
  site.health.record({
    requestId: "req_1",
    completionId: "chatcmpl-1",
    principal: somebody,
    entrance: "http",
    requestedModel: "words",
    servedModel: "words",
    streamed: true,
    outcome: "served",
    attempts: [attemptOf({ model: "words", outcome, reason, durationMs: 5, upstreamStatus: 503 })],
    startedAtMs: 0,
    endedAtMs: 0,
    limits: undefined,
    entry: undefined,
    usage: undefined,
    costMicroUsd: undefined,
    durationMs: 5,
    firstContentMs,
    failure: undefined,
  });
}

describe("models", () => {
  it("are listed for members in the order of the configuration, with capabilities and prices", async () => {
    await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const price = toPrice({ input: 5_000_000, output: 25_000_000, cachedInput: 500_000, imageOutput: 120_000_000 });
    site.models[0] = { ...wordsModel(), price, stage: "deprecated", shutdown: 1_800_000_000 };
    const { models } = await bob.model.list({});
    expect(models.map(({ id }) => id)).toEqual(["words", "pictures"]);
    expect(models[0]).toMatchObject({
      description: "The model words",
      provider: "scripted",
      stage: ModelStage.DEPRECATED,
      shutdownTime: { seconds: 1_800_000_000n },
      inputModalities: [Modality.TEXT, Modality.IMAGE],
      outputModalities: [Modality.TEXT],
      contextWindow: 128_000,
      maxOutputTokens: 8_000,
      price: {
        inputMicroUsdPerMtok: 5_000_000n,
        outputMicroUsdPerMtok: 25_000_000n,
        imageOutputMicroUsdPerMtok: 120_000_000n,
      },
      capabilities: {
        tools: true,
        jsonSchema: true,
        reasoning: true,
        reasoningEfforts: [ReasoningEffort.LOW, ReasoningEffort.MEDIUM, ReasoningEffort.HIGH],
      },
      breaker: { state: BreakerState.CLOSED },
      attempts: 0n,
    });
    expect([models[1]?.stage, models[1]?.shutdownTime]).toEqual([ModelStage.STABLE, undefined]);
    expect(models[1]?.price).toBeUndefined();
  });

  it("with targets are listed with these, and are no upstream models", async () => {
    const ada = await site.signedUp("ada");
    const targets = [{ model: wordsModel(), weight: 1, when: undefined }];
    site.models.push(
      createRoute({ id: "chat", description: "Either", created: 0, policy: "ordered", affinity: false, targets }),
    );
    const { models } = await ada.model.list({});
    expect(models.map((model) => model.targets)).toEqual([[], [], ["words"]]);
    expect(models[2]).toMatchObject({ id: "chat", description: "Either", contextWindow: 128_000 });
    expect(models[2]?.breaker).toBeUndefined();
    const { upstreams } = await ada.model.listUpstreams({});
    expect(upstreams.flatMap(({ modelIds }) => modelIds)).toEqual(["words", "pictures"]);
    expect((await ada.settings.get({})).models.map(({ id }) => id)).toEqual(["words", "pictures", "chat"]);
  });

  it("have their present health", async () => {
    const ada = await site.signedUp("ada");
    for (let ms = 1; ms <= 20; ms += 1) complete("served", ms);
    complete("upstream_unavailable");
    const nowMs = site.access.clock.now();
    site.rests.set("words", { sinceMs: nowMs - 7_000, remainingMs: 3_000, isProbed: false });
    const { models } = await ada.model.list({});
    expect(models[0]).toMatchObject({
      attempts: 21n,
      failures: 1n,
      firstContent: { count: 20n, p50Ms: 10, p95Ms: 19 },
      breaker: { state: BreakerState.OPEN },
    });
    expect(timestampMs(models[0]!.breaker!.restStartTime!)).toBe(nowMs - 7_000);
    expect(timestampMs(models[0]!.breaker!.restEndTime!)).toBe(nowMs + 3_000);
    site.rests.set("words", { sinceMs: nowMs - 7_000, remainingMs: 0, isProbed: false });
    expect((await ada.model.list({})).models[0]?.breaker).toMatchObject({
      state: BreakerState.HALF_OPEN,
      probeInFlight: false,
    });
    site.rests.set("words", { sinceMs: nowMs - 7_000, remainingMs: 0, isProbed: true });
    const [words, pictures] = (await ada.model.list({})).models;
    expect(words?.breaker).toMatchObject({ state: BreakerState.HALF_OPEN, probeInFlight: true });
    expect(pictures?.breaker?.state).toBe(BreakerState.CLOSED);
  });

  it("never show where or with what their providers are reached", async () => {
    const ada = await site.signedUp("ada");
    const shown = JSON.stringify([await ada.model.list({}), await ada.model.listUpstreams({})], (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    for (const word of ["http", "baseUrl", "apiKey", "timeouts"]) expect(shown).not.toContain(word);
  });
});

describe("upstream models", () => {
  it("are listed for administrators with the IDs that lead to them and their latest failures", async () => {
    const ada = await site.signedUp("ada");
    site.models.push({ ...site.models[0]!, id: "words-latest" });
    complete("served", 5);
    complete("skipped");
    complete("upstream_unavailable");
    complete("upstream_unavailable");
    const { upstreams, since, time } = await ada.model.listUpstreams({});
    expect(upstreams.map(({ name, modelIds }) => [name, modelIds])).toEqual([
      ["words-upstream", ["words", "words-latest"]],
      ["pictures-upstream", ["pictures"]],
    ]);
    expect(upstreams[0]).toMatchObject({
      provider: "scripted",
      attempts: 3n,
      skipped: 1n,
      failures: 2n,
      duration: { count: 1n, p50Ms: 5 },
    });
    expect(upstreams[0]?.outcomes[0]).toMatchObject({ outcome: "upstream_unavailable", count: 2n });
    expect(upstreams[0]?.lastFailures).toHaveLength(2);
    expect(upstreams[0]?.lastFailures[0]).toMatchObject({
      outcome: "upstream_unavailable",
      httpStatusCode: 503,
      reason: "The upstream provider is <b>unavailable</b>.",
      requestId: "req_1",
      completionId: "chatcmpl-1",
    });
    expect(timestampMs(time!)).toBe(site.access.clock.now());
    expect(timestampMs(since!)).toBeLessThanOrEqual(timestampMs(time!));
  });

  it("have the attempts of all processes by the half hour, with the breakers of each", async () => {
    const ada = await site.signedUp("ada");
    const nowMs = site.access.clock.now();
    const count = (minutesAgo: number, outcome: string, attempts: number) => {
      const halfHourMs = 1_800_000;
      const atMs = Math.floor((nowMs - minutesAgo * 60_000) / halfHourMs) * halfHourMs;
      return { target: "scripted/words-upstream", atMs, outcome, attempts };
    };
    const self = {
      host: "host-a",
      worker: 0,
      version: "1.2.3",
      startedAtMs: nowMs - 60_000,
      seenMs: nowMs,
      breakers: [],
    };
    const target = "scripted/words-upstream";
    const breakers = [
      { target, sinceMs: nowMs - 9_000, untilMs: nowMs + 3_000, isProbed: false },
      { target: "another/model", sinceMs: nowMs, untilMs: nowMs, isProbed: false },
    ];
    site.history.replicas = [
      { ...self, replica: "one" },
      { ...self, replica: "two", worker: 2, breakers },
    ];
    site.history.counts = [
      count(60, "served", 8),
      count(60, "upstream_timeout", 2),
      count(60, "upstream_rejected", 1),
      count(60, "skipped", 4),
      count(1, "served", 1),
      count(25 * 60, "served", 1),
    ];
    const { atMs } = count(60, "served", 1);
    site.history.latencies = [
      { target, atMs, firstContent: histogramOf([]), duration: histogramOf([300, 300, 4_000]) },
    ];
    const words = { provider: "scripted", name: "words-upstream" };
    const pictures = { provider: "scripted", name: "pictures-upstream" };
    const { targets, replicas, since, until } = await ada.model.listTargetHistory({ targets: [pictures, words] });
    expect(targets.map(({ target: name }) => name?.name)).toEqual(["pictures-upstream", "words-upstream"]);
    expect(targets[0]).toMatchObject({ periods: [], breakers: [] });
    expect(targets[1]?.periods.map(({ attempts, failures }) => [attempts, failures])).toEqual([
      [11n, 2n],
      [1n, 0n],
    ]);
    expect(targets[1]?.periods.map(({ firstContent, duration }) => [firstContent, duration?.count])).toEqual([
      [undefined, 3n],
      [undefined, undefined],
    ]);
    expect(targets[1]?.periods[0]?.duration).toMatchObject({ p50Ms: 437.5, p95Ms: expect.closeTo(4_625) as number });
    expect(targets[1]?.periods[0]?.outcomes.map(({ outcome }) => outcome)).toEqual([
      "served",
      "skipped",
      "upstream_timeout",
      "upstream_rejected",
    ]);
    expect(targets[1]?.breakers).toMatchObject([{ replicaId: "two", breaker: { state: BreakerState.OPEN } }]);
    expect(replicas).toMatchObject([{ id: "one" }, { id: "two", host: "host-a", worker: 2, version: "1.2.3" }]);
    expect(timestampMs(until!) - timestampMs(since!)).toBe(86_400_000);
    const many = Array.from({ length: 101 }, () => words);
    expect((await errorOf(ada.model.listTargetHistory({ targets: many }))).code).toBe(Code.InvalidArgument);
    const wrong = ada.model.listTargetHistory({ targets: [words], timeZone: "Mars/Olympus" });
    expect((await errorOf(wrong)).code).toBe(Code.InvalidArgument);
  });

  it("and the configuration are for administrators", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    for (const act of [
      bob.model.listUpstreams({}),
      bob.model.listTargetHistory({}),
      bob.settings.getConfiguration({}),
      bob.account.list({}),
    ]) {
      expect((await errorOf(act)).code).toBe(Code.PermissionDenied);
    }
    expect(await ada.settings.getConfiguration({})).toMatchObject({ ...CONFIGURATION, version: "1.2.3" });
    const pending = [{ key: "overload.max_calls", value: "20" }];
    const state = { host: "host-a", worker: 0, version: "1.2.3", startedAtMs: 0, seenMs: 0, breakers: [] };
    site.history.replicas = [
      { ...state, replica: "one" },
      { ...state, replica: "two", pending },
    ];
    const { replicas } = await ada.settings.getConfiguration({});
    expect(replicas).toMatchObject([
      { replica: { id: "one" }, pending: [] },
      { replica: { id: "two" }, pending },
    ]);
    const nobody = site.browser();
    for (const act of [nobody.model.list({}), nobody.model.listUpstreams({}), nobody.settings.getConfiguration({})]) {
      expect((await errorOf(act)).code).toBe(Code.Unauthenticated);
    }
  });
});

describe("a test of a model", () => {
  const start = async (testModel: (model: Model) => Promise<number>) => {
    const tested = await startConsole({ signUp: "open", testModel });
    return { ada: await tested.signedUp("ada"), tested };
  };

  it("says how long the provider took, or why it did not answer and what to look at", async () => {
    const outcomes: (number | Failure)[] = [
      321,
      new Failure("upstream_refused_us", "The provider refused the credential.", { upstreamStatus: 401 }),
      new Failure("upstream_timeout", "There was no answer in 30 s."),
    ];
    const { ada, tested } = await start(async () => {
      const next = outcomes.shift()!;
      if (next instanceof Failure) throw next;
      return next;
    });
    const answered = await ada.model.testModel({ modelId: "words" });
    expect([answered.durationMs, answered.failure]).toEqual([321, undefined]);
    expect((await ada.model.testModel({ modelId: "words" })).failure).toMatchObject({
      outcome: "upstream_refused_us",
      httpStatusCode: 401,
      reason: "The provider refused the credential.",
      advice: "Check api_keys.",
    });
    expect((await ada.model.testModel({ modelId: "words" })).failure).toMatchObject({ advice: "" });
    const logged = tested.access.logged.filter(({ action }) => action === "model_tested");
    expect(logged).toHaveLength(3);
    expect(logged[0]).toMatchObject({ actor: { id: ada.id }, details: '{"model":"words"}' });
    tested.close();
  });

  it("is one at a time, of a model that answers with text", async () => {
    const first = Promise.withResolvers<number>();
    const { ada, tested } = await start(() => first.promise);
    const running = ada.model.testModel({ modelId: "words" });
    await expect
      .poll(() => errorOf(ada.model.testModel({ modelId: "words" })))
      .toMatchObject({ code: Code.ResourceExhausted });
    first.resolve(1);
    expect(await running).toMatchObject({ durationMs: 1 });
    for (const modelId of ["pictures", "nothing", ""])
      expect(await errorOf(ada.model.testModel({ modelId }))).toMatchObject({ code: Code.InvalidArgument });
    const bob = await tested.signedUp("bob");
    expect(await errorOf(bob.model.testModel({ modelId: "words" }))).toMatchObject({ code: Code.PermissionDenied });
    tested.close();
  });
});
