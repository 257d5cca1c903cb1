import { beforeEach, describe, expect, it } from "vitest";
import { RouteReason } from "../../gen/parley/v1/route_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { upstreamKey } from "../../src/core/model.ts";
import { createRoute, type Route } from "../../src/core/route.ts";
import { Breaker } from "../../src/router/breaker.ts";
import { Outliers, shareAfter, type Span } from "../../src/router/outliers.ts";
import { type ExplainedRoute, Routes } from "../../src/router/routes.ts";
import { TrackRecord } from "../../src/router/track-record.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { asking, Pool, seeded } from "./route-simulation.ts";
import { createWorld, fails, NO_RULES, serves, stream } from "./routed.ts";

const BREAKER = { failures: 5, openMs: 1_000, maxOpenMs: 1_000 };

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock();
});

interface Peer {
  readonly record: TrackRecord;
  out: Span | undefined;
  times: number;
}

const peer = (): Peer => ({ record: new TrackRecord(clock), out: undefined, times: 0 });

/** Adds attempts of accounts: so many, of which so many failed. */
function attempt({ record }: Peer, accounts: Readonly<Record<string, readonly [attempts: number, failures: number]>>) {
  for (const [account, [attempts, failures]] of Object.entries(accounts))
    for (let number = 0; number < attempts; number++) record.add(account, { failed: number < failures });
}

const outOf = (peers: readonly Peer[]): boolean[] =>
  peers.map(({ out }) => out !== undefined && out.untilMs > clock.monotonic());

describe("an outlier", () => {
  it.each([
    ["fails in a tenth of its attempts, and its peers do not", [50, 5], [50, 1], true],
    ["fails in less than a tenth", [100, 9], [100, 0], false],
    ["fails less than three times as often as its peers", [50, 10], [50, 4], false],
    ["has few attempts", [19, 10], [50, 0], false],
    ["has few failures", [20, 4], [50, 0], false],
    ["has peers with few attempts", [50, 10], [19, 0], false],
  ] as const)("%s", (_, own, others, isOut) => {
    const peers = [peer(), peer()];
    attempt(peers[0]!, { a: own });
    attempt(peers[1]!, { a: others });
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([isOut, false]);
  });

  it("is not made by one account, while others are served", () => {
    const peers = [peer(), peer()];
    attempt(peers[0]!, { hostile: [200, 200], a: [50, 1] });
    attempt(peers[1]!, { a: [50, 0] });
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([false, false]);
    attempt(peers[0]!, { b: [30, 10] });
    clock.advance(1_000);
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([true, false]);
  });

  it("is not made by two accounts, while two others are served", () => {
    const peers = [peer(), peer()];
    attempt(peers[0]!, { hostile: [200, 200], another: [200, 150], a: [50, 1], b: [50, 0] });
    attempt(peers[1]!, { a: [50, 0] });
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([false, false]);
    attempt(peers[0]!, { b: [30, 20] });
    clock.advance(1_000);
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([true, false]);
  });

  it("is one of at most half of the targets", () => {
    const peers = [peer(), peer(), peer(), peer(), peer()];
    for (const one of peers.slice(0, 4)) attempt(one, { a: [50, 10] });
    attempt(peers[4]!, { a: [5_000, 0] });
    new Outliers().compare(peers, clock.monotonic());
    expect(outOf(peers)).toEqual([true, true, false, false, false]);
    const alone = [peer()];
    attempt(alone[0]!, { a: [50, 50] });
    new Outliers().compare(alone, clock.monotonic());
    expect(outOf(alone)).toEqual([false]);
  });

  it("is passed over for 30 s, and twice as long each time that follows within ten minutes", () => {
    const peers = [peer(), peer()];
    const outliers = new Outliers();
    const findMs = (): number => {
      attempt(peers[0]!, { a: [50, 10] });
      attempt(peers[1]!, { a: [50, 0] });
      outliers.compare(peers, clock.monotonic());
      const { sinceMs, untilMs } = peers[0]!.out!;
      clock.advance(untilMs - sinceMs + 1_000);
      return untilMs - sinceMs;
    };
    expect(Array.from({ length: 5 }, findMs)).toEqual([30_000, 60_000, 120_000, 240_000, 300_000]);
    clock.advance(600_000);
    expect(findMs()).toBe(30_000);
  });
});

