import { beforeEach, describe, expect, it } from "vitest";
import { Calls, type CallSlot, type OpenCall } from "../../src/inbound/calls.ts";
import { PATIENCE_MS } from "../../src/scheduling/answer-hold.ts";
import { AnswerMemory } from "../../src/scheduling/answer-memory.ts";
import { somebody } from "../support/core-ports.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

let clock: FakeClock;
let calls: Calls;

beforeEach(() => {
  clock = new FakeClock();
  calls = new Calls(clock);
});

describe("a call", () => {
  it("whose caller leaves is cancelled", () => {
    const call = calls.open(undefined);
    call.leave();
    expect(call.signal.reason).toMatchObject({ code: "cancelled" });
  });

  it("whose deadline passes ends with that reason, at that time and not before", () => {
    const call = calls.open(1_000);
    clock.advance(999);
    expect(call.signal.aborted).toBe(false);
    clock.advance(1);
    expect(call.signal.reason).toMatchObject({ code: "deadline_exceeded" });
  });

  it("whose caller leaves just before its deadline was ended by the deadline", () => {
    const call = calls.open(1_000);
    clock.advance(990);
    call.leave();
    expect(call.signal.reason).toMatchObject({ code: "deadline_exceeded" });
  });

  it("whose caller leaves long before its deadline is cancelled", () => {
    const call = calls.open(1_000);
    clock.advance(900);
    call.leave();
    expect(call.signal.reason).toMatchObject({ code: "cancelled" });
  });

  it.each([0, -50])("with a deadline of %s ms is over at once", (deadlineMs) => {
    const call = calls.open(deadlineMs);
    clock.advance(0);
    expect(call.signal.reason).toMatchObject({ code: "deadline_exceeded" });
  });

  it.each([Infinity, Number.MAX_SAFE_INTEGER, 2 ** 31])("with a deadline of %s ms has one day", (deadlineMs) => {
    const call = calls.open(deadlineMs);
    clock.advance(24 * 60 * 60 * 1_000 - 1);
    expect(call.signal.aborted).toBe(false);
    clock.advance(1);
    expect(call.signal.aborted).toBe(true);
  });

  it.each([
    [949, "cancelled"],
    [951, "deadline_exceeded"],
  ])("with a deadline of 1,000 ms whose caller leaves after %s ms is %s", (afterMs, code) => {
    const call = calls.open(1_000);
    clock.advance(afterMs);
    call.leave();
    expect(call.signal.reason).toMatchObject({ code });
  });

  it("keeps the first reason", () => {
    const call = calls.open(1_000);
    call.leave();
    clock.advance(1_000);
    calls.abortAll();
    expect(call.signal.reason).toMatchObject({ code: "cancelled" });
  });

  it("that is closed is not ended by anything any more, and leaves no timer", () => {
    const call = calls.open(1_000);
    call.close();
    call.leave();
    calls.abortAll();
    expect(clock.pending).toBe(0);
    expect(call.signal.aborted).toBe(false);
  });

  it("whose answer is complete is ended by its deadline no more, and by everything else as before", () => {
    const [late, left, stopped] = [calls.open(1_000), calls.open(1_000), calls.open(1_000)];
    const early = late.answering();
    clock.advance(1_000);
    for (const call of [late, left, stopped]) expect(call.signal.aborted).toBe(true);
    expect(early.signal.aborted).toBe(false);
    expect(late.answering().signal).toBe(early.signal);

    left.leave();
    expect(left.answering().signal.reason).toMatchObject({ code: "cancelled" });
    early.leave();
    expect(early.signal.reason).toMatchObject({ code: "cancelled" });
    const answering = stopped.answering();
    calls.abortAll();
    expect(answering.signal.reason).toMatchObject({ code: "overloaded" });
  });

  it("counts until it is closed, even when its caller has left", () => {
    const [one, two] = [calls.open(undefined), calls.open(undefined)];
    expect(calls.active).toBe(2);
    one.leave();
    expect(calls.active).toBe(2);
    one.close();
    one.close();
    expect(calls.active).toBe(1);
    two.close();
    expect(calls.active).toBe(0);
  });
});

