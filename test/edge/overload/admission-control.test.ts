import { beforeEach, describe, expect, it } from "vitest";
import { Calls } from "../../../src/edge/calls.ts";
import { AdmissionControl, type OverloadChange } from "../../../src/edge/overload/admission-control.ts";
import { Shed } from "../../../src/edge/overload/shed.ts";
import type { Place } from "../../../src/edge/overload/under-way.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { LoopModel, type Shape } from "./loop-model.ts";

const OPTIONS = { maxCalls: 20_000, maxWaitMs: 1_000 };

describe("admission", () => {
  let clock: FakeClock;
  let calls: Calls;
  let admission: AdmissionControl;
  let changes: OverloadChange[];
  let share: number;
  let busy: number;
  let waitedMs: number;
  let ends: (() => void)[];
  beforeEach(() => {
    clock = new FakeClock();
    calls = new Calls(clock);
    changes = [];
    share = 0;
    busy = 0.1;
    waitedMs = 0;
    ends = [];
    admission = create(OPTIONS);
  });
  const create = (options: typeof OPTIONS): AdmissionControl =>
    new AdmissionControl(options, {
      clock,
      calls,
      memoryShare: () => share,
      loopUse: () => ({ busyShare: busy, slowdown: 1, waitedMs }),
      atEndOfTurn: (callback) => void ends.push(callback),
      changed: (change) => void changes.push(change),
    });
  const enter = (lineId = "key", deadlineMs?: number) => {
    const open = calls.open(deadlineMs);
    const entered = admission.enter({ lineId }, open);
    // Those that nobody asks about may be refused.
    if (entered instanceof Promise) entered.catch(() => undefined);
    return { open, entered };
  };
  const endTurn = async (): Promise<void> => {
    for (const end of ends.splice(0)) end();
    for (let turn = 0; turn < 4; turn++) await Promise.resolve();
  };
  const reasonOf = (run: () => unknown): unknown => {
    try {
      run();
    } catch (reason) {
      return reason instanceof Shed ? reason.reason : reason;
    }
    return undefined;
  };

  it("begins at once while there is room, without a promise", () => {
    expect(enter().entered).not.toBeInstanceOf(Promise);
    expect(admission.state()).toMatchObject({ waiting: 0, shedding: false });
  });

  it("begins no more than 32 in one turn of the event loop, and the others in the next ones", async () => {
    const all = Array.from({ length: 80 }, () => enter().entered);
    expect(all.filter((entered) => !(entered instanceof Promise))).toHaveLength(32);
    await endTurn();
    expect(admission.state()).toMatchObject({ waiting: 16 });
    await endTurn();
    expect(admission.state()).toMatchObject({ waiting: 0 });
  });

  it("never begins what a caller has left, or whose deadline has passed, and tells them why", async () => {
    for (let count = 0; count < 32; count++) enter();
    const left = enter();
    const late = enter("key", 500);
    const stays = enter();
    const told = Promise.allSettled([left.entered, late.entered]);
    left.open.leave();
    clock.advance(501);
    await endTurn();
    expect((await told).map((one) => one.status === "rejected" && (one.reason as { code: string }).code)).toEqual([
      "cancelled",
      "deadline_exceeded",
    ]);
    expect(await stays.entered).toBeDefined();
    expect(admission.state()).toMatchObject({ waiting: 0 });
  });

  it("refuses at once whose deadline is earlier than its turn, as far as that is known", () => {
    for (let count = 0; count < 132; count++) enter();
    expect(reasonOf(() => enter("key", 50))).toBe("queue");
    expect(reasonOf(() => enter("key", 5_000))).toBeUndefined();
  });

  it("refuses a key whose own crowd waits, and not another one", () => {
    for (let count = 0; count < 32 + 250; count++) enter("loud");
    expect(reasonOf(() => enter("loud"))).toBe("queue");
    expect(reasonOf(() => enter("quiet"))).toBeUndefined();
    // In its place, the newest of the crowd was refused.
    expect(admission.state()).toMatchObject({ waiting: 250, refused: { queue: 2, calls: 0, memory: 0 } });
  });

  it("refuses after the longest wait what had no turn, which nobody could know", async () => {
    for (let count = 0; count < 32; count++) enter();
    const waiting = Promise.allSettled([enter().entered, enter("other").entered]);
    // The event loop does not come to them.
    clock.advance(1_000);
    expect(admission.state().waiting).toBe(2);
    clock.advance(200);
    expect((await waiting).map((one) => one.status === "rejected" && (one.reason as Shed).reason)).toEqual([
      "queue",
      "queue",
    ]);
    expect(admission.state()).toMatchObject({ waiting: 0, shedding: true });
  });

  it("begins fewer while parts of answers wait for long, however short the turns of the event loop are", async () => {
    const begunIn = async (longestWaitMs: number): Promise<number> => {
      admission = create(OPTIONS);
      [busy, waitedMs] = [1, longestWaitMs];
      let begun = 0;
      const tryOne = (): void => {
        try {
          const { entered } = enter();
          const started = (place: Place): void => {
            begun += 1;
            place.started();
          };
          if (entered instanceof Promise) void entered.then(started, () => undefined);
          else started(entered);
        } catch (reason) {
          if (!(reason instanceof Shed)) throw reason;
        }
      };
      const pass = async (windows: number, perWindow: number): Promise<void> => {
        for (let window = 0; window < windows; window++) {
          for (let count = 0; count < perWindow; count++) tryOne();
          await endTurn();
          clock.advance(100);
        }
      };
      // More than are always begun.
      await pass(10, 30);
      const before = begun;
      await pass(50, 20);
      admission.close();
      return begun - before;
    };
    expect(await begunIn(500)).toBeLessThan(0.6 * (await begunIn(0)));
  });

  it("refuses when as many calls are under way as may be", () => {
    admission = create({ ...OPTIONS, maxCalls: 3 });
    for (let count = 0; count < 3; count++) enter();
    expect(reasonOf(() => enter())).toBe("calls");
  });

  it("refuses while memory is short, says so once, and begins again when there is enough", () => {
    const steps: number[] = [];
    admission.onMemoryStep((step) => steps.push(step));
    share = 0.96;
    enter();
    clock.advance(200);
    for (let count = 0; count < 3; count++) expect(reasonOf(() => enter())).toBe("memory");
    share = 0.5;
    clock.advance(200);
    expect(reasonOf(() => enter())).toBeUndefined();
    expect(steps).toEqual([3, 0]);
    expect(changes.map((change) => change.what)).toEqual(["memory", "began", "memory"]);
    clock.advance(11_000);
    expect(changes.at(-1)).toEqual({ what: "ended", refused: 3 });
  });

  it("refuses who waits when memory runs short, and begins one again when nothing is under way", async () => {
    const places = Array.from({ length: 32 }, () => enter().entered as Place);
    const waits = enter();
    share = 0.96;
    clock.advance(100);
    expect(await Promise.allSettled([waits.entered])).toMatchObject([
      { status: "rejected", reason: { reason: "memory" } },
    ]);
    for (const place of places) place.end();
    await endTurn();
    expect(enter().entered).not.toBeInstanceOf(Promise);
    expect(reasonOf(() => enter())).toBe("memory");
  });

  it("refuses who waits, and leaves no timer behind, when it is closed", async () => {
    for (let count = 0; count < 32; count++) enter();
    const waits = enter();
    admission.close();
    expect(await Promise.allSettled([waits.entered])).toMatchObject([
      { status: "rejected", reason: { reason: "queue" } },
    ]);
    expect(clock.pending).toBe(0);
  });

  it("says at once what ended a call before it came here", () => {
    const left = calls.open(undefined);
    left.leave();
    expect(reasonOf(() => admission.enter({ lineId: "key" }, left))).toMatchObject({ code: "cancelled" });
    expect(reasonOf(() => enter("key", 0))).toMatchObject({ code: "deadline_exceeded" });
  });

  it("sends callers away for different times, all of them a second or more", () => {
    const waits = new Set(Array.from({ length: 8 }, () => Shed.because("queue").retryAfterMs));
    expect(waits.size).toBe(8);
    expect(Math.min(...[...waits].map(Number))).toBeGreaterThanOrEqual(1_000);
  });

  it("leaves no timer behind when everything is over", () => {
    const place = enter().entered as Place;
    place.end();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });
});

