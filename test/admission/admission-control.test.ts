import { beforeEach, describe, expect, it } from "vitest";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { Calls } from "../../src/inbound/calls.ts";
import { AdmissionControl, type OverloadChange } from "../../src/admission/admission-control.ts";
import { OverloadFailure } from "../../src/admission/overload-failure.ts";
import { READ_MS_PER_BYTE, Slot } from "../../src/admission/slot.ts";
import { ROOMY_BYTES } from "../support/admission.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { LoopModel, type Shape } from "./loop-model.ts";

const MIB = 1024 * 1024;
const OPTIONS = {
  maxCalls: 20_000,
  maxWaitMs: 10_000,
  accountConcurrency: () => undefined,
  arrivingBytes: ROOMY_BYTES,
};

interface Asked {
  readonly key?: string;
  readonly account?: string;
  readonly limits?: Partial<Limits>;
  readonly accountLimits?: Partial<Limits>;
  /** Default: 0. "chunked" for a body whose length is not declared. */
  readonly bytes?: number | "chunked";
  /** Default: false. */
  readonly isRead?: boolean;
  readonly deadlineMs?: number;
}

describe("admission", () => {
  let clock: FakeClock;
  let calls: Calls;
  let admission: AdmissionControl;
  let changes: OverloadChange[];
  let share: number;
  let busyShare: number;
  let delayMs: number;
  let ends: (() => void)[];
  let waited: number[];
  beforeEach(() => {
    clock = new FakeClock();
    calls = new Calls(clock);
    changes = [];
    share = 0;
    busyShare = 0.1;
    delayMs = 0;
    ends = [];
    waited = [];
    admission = create({});
  });
  const create = (options: Partial<ConstructorParameters<typeof AdmissionControl>[0]>): AdmissionControl =>
    new AdmissionControl(
      { ...OPTIONS, ...options },
      {
        clock,
        memoryShare: () => share,
        load: () => ({ busyShare, delayMs }),
        atEndOfTurn: (callback) => void ends.push(callback),
        changed: (change) => void changes.push(change),
        waited: (durationMs) => void waited.push(durationMs),
      },
    );
  const callerOf = ({ key = "key", account = "account", limits = {}, accountLimits = {} }: Asked) => ({
    keyFamilyId: key,
    accountId: account,
    limits: { ...NO_LIMITS, ...limits },
    accountLimits: { ...NO_LIMITS, ...accountLimits },
  });
  const enter = (asked: Asked = {}) => {
    const open = calls.open(asked.deadlineMs);
    const { bytes = 0, isRead = false } = asked;
    const body = { bytes: bytes === "chunked" ? undefined : bytes, isRead };
    const entered = admission.enter(callerOf(asked), open, body);
    // Those that no test asks about may be refused.
    if (entered instanceof Promise) entered.catch(() => undefined);
    return { open, entered };
  };
  /** A slot that was given at once. */
  const slot = (asked: Asked = {}): Slot => {
    const { entered } = enter(asked);
    if (!(entered instanceof Slot)) return expect.fail("it has to wait");
    return entered;
  };
  const endTurn = async (): Promise<void> => {
    for (const end of ends.splice(0)) end();
    for (let turn = 0; turn < 4; turn++) await Promise.resolve();
  };
  /** Turns of the event loop, with so much time after each. */
  const turns = async (count: number, ms: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) {
      await endTurn();
      clock.advance(ms);
    }
  };
  const reasonOf = (run: () => unknown): unknown => {
    try {
      run();
    } catch (reason) {
      return reason instanceof OverloadFailure ? reason.reason : reason;
    }
    return undefined;
  };
  const outcome = async (entered: Slot | Promise<Slot>): Promise<unknown> => {
    try {
      return (await entered) instanceof Slot ? "slot" : "nothing";
    } catch (reason) {
      return reason instanceof OverloadFailure ? reason.reason : (reason as { code: string }).code;
    }
  };

  it("gives the slots of calls that wait for memory to others", async () => {
    [busyShare, delayMs] = [1, 200];
    const own: Slot[] = [];
    for (let turn = 0; turn < 3; turn++) {
      for (let call = 0; call < 32; call++) own.push(slot({ key: "own" }));
      await endTurn();
    }
    // The limit of completions in flight falls to those that there are, and below.
    await turns(20, 100);
    expect(admission.state().limit).toBeLessThanOrEqual(own.length);
    const other = enter({ key: "other" }).entered;
    expect(other).toBeInstanceOf(Promise);
    const memory = Promise.withResolvers<void>();
    for (const one of own.slice(10)) one.idleUntil(memory.promise);
    await endTurn();
    expect(await outcome(other)).toBe("slot");
    memory.resolve();
    await turns(1, 0);
    expect(enter({ key: "last" }).entered).toBeInstanceOf(Promise);
  });

  it("starts requests that arrived together for 10 ms in one turn of the event loop, and the others in the next ones", async () => {
    const slots = Array.from({ length: 5 }, (_, index) => slot({ key: `key${index}` }));
    let worked = 0;
    const work = (): void => {
      worked += 1;
      clock.advance(6);
    };
    const { signal } = new AbortController();
    const all = Promise.all(slots.map((one) => one.inTurn(() => one.work(work), signal)));
    await new Promise((resolve) => setImmediate(resolve));
    const after: number[] = [worked];
    for (let turn = 0; turn < 3; turn++) {
      await endTurn();
      after.push(worked);
    }
    expect(after).toEqual([2, 4, 5, 5]);
    await all;
  });

  it("gives a slot at once while there is room, without a promise", () => {
    expect(enter().entered).toBeInstanceOf(Slot);
    expect(admission.state()).toMatchObject({ waiting: 0, shedding: false });
  });

  it("begins no more than 32 in one turn of the event loop, and the others in the next ones", async () => {
    const all = Array.from({ length: 80 }, () => enter().entered);
    expect(all.filter((entered) => entered instanceof Slot)).toHaveLength(32);
    await endTurn();
    expect(admission.state()).toMatchObject({ waiting: 16 });
    await endTurn();
    expect(admission.state()).toMatchObject({ waiting: 0 });
  });

  it("never begins a call whose caller has left or whose deadline has passed, and rejects it with the reason", async () => {
    for (let count = 0; count < 32; count++) enter();
    const left = enter();
    const late = enter({ deadlineMs: 500 });
    const stays = enter();
    const told = Promise.all([outcome(left.entered), outcome(late.entered)]);
    left.open.leave();
    clock.advance(501);
    await endTurn();
    expect(await told).toEqual(["cancelled", "deadline_exceeded"]);
    expect(await outcome(stays.entered)).toBe("slot");
    expect(waited).toEqual([501]);
    expect(admission.state()).toMatchObject({ waiting: 0 });
  });

  it("refuses a call at once whose deadline is before its expected turn", () => {
    for (let count = 0; count < 132; count++) enter();
    expect(reasonOf(() => enter({ deadlineMs: 50 }))).toBe("queue");
    expect(reasonOf(() => enter({ deadlineMs: 5_000 }))).toBeUndefined();
  });

  it("refuses a key with too many waiting calls of its own, and not another one", () => {
    admission = create({ maxWaitMs: 2_500 });
    for (let count = 0; count < 32 + 2_500; count++) enter({ key: "loud" });
    expect(reasonOf(() => enter({ key: "loud" }))).toBe("queue");
    expect(reasonOf(() => enter({ key: "quiet" }))).toBeUndefined();
    expect(admission.state()).toMatchObject({ waiting: 2_501, refused: { queue: 1, calls: 0, memory: 0 } });
  });

  it("lets a lone key have four fifths of the slots, and the others theirs at once", async () => {
    const begun: unknown[] = [];
    for (let count = 0; count < 500; count++) {
      const { entered } = enter({ key: "loud" });
      void Promise.resolve(entered).then((one) => begun.push(one));
      if (count % 32 === 31) await endTurn();
    }
    await endTurn();
    await endTurn();
    expect(begun).toHaveLength(410);
    expect(enter({ key: "quiet" }).entered).toBeInstanceOf(Slot);
  });

  it("refuses a call that has waited for the longest time", async () => {
    for (let count = 0; count < 32; count++) enter();
    const waiting = Promise.all([outcome(enter().entered), outcome(enter({ key: "other" }).entered)]);
    // The event loop does not reach them.
    clock.advance(10_000);
    expect(admission.state().waiting).toBe(2);
    clock.advance(200);
    expect(await waiting).toEqual(["queue", "queue"]);
    expect(admission.state()).toMatchObject({ waiting: 0, shedding: true });
  });

  it("refuses when as many completions are in flight or wait as may be", () => {
    admission = create({ maxCalls: 5 });
    for (let count = 0; count < 5; count++) enter({ key: `key ${count}` });
    expect(reasonOf(() => enter({ key: "one more" }))).toBe("calls");
  });

  it("leaves a fifth of the calls to other keys, however many one key asks for", async () => {
    admission = create({ maxCalls: 1_000 });
    let own = 0;
    while (reasonOf(() => enter({ key: "greedy" })) === undefined) {
      own += 1;
      if (own % 32 === 0) await endTurn();
    }
    expect(own).toBeGreaterThan(700);
    expect(own).toBeLessThanOrEqual(800);
    expect(reasonOf(() => enter({ key: "other" }))).toBeUndefined();
  });

  it("leaves a fifth of the calls to other accounts, however many keys of one wait", async () => {
    admission = create({ maxCalls: 1_000 });
    slot({ key: "other", account: "other" });
    let own = 0;
    const fill = (): void => {
      for (let key = 0; key < 11; key++)
        while (reasonOf(() => enter({ key: `key ${key}`, account: "greedy" })) === undefined) own += 1;
    };
    // All calls but the first ones wait.
    fill();
    await endTurn();
    fill();
    expect(own).toBeGreaterThan(700);
    expect(own).toBeLessThanOrEqual(800);
    expect(reasonOf(() => enter({ key: "other", account: "other" }))).toBeUndefined();
  });

  describe("a key's and an account's completions at the same moment", () => {
    it("are limited before anything of them is read, without a wait", async () => {
      const one = { key: "one", limits: { concurrentRequests: 1 } };
      const first = slot(one);
      for (let count = 0; count < 2_000; count++) {
        expect(reasonOf(() => enter(one))).toMatchObject({
          code: "rate_limited",
          message: "Rate limit reached for this API key: 1 request at a time. Try again in 1 s.",
        });
      }
      expect(admission.state()).toMatchObject({ waiting: 0, shedding: false });
      expect(reasonOf(() => enter({ key: "other" }))).toBeUndefined();
      first.end();
      // What was refused has cost the key some of its share of the event loop.
      clock.advance(30_000);
      slot(one).end();
    });

    it("are counted for all keys of an account, by its own limit or the configured one", () => {
      admission = create({ accountConcurrency: () => 2 });
      slot({ key: "a" });
      slot({ key: "b" });
      expect(reasonOf(() => enter({ key: "c" }))).toMatchObject({
        code: "rate_limited",
        message: "Rate limit reached for this account: 2 requests at a time. Try again in 1 s.",
      });
      slot({ key: "c", accountLimits: { concurrentRequests: 3 } });
      slot({ key: "d", account: "other" });
    });

    it("count what arrives before its completion may wait, as over gRPC", () => {
      const one = { limits: { concurrentRequests: 1 } };
      const arriving = admission.receive(callerOf(one), 100);
      expect(reasonOf(() => admission.receive(callerOf(one), 100))).toMatchObject({ code: "rate_limited" });
      expect(reasonOf(() => enter(one))).toMatchObject({ code: "rate_limited" });
      arriving.end();
      arriving.end();
      slot(one);
    });
  });

  describe("where memory is small", () => {
    beforeEach(() => {
      admission = create({ largest: { body: 16 * MIB, answer: 32 * MIB } });
    });

    it("larger bodies are refused for good, as soon as their length is known", () => {
      const tooLarge = { code: "request_too_large", message: expect.stringContaining("16 MiB") };
      expect(reasonOf(() => enter({ bytes: 17 * MIB }))).toMatchObject(tooLarge);
      expect(reasonOf(() => admission.receive(callerOf({}), 17 * MIB))).toMatchObject(tooLarge);
      const chunked = slot({ bytes: "chunked" });
      chunked.received(16 * MIB);
      expect(reasonOf(() => chunked.received(16 * MIB + 1))).toMatchObject(tooLarge);
    });

    it("larger answers are refused before their providers are asked", () => {
      const one = slot({});
      one.holdAnswer(32 * MIB);
      expect(reasonOf(() => one.holdAnswer(33 * MIB))).toMatchObject({
        code: "request_too_large",
        message: expect.stringContaining("Send fewer inputs"),
      });
    });
  });

  describe("bytes of bodies that are arriving", () => {
    const arrivingBytes = { key: 48 * MIB, account: 96 * MIB, process: 160 * MIB, held: 1e12 };
    beforeEach(() => {
      admission = create({ arrivingBytes });
    });

    it("let a key wait for its own, and no other one", async () => {
      const first = slot({ bytes: 31 * MIB });
      const second = enter({ bytes: 31 * MIB });
      await endTurn();
      expect(admission.state().waiting).toBe(1);
      slot({ key: "other", bytes: 31 * MIB });
      first.arrived();
      await turns(2, 100);
      expect(await outcome(second.entered)).toBe("slot");
    });

    it("are refused of a key that holds most, while bodies in flight hold more than the process may, also when they have arrived", () => {
      admission = create({ arrivingBytes: { ...arrivingBytes, held: 100 * MIB } });
      for (let count = 0; count < 4; count++) slot({ bytes: 31 * MIB }).arrived();
      expect(reasonOf(() => enter({ bytes: 1 }))).toBe("memory");
      // Of many keys with nothing, one with little holds more than the average.
      for (let count = 0; count < 20; count++) slot({ key: `small ${count}` }).arrived();
      for (let count = 0; count < 2; count++) slot({ key: "other", bytes: 6 * MIB }).arrived();
      slot({ key: "other", bytes: 31 * MIB });
    });

    it("refuse the key with 429 when it has waited for as long as may be", async () => {
      slot({ bytes: 31 * MIB });
      const second = enter({ bytes: 31 * MIB });
      await turns(102, 100);
      await expect(second.entered).rejects.toMatchObject({
        code: "rate_limited",
        message: expect.stringContaining("48 MiB"),
      });
      expect(admission.state()).toMatchObject({ shedding: false, waiting: 0 });
    });

    it("are counted for all keys of an account", async () => {
      for (const key of ["a", "b", "c"]) slot({ key, bytes: 31 * MIB });
      const more = enter({ key: "d", bytes: 31 * MIB });
      slot({ key: "e", account: "other", bytes: 31 * MIB });
      await turns(102, 100);
      await expect(more.entered).rejects.toMatchObject({ message: expect.stringContaining("this account") });
    });

    it("are limited for the process, too: then all keys wait, and are refused with 503", async () => {
      for (let count = 0; count < 5; count++) slot({ key: `${count}`, account: `${count}`, bytes: 31 * MIB });
      const more = enter({ key: "more", account: "more", bytes: 31 * MIB });
      slot({ key: "small", account: "small", bytes: 1000 });
      await turns(102, 100);
      expect(await outcome(more.entered)).toBe("memory");
    });

    it("are charged as they come where no length is declared", () => {
      const first = slot({ bytes: "chunked" });
      first.received(40 * MIB);
      const second = slot({ bytes: "chunked" });
      second.received(15 * MIB);
      expect(reasonOf(() => second.received(24 * MIB))).toMatchObject({ code: "rate_limited" });
      second.end();
      // A single body always may arrive.
      first.received(60 * MIB);
    });

    it.each([
      ["of the account", { key: 8 * MIB, account: 16 * MIB, process: 64 * MIB, held: 1e12 }, "only"],
      ["of the process", { key: 4 * MIB, account: 8 * MIB, process: 16 * MIB, held: 1e12 }, "other"],
    ])(
      "of one body beyond the limits %s leave room for smaller ones, and not for another like it",
      async (_, bytes, account) => {
        admission = create({ arrivingBytes: bytes });
        const large = slot({ key: "large", account: "only", bytes: 31 * MIB });
        for (const key of ["a", "b"]) slot({ key, account, bytes: MIB }).arrived();
        const waiting = enter({ key: "second", account, bytes: 31 * MIB });
        await endTurn();
        expect(admission.state().waiting).toBe(1);
        slot({ key: "c", account, bytes: MIB });
        large.arrived();
        await turns(2, 100);
        expect(await outcome(waiting.entered)).toBe("slot");
      },
    );

    it("of large answers are limited together until the call ends, and keep no request of the key waiting", () => {
      const first = slot({ bytes: 1000 });
      first.arrived();
      const second = slot({ bytes: 1000 });
      second.arrived();
      first.holdAnswer(60 * MIB);
      expect(reasonOf(() => second.holdAnswer(40 * MIB))).toMatchObject({
        code: "rate_limited",
        message: expect.stringContaining("at most 48 MiB of answers") as string,
      });
      slot({ bytes: 1000 }).end();
      const other = slot({ key: "other", account: "other", bytes: 1000 });
      other.arrived();
      other.holdAnswer(MIB);
      first.end();
      second.holdAnswer(40 * MIB);
      for (const one of [second, other]) one.end();
      const last = slot({ bytes: 1000 });
      last.arrived();
      expect(reasonOf(() => last.holdAnswer(60 * MIB))).toBeUndefined();
    });

    it("of answers that are larger than expected count as well, and refuse only later ones", () => {
      const [first, second] = [slot({ bytes: 1000 }), slot({ bytes: 1000 })];
      for (const one of [first, second]) one.arrived();
      first.holdAnswer(MIB);
      second.holdAnswer(MIB);
      first.answered(MIB / 2);
      second.answered(60 * MIB);
      const last = slot({ bytes: 1000 });
      last.arrived();
      expect(reasonOf(() => last.holdAnswer(40 * MIB))).toMatchObject({ code: "rate_limited" });
      second.end();
      last.holdAnswer(40 * MIB);
    });

    it("of one answer as large as the limit of its account leave room for smaller ones of other keys", () => {
      admission = create({ arrivingBytes: { key: 8 * MIB, account: 16 * MIB, process: 32 * MIB, held: 1e12 } });
      const unread = slot({ key: "unread", bytes: 1000 });
      unread.holdAnswer(48 * MIB);
      const other = slot({ key: "other", bytes: 1000 });
      other.holdAnswer(MIB);
      expect(reasonOf(() => slot({ key: "third", bytes: 1000 }).holdAnswer(48 * MIB))).toMatchObject({
        code: "rate_limited",
        message: expect.stringContaining("this account: at most 16 MiB of answers") as string,
      });
      unread.end();
      slot({ key: "third", bytes: 1000 }).holdAnswer(48 * MIB);
    });

    it("of an answer leave room for other keys, however large a request says that it will be", () => {
      const first = slot({ bytes: 1000 });
      first.arrived();
      first.holdAnswer(2_048 * 2 ** 31 * 8);
      slot({ key: "other", account: "other", bytes: 31 * MIB });
      first.end();
      expect(reasonOf(() => slot({ bytes: 31 * MIB }))).toBeUndefined();
    });

    it("of waiting requests are bounded as well", () => {
      slot({ bytes: 31 * MIB });
      let waiting = 0;
      while (reasonOf(() => enter({ bytes: 31 * MIB })) === undefined) waiting += 1;
      expect(waiting).toBe((48 * MIB) / (64 * 1024));
    });

    describe("that have been read before their request waits, as over gRPC", () => {
      const inDebt = (key: string): void => {
        const one = slot({ key });
        one.work(() => clock.advance(10_000));
        one.end();
      };

      it("are memory that the key holds, and let nothing more arrive", async () => {
        inDebt("dear");
        slot({ key: "other" });
        const first = enter({ key: "dear", bytes: 28 * MIB, isRead: true });
        expect(first.entered).toBeInstanceOf(Promise);
        const dear = callerOf({ key: "dear" });
        expect(reasonOf(() => admission.receive(dear, 28 * MIB))).toMatchObject({ code: "rate_limited" });
        expect(reasonOf(() => enter({ key: "dear", bytes: 28 * MIB, isRead: true }))).toMatchObject({
          code: "rate_limited",
        });
        // Longer than an account is remembered that holds nothing.
        await turns(20, 100);
        for (const key of ["a", "b"]) slot({ key, bytes: 31 * MIB });
        expect(reasonOf(() => admission.receive(callerOf({ key: "c" }), 31 * MIB))).toMatchObject({
          message: expect.stringContaining("this account"),
        });
      });

      it("are released when their request has its turn, or its caller leaves", async () => {
        inDebt("dear");
        slot({ key: "other" });
        const left = enter({ key: "dear", bytes: 28 * MIB, isRead: true });
        left.open.leave();
        await expect(left.entered).rejects.toMatchObject({ code: "cancelled" });
        const late = enter({ key: "dear", bytes: 28 * MIB, isRead: true });
        await turns(102, 100);
        await expect(late.entered).rejects.toMatchObject({ code: "rate_limited" });
        await turns(400, 100);
        const next = slot({ key: "dear", bytes: 47 * MIB });
        next.end();
        for (const holding of Object.values(next.holders))
          expect(holding).toMatchObject({ arrivingBytes: 0, heldBytes: 0, waitingBytes: 0 });
      });
    });
  });

  describe("work for a key's requests", () => {
    const busy = (asked: Asked, ms: number): void => {
      const one = slot(asked);
      one.work(() => clock.advance(ms));
      one.end();
    };

    it("delays the key that has had more than its share, and not the others", async () => {
      slot({ key: "other" }).end();
      clock.advance(100);
      slot({ key: "other" });
      busy({ key: "dear" }, 300);
      const waits = enter({ key: "dear" });
      expect(waits.entered).toBeInstanceOf(Promise);
      slot({ key: "other" });
      // A quarter of the time is for its debt.
      await turns(8, 100);
      expect(admission.state().waiting).toBe(1);
      await turns(4, 100);
      expect(await outcome(waits.entered)).toBe("slot");
    });

    it("does not count calls that wait for the debt of their key as work of the event loop", async () => {
      slot({ key: "other" });
      const own = Array.from({ length: 8 }, () => slot({ key: "dear" }));
      own[0]!.work(() => clock.advance(40));
      const rested: boolean[] = [];
      for (const one of own) {
        const idleUntil = one.idleUntil.bind(one);
        one.idleUntil = (until) => {
          rested.push(true);
          idleUntil(until);
        };
      }
      let worked = 0;
      const { signal } = new AbortController();
      const all = Promise.all(own.map((one) => one.inTurn(() => (worked += 1), signal)));
      await new Promise((resolve) => setImmediate(resolve));
      expect([rested.length, worked]).toEqual([8, 0]);
      await turns(2, 100);
      await all;
      expect(worked).toBe(8);
    });

    it("is counted with the bytes of the body, once, where it parses the body", () => {
      const one = slot({ bytes: MIB });
      one.parse(() => clock.advance(1));
      one.work(() => clock.advance(2));
      expect(one.holders.key.debtMs).toBeCloseTo(1 + 2 + MIB * READ_MS_PER_BYTE);
    });

    it("is no overload: too many calls of the key are refused with 429, and others may wait as long as before", async () => {
      admission = create({ maxWaitMs: 2_500 });
      slot({ key: "other" });
      busy({ key: "dear" }, 2_000);
      for (let count = 0; count < 600; count++) enter({ key: "dear" });
      await turns(20, 100);
      for (let count = 0; count < 2_000; count++) reasonOf(() => enter({ key: "dear" }));
      expect(reasonOf(() => enter({ key: "dear" }))).toMatchObject({ code: "rate_limited" });
      expect(admission.state()).toMatchObject({ shedding: false, refused: { queue: 0 } });
    });

    it("costs a lone key nothing", async () => {
      for (let count = 0; count < 20; count++) {
        busy({ key: "lone" }, 300);
        await turns(1, 0);
      }
      expect(enter({ key: "lone" }).entered).toBeInstanceOf(Slot);
    });

    it("is also what its own limits refuse", async () => {
      const one = { key: "one", limits: { concurrentRequests: 1 } };
      slot(one);
      slot({ key: "other" });
      clock.advance(100);
      for (let count = 0; count < 60; count++) {
        reasonOf(() => enter(one));
        admission.refusedByLimits({ keyFamilyId: "one" });
      }
      const waits = enter(one);
      expect(waits.entered).toBeInstanceOf(Promise);
      await turns(3, 100);
      expect(await outcome(waits.entered)).toBe("rate_limited");
    });
  });

  describe("while memory is short", () => {
    it("refuses the key that holds the bytes, says so once, and lets the others begin", () => {
      const large = slot({ key: "large", bytes: 20 * MIB });
      large.arrived();
      slot({ key: "small", bytes: 1000 });
      share = 0.96;
      clock.advance(500);
      for (let count = 0; count < 3; count++) expect(reasonOf(() => enter({ key: "large" }))).toBe("memory");
      slot({ key: "small", bytes: 1000 });
      slot({ key: "new", bytes: 1000 });
      share = 0.93;
      clock.advance(500);
      expect(reasonOf(() => enter({ key: "large" }))).toBe("memory");
      share = 0.5;
      clock.advance(500);
      slot({ key: "large" });
      expect(changes.map((change) => change.what)).toEqual(["memory", "began", "memory"]);
      clock.advance(11_000);
      expect(changes.at(-1)).toEqual({ what: "ended", refused: 4 });
    });

    it("begins one completion when none is in flight: garbage is found only when something is allocated", () => {
      share = 0.96;
      const first = slot();
      clock.advance(500);
      expect(reasonOf(() => enter())).toBe("memory");
      first.end();
      slot();
      expect(reasonOf(() => enter())).toBe("memory");
    });
  });

  it("refuses what waits, and leaves no timer behind, when it is closed", async () => {
    for (let count = 0; count < 32; count++) enter();
    const waits = enter();
    admission.close();
    expect(await outcome(waits.entered)).toBe("queue");
    expect(clock.pending).toBe(0);
  });

  it("rejects a call that had ended before at once, with the reason", () => {
    const left = calls.open(undefined);
    left.leave();
    expect(reasonOf(() => admission.enter(callerOf({}), left, { bytes: 0 }))).toMatchObject({ code: "cancelled" });
    expect(reasonOf(() => enter({ deadlineMs: 0 }))).toMatchObject({ code: "deadline_exceeded" });
  });

  it("refuses callers with different times to wait, all of them a second or more", () => {
    const waits = new Set(Array.from({ length: 8 }, () => OverloadFailure.because("queue").retryAfterMs));
    expect(waits.size).toBe(8);
    expect(Math.min(...[...waits].map(Number))).toBeGreaterThanOrEqual(1_000);
    expect(OverloadFailure.because("memory").reason).toBe("memory");
  });

  it("leaves no timer and no key behind when everything is over", () => {
    slot({ bytes: 1000 }).end();
    clock.advance(3_000);
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
const SIX = { firstMs: 250, chunks: 400, intervalMs: 15 };
const WHOLE = { firstMs: 100, chunks: 0, intervalMs: 0 };
const SLOW_WHOLE = { firstMs: 2_000, chunks: 0, intervalMs: 0 };

describe.each([
  ["short streams", SHORT],
  ["streams that begin late", LATE],
  ["long streams", LONG],
  ["streams of six seconds", SIX],
  ["whole answers", WHOLE],
  ["whole answers of slow models", SLOW_WHOLE],
])("with more %s than a process can do", (_, shape) => {
  it.each(shape.chunks === 0 ? [2] : [2, 10])(
    "nearly as much is answered as it can do, of %i times that",
    async (times) => {
      const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
      const flood = [{ key: "flood", perSecond: capacity(shape) * times }];
      await model.run(20, flood);
      const before = model.servedTotal;
      await model.run(25, flood);
      const { servedMs } = model.told.get("flood")!;
      // Refusals take their time, too.
      const left = 1 - (times - 1) * capacity(shape) * (COSTS.refusal / 1000);
      expect((model.servedTotal - before) / 25).toBeGreaterThan(0.8 * left * capacity(shape));
      const aloneMs = shape.firstMs + shape.chunks * shape.intervalMs;
      expect(quantile(servedMs, 0.5)).toBeLessThan(aloneMs * 2 + OPTIONS.maxWaitMs / 2);
    },
  );

  it("refuses none at half of it", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
    await model.run(10, [{ key: "service", perSecond: capacity(shape) / 2 }]);
    expect(model.told.get("service")!.refusedMs).toEqual([]);
  });
});

describe("under ten times of what a process can do", () => {
  it("refusals are quick", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    const flood = { key: "flood", perSecond: capacity(SHORT) * 10 };
    await model.run(6, [flood]);
    await model.run(20, [flood]);
    expect(quantile(model.told.get("flood")!.refusedMs, 0.99)).toBeLessThan(100);
  });

  it.each([
    ["short streams", SHORT],
    ["streams of six seconds", SIX],
  ])("a key that sends little is not refused, and does not wait, beside %s", async (_name, shape) => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape });
    const flood = { key: "flood", perSecond: capacity(shape) * 10 };
    const quiet = Array.from({ length: 20 }, (_, index) => ({
      key: `quiet ${index}`,
      perSecond: capacity(shape) / 100,
    }));
    await model.run(6, [flood, ...quiet]);
    await model.run(20, [flood, ...quiet]);
    const told = quiet.map(({ key }) => model.told.get(key)!);
    expect(told.flatMap(({ refusedMs }) => refusedMs)).toEqual([]);
    const aloneMs = shape.firstMs + shape.chunks * shape.intervalMs;
    const servedMs = told.flatMap((one) => one.servedMs);
    expect(quantile(servedMs, 0.99)).toBeLessThan(1.5 * aloneMs);
  });
});