describe("a drain", () => {
  it("waits for no call when there is none", async () => {
    await expect(calls.idle()).resolves.toBeUndefined();
  });

  it("waits for the last call", async () => {
    const [one, two] = [calls.open(undefined), calls.open(undefined)];
    let over = 0;
    const drains = [calls.idle(), calls.idle()].map((idle) => idle.then(() => (over += 1)));
    one.close();
    await settle();
    expect(over).toBe(0);
    two.close();
    await Promise.all(drains);
    expect(over).toBe(2);
  });

  it("whose time is up ends the calls in flight as a shutdown, which can be tried again", () => {
    const call = calls.open(60_000);
    calls.abortAll();
    expect(call.signal.reason).toMatchObject({ code: "overloaded", message: "The gateway is shutting down." });
  });
});

describe("the large answers of a call", () => {
  const MIB = 1024 * 1024;
  const never = new AbortController().signal;
  const source = { provider: {}, abandon: () => undefined };
  let memory: AnswerMemory;
  beforeEach(() => {
    memory = new AnswerMemory({ key: MIB, account: MIB, provider: MIB, process: MIB }, clock);
    calls = new Calls(clock, memory);
  });
  const openFor = (keyFamilyId: string): OpenCall => {
    const call = calls.open(undefined);
    call.authenticated({ ...somebody, keyFamilyId });
    return call;
  };

  it("count for its key until it is closed, when they are read", () => {
    const call = openFor("k");
    const answer = call.openAnswer(source)!;
    expect(answer.take(3 * MIB, never)).toBeUndefined();
    answer.read();
    expect(memory.bytes).toBe(3 * MIB);
    call.close();
    expect(memory.bytes).toBe(0);
  });

  it("count until they are read, when the call is closed before", () => {
    const call = openFor("k");
    const answer = call.openAnswer(source)!;
    expect(answer.take(3 * MIB, never)).toBeUndefined();
    call.close();
    const later = call.openAnswer(source)!;
    expect(later.take(MIB, never)).toBeInstanceOf(Promise);
    answer.read();
    expect(memory.bytes).toBe(MIB);
    later.read();
    expect(memory.bytes).toBe(0);
  });

  it("are kept from event to event if all of them are written at the end", () => {
    const call = openFor("k");
    call.keepAnswers();
    const answer = call.openAnswer(source)!;
    void answer.take(2 * MIB, never);
    answer.passed();
    void answer.take(2 * MIB, never);
    expect(memory.bytes).toBe(4 * MIB);
  });

  it("end it when its caller does not read them while another key waits", () => {
    const call = openFor("slow");
    const answer = call.openAnswer(source)!;
    void answer.take(4 * MIB, never);
    answer.read();
    void openFor("k").openAnswer(source)!.take(MIB, never);
    clock.advance(PATIENCE_MS - 1_000);
    call.answering().wrote(MIB);
    clock.advance(2_000);
    expect(call.signal.aborted).toBe(false);
    clock.advance(2_000);
    expect(call.signal.reason).toMatchObject({ code: "cancelled" });
    expect([memory.ended, memory.waiting]).toEqual([1, 0]);
  });

  it("do not count its slot as working while they wait", () => {
    const rests: Promise<void>[] = [];
    const slot = { idleUntil: (until: Promise<void>) => void rests.push(until) } as unknown as CallSlot;
    void openFor("k")
      .openAnswer(source)!
      .take(3 * MIB, never);
    const call = openFor("k");
    call.entered(slot);
    const waiting = call.openAnswer(source)!.take(MIB, never);
    expect(rests).toEqual([waiting]);
  });

  it("are not counted for a call without a key", () => {
    expect(calls.open(undefined).openAnswer(source)).toBeUndefined();
  });
});