const COSTS = { start: 0.3, chunk: 0.05, end: 0.15, refusal: 0.04 };
/** How many of such completions a second keep the event loop busy. */
const capacity = ({ chunks }: Shape): number => 1000 / (COSTS.start + COSTS.end + chunks * COSTS.chunk);
const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * q)] ?? 0;

const SHORT = { firstMs: 250, chunks: 60, intervalMs: 20 };
const LATE = { firstMs: 1_000, chunks: 60, intervalMs: 20 };
const LONG = { firstMs: 500, chunks: 500, intervalMs: 10 };
const WHOLE = { firstMs: 100, chunks: 0, intervalMs: 0 };
const SLOW_WHOLE = { firstMs: 2_000, chunks: 0, intervalMs: 0 };

describe.each([
  ["short streams", SHORT],
  ["streams that begin late", LATE],
  ["long streams", LONG],
  ["whole answers", WHOLE],
  ["whole answers of slow models", SLOW_WHOLE],
])("with more %s than a process can do", (_, shape) => {
  it.each(shape.chunks === 0 ? [2] : [2, 10])(
    "nearly as much is answered as it can do, of %i times that",
    async (times) => {
      const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
      const flood = [{ key: "flood", perSecond: capacity(shape) * times }];
      await model.run(6, flood);
      const before = model.servedTotal;
      await model.run(20, flood);
      const { servedMs } = model.told.get("flood")!;
      // Refusals take their time, too.
      const left = 1 - (times - 1) * capacity(shape) * (COSTS.refusal / 1000);
      expect((model.servedTotal - before) / 20).toBeGreaterThan(0.7 * left * capacity(shape));
      const aloneMs = shape.firstMs + shape.chunks * shape.intervalMs;
      expect(quantile(servedMs, 0.5)).toBeLessThan(aloneMs * 2 + OPTIONS.maxWaitMs);
    },
  );

  it("nobody is refused at half of it", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
    await model.run(10, [{ key: "service", perSecond: capacity(shape) / 2 }]);
    expect(model.told.get("service")!.refusedMs).toEqual([]);
  });
});