describe("a record", () => {
  it("has the attempts of the last 30 to 60 s", () => {
    const { record } = peer();
    record.add("a", { failed: true });
    clock.advance(59_000);
    record.add("a", { failed: false });
    expect(record.tally()).toEqual({ attempts: 2, failures: 1 });
    clock.advance(30_000);
    expect(record.tally()).toEqual({ attempts: 1, failures: 0 });
    clock.advance(60_000);
    expect(record.tally()).toEqual({ attempts: 0, failures: 0 });
  });

  it("is bounded, however many accounts there are", () => {
    const { record } = peer();
    for (let number = 0; number < 1_000; number++) record.add(`account ${number}`, { failed: true });
    // Without the two largest counts, of which one is that of all accounts after the first 64.
    expect(record.tally()).toEqual({ attempts: 63, failures: 63 });
  });
});

describe("a slow start", () => {
  it("returns a tenth of the requests at once, and all after the time of the absence, at most 30 s", () => {
    const shares = (lastedMs: number): number[] =>
      [-1, 0, 5_000, 10_000, 30_000].map((afterMs) => shareAfter({ sinceMs: -lastedMs, untilMs: 0 }, afterMs));
    expect(shares(10_000)).toEqual([0, 0.1, 0.55, 1, 1]);
    expect(shares(600_000)).toEqual([0, 0.1, 0.25, 0.4, 1]);
  });
});

describe("a route", () => {
  /** Requests each 10 ms to three targets, of which `a` fails as given. Returns the share of first attempts at `a` for each 5 s. */
  function sharesOf(isDown: (ms: number) => boolean, { affinity }: { readonly affinity: boolean }): number[] {
    let tried = "";
    const target = (id: string) => ({
      isDown: (nowMs: number) => {
        tried ||= id;
        return id === "a" && isDown(nowMs - beganMs);
      },
    });
    const targets = { a: target("a"), b: target("b"), c: target("c") };
    const pool = new Pool({ targets, policy: "weighted", affinity, random: seeded(7) });
    const beganMs = pool.clock.monotonic();
    return Array.from({ length: 20 }, () => {
      let count = 0;
      for (let number = 0; number < 500; number++) {
        tried = "";
        pool.send(asking(`Conversation ${number}`));
        if (tried === "a") count += 1;
        pool.clock.advance(10);
      }
      return count / 500;
    });
  }

  it.each([false, true])("passes over an outlier, which then returns slowly (affinity: %s)", (affinity) => {
    const random = seeded(8);
    const shares = sharesOf((ms) => ms < 5_000 && random() < 0.3, { affinity });
    // It was found within seconds.
    expect(shares[0]).toBeGreaterThan(0.02);
    expect(shares.slice(1, 6)).toEqual([0, 0, 0, 0, 0]);
    // 30 s after that it has its first tenth, and 5 s later a quarter of its third.
    expect(shares[7]).toBeGreaterThan(0.04);
    expect(shares[7]).toBeLessThan(0.14);
    expect(shares[9]).toBeGreaterThan(shares[7]!);
    expect(shares.at(-1)).toBeGreaterThan(0.25);
  });

  it("returns the requests of a target with a closed breaker over as long as that was open", () => {
    const shares = sharesOf((ms) => ms < 20_000, { affinity: true });
    expect(Math.max(...shares.slice(1, 4))).toBeLessThan(0.02);
    const returned = shares.findIndex((share, at) => at > 3 && share > 0.02);
    expect(shares[returned + 1]).toBeGreaterThan(shares[returned]!);
    expect(shares[returned]).toBeLessThan(0.2);
    expect(shares.at(-1)).toBeGreaterThan(0.25);
  });
});

