import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMemoryRates, type MemoryRates } from "../../src/limits/memory.ts";
import type { RateDecision, RateDemand, RateRelease, RateSubject } from "../../src/limits/rates.ts";
import { BURST_MS, FleetOfRates, turns, type WorkerOfRates } from "./support/fleet-of-rates.ts";

const REQUESTS = 120;
const TOKENS = 600;
const PLACES = 60;
const SIZE = 3;

const limited = (subject: string, limits: Partial<RateSubject> = {}): RateSubject => ({
  subject,
  accountId: "",
  requestsPerMinute: REQUESTS,
  tokensPerMinute: TOKENS,
  concurrentRequests: PLACES,
  ...limits,
});
const ACCOUNT = limited("account:c");
const SHAPES: readonly (readonly RateSubject[])[] = [
  [limited("key:a"), ACCOUNT],
  [limited("key:b", { tokensPerMinute: undefined, concurrentRequests: undefined }), ACCOUNT],
  [ACCOUNT],
];

let lastId = 0;
const demandOf = (subjects: readonly RateSubject[], tokens: number): RateDemand => ({
  id: `own-${++lastId}`,
  subjects,
  tokens,
});
const demandsOf = (count: number, subjects: readonly RateSubject[], tokens: number): RateDemand[] =>
  Array.from({ length: count }, () => demandOf(subjects, tokens));
const releaseOf = ({ id, subjects, tokens }: RateDemand, usedTokens = tokens): RateRelease => ({
  id,
  subjects,
  reservedTokens: tokens,
  usedTokens,
});

/** Takes one demand after the other; returns those that were admitted. */
async function takeAll(fleet: FleetOfRates, { rates }: WorkerOfRates, demands: readonly RateDemand[]) {
  const admitted: RateDemand[] = [];
  for (const demand of demands) {
    const decision = rates.take(demand);
    await fleet.deliverAll();
    if ((await decision).admitted) admitted.push(demand);
  }
  return admitted;
}

/** Whether a demand of this worker is admitted while the others hear nothing. */
async function takeAlone(fleet: FleetOfRates, { rates, ends }: WorkerOfRates, demand: RateDemand): Promise<boolean> {
  let decided: RateDecision | undefined;
  const decision = rates.take(demand).then((is) => (decided = is));
  for (let turn = 0; turn < 3; turn++) {
    await turns();
    for (const end of ends) end.receive();
  }
  await turns();
  if (decided === undefined) {
    fleet.advance(50);
    await turns();
    ends[1].receive();
  }
  return (await decision).admitted;
}

/** Whether a worker decides a demand without its parent. */
async function isDecidedAt({ rates }: WorkerOfRates, demand: RateDemand): Promise<boolean> {
  let isDecided = false;
  rates.take(demand).then(
    () => (isDecided = true),
    () => undefined,
  );
  await turns();
  return isDecided;
}

/** Number of requests without tokens that a worker can decide without its parent. */
async function creditOf(of: WorkerOfRates, subjects: readonly RateSubject[]): Promise<number> {
  let count = 0;
  while (await isDecidedAt(of, demandOf(subjects, 0))) count += 1;
  return count;
}

/** Makes requests until these workers have credit of the subjects. */
async function warmUp(
  fleet: FleetOfRates,
  workers: readonly WorkerOfRates[],
  subjects: readonly RateSubject[],
): Promise<void> {
  const taken: (readonly [WorkerOfRates, RateDemand])[] = [];
  for (const one of workers)
    for (const demand of await takeAll(fleet, one, demandsOf(6, subjects, 1))) taken.push([one, demand]);
  await fleet.pass(100);
  for (const [{ rates }, demand] of taken) await rates.release(releaseOf(demand));
  await fleet.deliverAll();
}

const messagesOf = ({ ends }: WorkerOfRates): number => ends[0].sent + ends[1].sent;