describe("under ten times of what a process can do", () => {
  const flood = { key: "flood", perSecond: capacity(SHORT) * 10 };

  it("refusals are quick", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    await model.run(6, [flood]);
    await model.run(20, [flood]);
    expect(quantile(model.told.get("flood")!.refusedMs, 0.99)).toBeLessThan(400);
  });

  it("a key that sends little is not refused, and hardly waits", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    const quiet = Array.from({ length: 20 }, (_, index) => ({ key: `quiet ${index}`, perSecond: 1 }));
    await model.run(6, [flood, ...quiet]);
    await model.run(20, [flood, ...quiet]);
    const told = quiet.map(({ key }) => model.told.get(key)!);
    expect(told.flatMap(({ refusedMs }) => refusedMs)).toEqual([]);
    const aloneMs = SHORT.firstMs + SHORT.chunks * SHORT.intervalMs;
    expect(
      quantile(
        told.flatMap(({ servedMs }) => servedMs),
        0.99,
      ),
    ).toBeLessThan(2 * aloneMs);
  });
});

describe("beside completions of another kind", () => {
  const half = { key: "service", perSecond: capacity(SHORT) / 3 };

  it("those of a model that hangs keep nobody else out", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    const hangs = { key: "hangs", perSecond: 60, shape: { ...SHORT, firstMs: 1e6 } };
    await model.run(10, [half]);
    for (let part = 0; part < 4; part++) {
      await model.run(10, [half, hangs]);
      expect(model.told.get("service")!.refusedMs).toEqual([]);
    }
  });

  it("those that fail at once do not let more be begun than can be done", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    const flood = [
      { key: "flood", perSecond: capacity(SHORT) * 8 },
      { key: "flood", perSecond: capacity(SHORT) * 2, shape: { firstMs: 1, chunks: 0, intervalMs: 0 } },
    ];
    await model.run(6, flood);
    await model.run(20, flood);
    const served = model.told.get("flood")!.servedMs;
    expect(quantile(served, 0.5)).toBeLessThan(2 * (SHORT.firstMs + SHORT.chunks * SHORT.intervalMs));
    expect(quantile(model.turnsMs, 0.99)).toBeLessThan(100);
  });

  it("a flood that comes at once is refused quickly after four seconds", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    await model.run(30, [{ key: "service", perSecond: 20 }]);
    const flood = [{ key: "flood", perSecond: capacity(SHORT) * 10 }];
    await model.run(4, flood);
    await model.run(10, flood);
    expect(quantile(model.told.get("flood")!.refusedMs, 0.99)).toBeLessThan(600);
  });
});

describe("a crowd that comes back after a pause", () => {
  const shape = { firstMs: 250, chunks: 400, intervalMs: 15 };
  /** So many can be under way. */
  const atOnce = (capacity(shape) * (shape.firstMs + shape.chunks * shape.intervalMs)) / 1000;
  const begunAfter = async (pauseSeconds: number): Promise<number> => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
    const flood = [{ key: "flood", perSecond: capacity(shape) * 20 }];
    await model.run(20, flood);
    await model.run(pauseSeconds, []);
    expect(model.active).toBe(0);
    await model.run(1, flood);
    return model.told.get("flood")!.begun;
  };

  it("is not begun whole, for it is still known what a completion takes", async () => {
    expect(await begunAfter(20)).toBeLessThan(1.5 * atOnce);
  });

  it("is begun as by a new process when that was long ago", async () => {
    expect(await begunAfter(600)).toBeGreaterThan(1.5 * atOnce);
  });
});

it("thousands of quiet streams stay open and keep nobody out", async () => {
  const model = new LoopModel(OPTIONS, {
    costs: { ...COSTS, chunk: 0.02, end: 0.1 },
    shape: { firstMs: 100, chunks: 20, intervalMs: 1_000 },
  });
  for (const perSecond of [350, 500, 700, 700, 700, 700]) {
    await model.run(3, [{ key: "service", perSecond }]);
    expect(model.told.get("service")!.refusedMs).toEqual([]);
  }
  expect(model.active).toBeGreaterThan(9_000);
  expect(model.changes).toEqual([]);
});

it("a burst of fifteen hundred whole answers on an idle process is served", async () => {
  const model = new LoopModel(OPTIONS, { costs: COSTS, shape: WHOLE });
  await model.run(1, [{ key: "burst", perSecond: 1_500 }]);
  await model.run(3, []);
  expect(model.told.get("burst")!.refusedMs).toEqual([]);
  expect(model.servedTotal).toBe(1_500);
});