it("knows its outliers after a reload that keeps health, and says why they are held back", () => {
  const provider = new ScriptedProvider(clock, {});
  const breakers = new Map(["a", "b"].map((id) => [id, new Breaker(() => BREAKER, clock)]));
  const routes = new Routes({
    clock,
    random: () => 0.5,
    breakerOf: ({ id }) => breakers.get(id)!,
    loadOf: () => new UpstreamLoad(clock),
  });
  const build = (): Route => {
    const targets = ["a", "b"].map((id) => ({ model: modelOf(id, provider), weight: 1, when: undefined }));
    return createRoute({ id: "name", description: "", created: 0, policy: "ordered", affinity: false, targets });
  };
  for (const [id, { record }] of breakers)
    for (let number = 0; number < 50; number++) record.add("acct", { failed: id === "a" && number < 10 });
  const before = build();
  routes.rank(asking("hi"), [before], { mode: "stream" });
  expect(routes.outliersOf(before)).toEqual(["a"]);
  const after = build();
  routes.inherit([before], [after], new Set());
  expect(routes.outliersOf(after)).toEqual([]);
  routes.inherit([before], [after], new Set(after.targets.map(({ model }) => upstreamKey(model))));
  expect(routes.outliersOf(after)).toEqual(["a"]);
  const why = (): unknown => {
    const explained: ExplainedRoute[] = [];
    routes.rank(asking("hi"), [after], { mode: "stream", explained });
    return [...explained[0]!.heldBack].map(([{ id }, reason]) => [id, reason]);
  };
  expect(why()).toEqual([["a", "outlier"]]);
  clock.advance(30_000);
  expect(why()).toEqual([["a", "returning"]]);
  clock.advance(30_000);
  expect(why()).toEqual([]);
});

describe("other processes' notes", () => {
  it("change the order of targets while they last, and refuse nothing", () => {
    const scripts = { a: [serves("hi")], b: [serves("hi")] };
    const { router, models } = createWorld({ scripts });
    const targets = models.map((model) => ({ model, weight: 1, when: undefined }));
    const facts = { description: "", created: 0, policy: "ordered", affinity: false } as const;
    const route = createRoute({ id: "name", ...facts, targets });
    const order = (): string[] =>
      router.plan(asking("hi"), [route], { mode: "stream", rules: NO_RULES }).candidates.map(({ id }) => id);
    expect(router.healthNote()).toBeUndefined();
    router.replace(models, { routes: [route] });
    expect(router.healthNote()).toEqual({ down: [], up: [] });
    const note = { down: ["scripted/a-upstream"], up: ["scripted/b-upstream"] };
    router.heed([note]);
    expect(order()).toEqual(["b", "a"]);
    expect(router.explain(asking("hi"), [route], { mode: "stream", rules: NO_RULES }).steps).toMatchObject([
      { model: { id: "b" }, reason: RouteReason.POLICY },
      {
        model: { id: "a" },
        reason: RouteReason.HELD_BACK,
        message: "moved back, because other processes find it down",
      },
    ]);
    router.heed([{ ...note, down: ["scripted/a-upstream", "scripted/b-upstream"], up: ["scripted/c"] }]);
    expect(order()).toEqual(["a", "b"]);
    router.heed([note]);
    router.heed([]);
    expect(order()).toEqual(["a", "b"]);
  });

  it("have what this process has met", async () => {
    const unavailable = new Failure("upstream_unavailable", "It is down.", { transient: false });
    const world = createWorld({ scripts: { a: [fails(unavailable)], b: [serves("hi")] }, breaker: { failures: 1 } });
    const targets = world.models.map((model) => ({ model, weight: 1, when: undefined }));
    const facts = { description: "", created: 0, policy: "ordered", affinity: false } as const;
    world.router.replace(world.models, { routes: [createRoute({ id: "name", ...facts, targets })] });
    await stream(world);
    expect(world.router.healthNote()).toEqual({ down: ["scripted/a-upstream"], up: ["scripted/b-upstream"] });
    world.clock.advance(10_000);
    // The breaker is half-open: its probe is due.
    expect(world.router.healthNote()).toEqual({ down: [], up: [] });
  });

  it("have what was served last first, so that a bound leaves out the oldest", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")], b: [serves("hi"), serves("hi")], c: [serves("hi")] } });
    const [a, b, c] = world.models;
    const targets = world.models.map((model) => ({ model, weight: 1, when: undefined }));
    const facts = { description: "", created: 0, policy: "ordered", affinity: false } as const;
    world.router.replace(world.models, { routes: [createRoute({ id: "name", ...facts, targets })] });
    for (const model of [b!, c!, a!, b!]) {
      await stream({ ...world, models: [model] });
      world.clock.advance(1_000);
    }
    const up = ["b", "a", "c"].map((id) => `scripted/${id}-upstream`);
    expect(world.router.healthNote()).toEqual({ down: [], up });
  });
});