const worker = fc.nat({ max: SIZE - 1 });
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      worker,
      shape: fc.nat({ max: 2 }),
      count: fc.integer({ min: 1, max: 30 }),
      tokens: fc.nat({ max: 5 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("release" as const),
      count: fc.integer({ min: 1, max: 8 }),
      from: fc.nat(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("deliver" as const), worker, toParent: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(1, 10, 100, 1000, 30_000),
      stopped: fc.nat({ max: SIZE }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("settle" as const), ms: fc.constantFrom(50, 100) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("die" as const), worker }) },
);

describe("credit of workers", () => {
  it("admits nothing that one process would not have admitted, and loses nothing, whatever happens in between", async () => {
    let byCredit = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
        const taken = async (demand: RateDemand): Promise<void> => {
          expect(await alone.take(demand)).toMatchObject({ admitted: true });
        };
        const watch = (store: MemoryRates): MemoryRates => ({
          ...store,
          async take(demand) {
            const decision = await store.take(demand);
            if (decision.admitted) await taken(demand);
            return decision;
          },
          async release(release) {
            await Promise.all([store.release(release), alone.release(release)]);
          },
        });
        const fleet = new FleetOfRates(SIZE, watch);
        /** One process, which has to admit all that the workers and their parent admit, at the same times. */
        const alone = createMemoryRates({ clock: fleet.clock, burstMs: BURST_MS });
        const inFlight: { demand: RateDemand; worker: WorkerOfRates; byCredit: boolean }[] = [];
        const asked = new Set<Promise<unknown>>();
        const release = async ({ demand, worker: { rates }, byCredit: here }: (typeof inFlight)[number]) => {
          await rates.release(releaseOf(demand));
          if (here) await alone.release(releaseOf(demand));
        };
        await warmUp(fleet, fleet.workers, SHAPES[0]!);
        for (const one of steps) {
          if (one.kind === "take") {
            const by = fleet.workers[one.worker]!;
            for (let index = 0; index < one.count; index++) {
              const demand = demandOf(SHAPES[one.shape]!, one.tokens);
              let decided: RateDecision | undefined;
              const decision = by.rates.take(demand).then((is) => (decided = is));
              await Promise.resolve().then(() => undefined);
              const here = decided !== undefined;
              if (here) {
                byCredit += 1;
                await taken(demand);
              }
              const noted = decision.then(
                ({ admitted }) => void (admitted && inFlight.push({ demand, worker: by, byCredit: here })),
                () => undefined,
              );
              if (here) await noted;
              asked.add(noted);
            }
            await turns();
          } else if (one.kind === "release") {
            for (let index = 0; index < one.count && inFlight.length > 0; index++)
              await release(inFlight.splice(one.from % inFlight.length, 1)[0]!);
            await turns();
          } else if (one.kind === "deliver") {
            fleet.workers[one.worker]!.ends[one.toParent ? 0 : 1].receive();
            await turns();
          } else if (one.kind === "pass") {
            fleet.advance(one.ms, fleet.workers[one.stopped]);
            await turns();
          } else if (one.kind === "settle") await fleet.pass(one.ms);
          else {
            const dead = fleet.workers[one.worker]!;
            await fleet.replace(one.worker);
            for (let index = inFlight.length - 1; index >= 0; index--) {
              if (inFlight[index]!.worker !== dead) continue;
              const [{ demand, byCredit: here }] = inFlight.splice(index, 1) as [(typeof inFlight)[number]];
              if (here) await alone.release(releaseOf(demand));
            }
          }
        }
        await fleet.deliverAll();
        await Promise.all(asked);
        for (const one of inFlight) await release(one);
        await fleet.pass(500);
        // All buckets are full again and all units free, for one worker alone.
        for (const subjects of SHAPES) {
          fleet.advance(120_000);
          const [of] = fleet.workers as [WorkerOfRates];
          const demands = demandsOf(PLACES + 1, subjects, 0);
          const decisions = demands.map((demand) => of.rates.take(demand));
          await fleet.deliverAll();
          const admitted = await Promise.all(decisions.map(async (decision) => (await decision).admitted));
          const first = demands.filter((_, index) => admitted[index]);
          expect(first).toHaveLength(PLACES);
          for (const demand of first) await of.rates.release(releaseOf(demand));
          await fleet.pass(500);
          fleet.advance(120_000);
          expect(await takeAll(fleet, of, demandsOf(2, subjects, TOKENS))).toHaveLength(1);
        }
      }),
      { numRuns: 60 },
    );
    expect(byCredit).toBeGreaterThan(10);
  });

  it("spares a worker far from its limits the messages", async () => {
    const fleet = new FleetOfRates(2);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: 1e6, tokensPerMinute: 1e6, concurrentRequests: 1000 })];
    await warmUp(fleet, [of], subjects);
    for (let window = 0; window < 10; window++) {
      for (const demand of await takeAll(fleet, of, demandsOf(20, subjects, 100))) {
        await turns();
        await of.rates.release(releaseOf(demand, 10));
      }
      await fleet.pass(100);
    }
    const before = messagesOf(of);
    for (let window = 0; window < 10; window++) {
      for (const demand of await takeAll(fleet, of, demandsOf(20, subjects, 100))) {
        await turns();
        await of.rates.release(releaseOf(demand, 10));
      }
      await fleet.pass(100);
    }
    // A statement and its answer in each window, for 200 requests.
    expect(messagesOf(of) - before).toBe(20);
  });

  it.each<readonly [string, RateSubject, number]>([
    ["requests", limited("key:a", { tokensPerMinute: undefined, concurrentRequests: undefined }), REQUESTS],
    ["concurrency", limited("key:a", { tokensPerMinute: undefined, requestsPerMinute: undefined }), PLACES],
    ["tokens", limited("key:a", { requestsPerMinute: undefined, concurrentRequests: undefined }), TOKENS / 10],
  ])("is recalled before another worker is refused: %s", async (_, subject, limit) => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const first = await takeAll(fleet, one, demandsOf(4, [subject], 10));
    await fleet.pass(100);
    const before = messagesOf(one);
    expect(await takeAll(fleet, one, demandsOf(2, [subject], 10))).toHaveLength(2);
    expect(messagesOf(one)).toBe(before);
    const rest = await takeAll(fleet, other, demandsOf(limit, [subject], 10));
    expect(first.length + 2 + rest.length).toBe(limit);
  });

  it("is not waited for longer than 50 ms, and not lost when it comes later", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    let admitted = 0;
    while (await takeAlone(fleet, other, demandOf(subjects, 0))) admitted += 1;
    expect(admitted).toBeLessThan(PLACES);
    await fleet.deliverAll();
    expect(await takeAll(fleet, other, demandsOf(PLACES, subjects, 0))).toHaveLength(PLACES - admitted);
  });

  it("has with the bucket no more than the capacity, after a worker was stopped for a minute", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, concurrentRequests: undefined })];
    await warmUp(fleet, [one], subjects);
    const ofCredit = await takeAll(fleet, one, demandsOf(4, subjects, 2));
    await fleet.pass(100);
    fleet.advance(60_000, one);
    // None of them used what it had reserved a minute ago, which the bucket has got back since.
    for (const demand of ofCredit) await one.rates.release(releaseOf(demand, 0));
    let spent = 0;
    while (await isDecidedAt(one, demandOf(subjects, 1))) spent += 1;
    expect(spent).toBeGreaterThan(8);
    while (await takeAlone(fleet, other, demandOf(subjects, 1))) spent += 1;
    expect(spent).toBeLessThanOrEqual(TOKENS);
  });

  it("does not keep the units of a request that ends while the parent does not answer", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    const [first] = (await takeAll(fleet, one, demandsOf(1, subjects, 0))) as [RateDemand];
    await expect(one.rates.take(demandOf(subjects, 0))).rejects.toThrow("does not answer");
    await one.rates.release(releaseOf(first));
    await fleet.deliverAll();
    expect(await takeAll(fleet, other, demandsOf(PLACES + 1, subjects, 0))).toHaveLength(PLACES);
  });

  it("of a dead worker is free again at once", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    const before = messagesOf(one);
    expect(await takeAll(fleet, one, demandsOf(3, subjects, 0))).toHaveLength(3);
    expect(messagesOf(one)).toBe(before);
    await fleet.replace(0);
    expect(await takeAll(fleet, other, demandsOf(PLACES + 1, subjects, 0))).toHaveLength(PLACES);
  });

  it("is not granted to a worker near a limit", async () => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await takeAll(fleet, of, demandsOf(PLACES / 2, subjects, 0));
    await fleet.pass(100);
    const before = messagesOf(of);
    await takeAll(fleet, of, demandsOf(1, subjects, 0));
    expect(messagesOf(of)).toBe(before + 2);
  });

  it.each<Partial<RateSubject>>([
    { requestsPerMinute: REQUESTS - 20 },
    { tokensPerMinute: TOKENS - 100 },
    { concurrentRequests: PLACES - 10 },
  ])("is not spent after a change of the limits, and granted again for the new ones: %o", async (change) => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const before = [limited("key:a")];
    const after = [limited("key:a", change)];
    await warmUp(fleet, [of], before);
    expect(await isDecidedAt(of, demandOf(before, 1))).toBe(true);
    expect(await isDecidedAt(of, demandOf(after, 1))).toBe(false);
    for (let window = 0; window < 3; window++) {
      await takeAll(fleet, of, demandsOf(4, after, 1));
      await fleet.pass(100);
    }
    expect(await isDecidedAt(of, demandOf(after, 1))).toBe(true);
  });

  it("costs no message and no timer while there are no requests", async () => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    await warmUp(fleet, [of], SHAPES[0]!);
    await fleet.pass(300);
    const before = messagesOf(of);
    await fleet.pass(1000);
    expect(messagesOf(of)).toBe(before);
    expect(of.clock.pending).toBe(0);
  });

  it("ends with its worker", async () => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    await warmUp(fleet, [of], SHAPES[0]!);
    await of.rates.close();
    expect(of.clock.pending).toBe(0);
  });

  it("is recalled with units of requests that began in earlier windows", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    const [first, ...inFlight] = (await takeAll(fleet, one, demandsOf(4, subjects, 0))) as [
      RateDemand,
      ...RateDemand[],
    ];
    await fleet.pass(100);
    await one.rates.release(releaseOf(first));
    expect(await takeAll(fleet, other, demandsOf(PLACES, subjects, 0))).toHaveLength(PLACES - inFlight.length);
  });

  it.each([
    { windows: [6], credit: 12 },
    { windows: [6, 4], credit: 8 },
    { windows: [6, 3], credit: 0 },
    { windows: [3], credit: 0 },
  ])("is twice what the last window needed, none for few requests: $windows", async ({ windows, credit }) => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { tokensPerMinute: undefined, concurrentRequests: undefined })];
    for (const count of windows) {
      await takeAll(fleet, of, demandsOf(count, subjects, 0));
      await fleet.pass(100);
    }
    expect(await creditOf(of, subjects)).toBe(credit);
  });

  it.each([
    ["in the window of their beginning", 0],
    ["in a later one", 100],
  ])("is twice the most that were in flight at once, when requests end %s", async (_, ms) => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    const ended = await takeAll(fleet, of, demandsOf(6, subjects, 0));
    await fleet.pass(ms);
    for (const demand of ended) await of.rates.release(releaseOf(demand));
    await takeAll(fleet, of, demandsOf(ms === 0 ? 1 : 6, subjects, 0));
    await fleet.pass(100);
    expect(await creditOf(of, subjects)).toBe(12);
  });

  it("is what requests need at once, not one after the other", async () => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    const takeInTurn = async (): Promise<void> => {
      for (const demand of demandsOf(PLACES, subjects, 0)) {
        await takeAll(fleet, of, [demand]);
        await of.rates.release(releaseOf(demand));
        await fleet.deliverAll();
      }
    };
    await takeInTurn();
    await fleet.pass(100);
    const before = messagesOf(of);
    await takeInTurn();
    expect(messagesOf(of)).toBe(before);
  });

  it.each([
    ["without a statement in flight", 0],
    ["with one", 4],
  ])("that has ended gives units of its requests back at once: %s", async (_, asked) => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    const before = messagesOf(one);
    const inFlight = await takeAll(fleet, one, demandsOf(12, subjects, 0));
    expect(messagesOf(one)).toBe(before);
    await fleet.pass(300);
    await takeAll(fleet, other, demandsOf(PLACES - inFlight.length - asked, subjects, 0));
    expect(await takeAll(fleet, one, demandsOf(asked, subjects, 0))).toHaveLength(asked);
    if (asked > 0) fleet.advance(100);
    await turns();
    await one.rates.release(releaseOf(inFlight[0]!));
    await fleet.deliverAll();
    expect(await takeAll(fleet, other, demandsOf(2, subjects, 0))).toHaveLength(1);
  });

  it.each(["while", "before"])("is recalled when the parent has not answered %s it was wished for", async (when) => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    const inFlight = await takeAll(fleet, one, demandsOf(when === "while" ? 12 : 8, subjects, 0));
    if (when === "while") {
      // Their credit ends; then another one is wished for, and one of them ends.
      await fleet.pass(300);
      inFlight.push(...(await takeAll(fleet, one, demandsOf(4, subjects, 0))));
    } else for (const demand of inFlight.splice(0)) await one.rates.release(releaseOf(demand));
    fleet.advance(100);
    await turns();
    if (when === "while") await one.rates.release(releaseOf(inFlight.shift()!));
    else fleet.advance(100);
    await fleet.deliverAll();
    const rest = await takeAll(fleet, other, demandsOf(PLACES, subjects, 0));
    expect(rest).toHaveLength(PLACES - inFlight.length);
  });

  it("is given back by a worker that does not use it, also when its subject is near a limit", async () => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, tokensPerMinute: undefined })];
    await warmUp(fleet, [one], subjects);
    const first = await takeAll(fleet, other, demandsOf(31, subjects, 0));
    await fleet.pass(100);
    let rest = 0;
    while (await takeAlone(fleet, other, demandOf(subjects, 0))) rest += 1;
    expect(first.length + rest).toBe(PLACES);
  });

  it.each([
    ["was spent to the last", 200, 200, 24],
    ["was exceeded", 10, 310 + 500, 0],
  ])("that %s counts as spent", async (_, reserved, used, left) => {
    const fleet = new FleetOfRates(2);
    const [one, other] = fleet.workers as [WorkerOfRates, WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: undefined, concurrentRequests: undefined })];
    await takeAll(fleet, one, demandsOf(4, subjects, 25));
    await fleet.pass(100);
    const demand = demandOf(subjects, reserved);
    expect(await isDecidedAt(one, demand)).toBe(true);
    await one.rates.release(releaseOf(demand, used));
    await fleet.pass(200);
    if (used === reserved) fleet.advance(60_000);
    expect(await takeAll(fleet, other, demandsOf(25, subjects, 25))).toHaveLength(left);
  });

  it("shows the levels that one process would show", async () => {
    const fleet = new FleetOfRates(1);
    const alone = createMemoryRates({ clock: fleet.clock, burstMs: BURST_MS });
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = SHAPES[0]!;
    for (let window = 0; window < 4; window++) {
      for (const [index, demand] of demandsOf(4, subjects, 5).entries()) {
        const expected = await alone.take(demand);
        const decision = of.rates.take(demand);
        await fleet.deliverAll();
        expect(await decision).toEqual(expected);
        // The last one was not sent.
        const release: RateRelease = index < 3 ? releaseOf(demand, 3) : { ...releaseOf(demand, 0), usedRequests: 0 };
        await Promise.all([alone.release(release), of.rates.release(release)]);
        await fleet.deliverAll();
      }
      await fleet.pass(100);
    }
  });

  it("shows no level above the capacity", async () => {
    const fleet = new FleetOfRates(1);
    const [of] = fleet.workers as [WorkerOfRates];
    const subjects = [limited("key:a", { requestsPerMinute: 60_000, tokensPerMinute: undefined })];
    await warmUp(fleet, [of], subjects);
    const before = messagesOf(of);
    fleet.advance(50);
    const { levels } = await of.rates.take(demandOf(subjects, 0));
    expect(messagesOf(of)).toBe(before);
    expect(levels[0]?.requests?.level).toBe(59_999);
  });
});