describe("beside completions of another kind", () => {
  const half = { key: "service", perSecond: capacity(SHORT) / 3 };

  it("those of a model that hangs cause no refusals of others", async () => {
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
    const aloneMs = SHORT.firstMs + SHORT.chunks * SHORT.intervalMs;
    expect(quantile(served, 0.5)).toBeLessThan(2 * aloneMs + OPTIONS.maxWaitMs / 2);
    expect(quantile(model.turnsMs, 0.99)).toBeLessThan(100);
  });

  it("a flood that comes at once is refused quickly after two seconds", async () => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: SHORT });
    await model.run(30, [{ key: "service", perSecond: 20 }]);
    const flood = [{ key: "flood", perSecond: capacity(SHORT) * 10 }];
    await model.run(2, flood);
    await model.run(10, flood);
    expect(quantile(model.told.get("flood")!.refusedMs, 0.99)).toBeLessThan(100);
  });
});

it("thousands of quiet streams stay open and cause no refusals", async () => {
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

describe("a closed loop", () => {
  it.each([512, 2_048])("of %i connections is served without a refusal", async (connections) => {
    const model = new LoopModel(OPTIONS, { costs: COSTS, shape: { firstMs: 5, chunks: 0, intervalMs: 0 } });
    await model.runClosed(20, connections);
    const { begun, refusedMs, servedMs } = model.told.get("closed")!;
    expect(refusedMs).toEqual([]);
    expect(begun).toBeGreaterThan(0.85 * 20 * capacity(WHOLE));
    expect(quantile(servedMs, 0.99)).toBeLessThan((2 * connections * 1000) / capacity(WHOLE));
  });
});

describe("a process whose code is not compiled yet, five times as slow,", () => {
  const costs = { ...COSTS, start: 5 * COSTS.start, end: 5 * COSTS.end };
  const shape = { firstMs: 5, chunks: 0, intervalMs: 0 };

  it("serves a closed loop of 2,048 connections without a refusal", async () => {
    const model = new LoopModel(OPTIONS, { costs, shape });
    await model.runClosed(20, 2_048);
    expect(model.told.get("closed")!.refusedMs).toEqual([]);
  });

  it("serves a burst of 2,048 without a refusal, in the time that they take", async () => {
    const model = new LoopModel(OPTIONS, { costs, shape });
    await model.run(0.1, [{ key: "burst", perSecond: 20_480 }]);
    await model.run(10, []);
    const { refusedMs, servedMs } = model.told.get("burst")!;
    expect([refusedMs, servedMs.length]).toEqual([[], 2_048]);
    expect(quantile(servedMs, 0.99)).toBeLessThan(1.2 * 2_048 * (costs.start + costs.end));
  });
});

it("twice of what a process can do fills the queue once, and then waits for a quarter of the longest wait", async () => {
  const model = new LoopModel(OPTIONS, { costs: COSTS, shape: WHOLE });
  const flood = [{ key: "flood", perSecond: 2 * capacity(WHOLE) }];
  await model.run(4, flood);
  expect(model.told.get("flood")!.refusedMs).toEqual([]);
  await model.run(16, flood);
  await model.run(10, flood);
  const { servedMs, refusedMs } = model.told.get("flood")!;
  expect(quantile(servedMs, 0.99)).toBeLessThan(0.3 * OPTIONS.maxWaitMs);
  expect(quantile(refusedMs, 1 - 1e-9)).toBeLessThan(100);
});

it("a burst of fifteen hundred whole answers on an idle process is served", async () => {
  const model = new LoopModel(OPTIONS, { costs: COSTS, shape: WHOLE });
  await model.run(1, [{ key: "burst", perSecond: 1_500 }]);
  await model.run(3, []);
  expect(model.told.get("burst")!.refusedMs).toEqual([]);
  expect(model.servedTotal).toBe(1_500);
});
