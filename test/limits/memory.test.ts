import { describe, expect, it } from "vitest";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { LEASE_MS } from "../../src/limits/rates.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { demandOf, subjectOf } from "./demands.ts";
import { describeRateStore } from "./rate-store-contract.ts";

describeRateStore("memory", async () => ({
  stores: [createMemoryRates({ clock: new FakeClock(), burstMs: 60_000 })],
}));

describe("rates in memory", () => {
  it("frees a slot whose lease is not renewed", async () => {
    const clock = new FakeClock();
    const rates = createMemoryRates({ clock, burstMs: 60_000 });
    const key = subjectOf("key:1", { concurrentRequests: 1 });
    await rates.take(demandOf([key]));
    clock.advance(LEASE_MS - 1);
    expect((await rates.take(demandOf([key]))).admitted).toBe(false);
    clock.advance(1);
    expect((await rates.take(demandOf([key]))).admitted).toBe(true);
  });

  it("counts exactly across a raised limit: a request from before lowers nothing, and returns what it took", async () => {
    const clock = new FakeClock();
    const rates = createMemoryRates({ clock, burstMs: 60_000 });
    const [before, after] = [100, 6000].map((tokensPerMinute) => subjectOf("account:1", { tokensPerMinute }));
    // More than there is takes all.
    const [first, second] = [demandOf([before!], 500), demandOf([before!], 100)];
    await rates.take(first);
    clock.advance(60_000);
    await rates.take(second);
    const levelOf = async () => (await rates.take(demandOf([after!], 0))).levels[0]!.tokens!.level;
    clock.advance(20_000);
    expect(await levelOf()).toBe(2000);
    await rates.release({ id: first.id, subjects: [before!], reservedTokens: 500, usedTokens: 40 });
    expect(await levelOf()).toBe(2060);
    await rates.release({ id: second.id, subjects: [before!], reservedTokens: 100, usedTokens: 300 });
    expect(await levelOf()).toBe(1860);
  });

  it("counts exactly across a lowered limit: a request from before does not refill at its own rate", async () => {
    const clock = new FakeClock();
    const rates = createMemoryRates({ clock, burstMs: 60_000 });
    const [before, after] = [6000, 60].map((tokensPerMinute) => subjectOf("account:1", { tokensPerMinute }));
    const [first, second] = [demandOf([before!], 3000), demandOf([before!], 3000)];
    for (const demand of [first, second]) await rates.take(demand);
    const levelOf = async () => (await rates.take(demandOf([after!], 0))).levels[0]!.tokens!.level;
    expect(await levelOf()).toBe(0);
    clock.advance(10_000);
    await rates.release({ id: first.id, subjects: [before!], reservedTokens: 3000, usedTokens: 3000 });
    expect(await levelOf()).toBe(10);
    await rates.release({ id: second.id, subjects: [before!], reservedTokens: 3000, usedTokens: 2980 });
    expect(await levelOf()).toBe(30);
  });

  it("removes the least recently used subjects beyond the maximum", async () => {
    const rates = createMemoryRates({ clock: new FakeClock(), burstMs: 60_000, maxSubjects: 2 });
    const [a, b, c] = ["key:a", "key:b", "key:c"].map((name) => subjectOf(name, { requestsPerMinute: 1 }));
    for (const subject of [a!, b!, c!]) expect((await rates.take(demandOf([subject]))).admitted).toBe(true);
    expect((await rates.take(demandOf([b!]))).admitted).toBe(false);
    expect((await rates.take(demandOf([c!]))).admitted).toBe(false);
    expect((await rates.take(demandOf([a!]))).admitted).toBe(true);
  });

  it("keeps keys apart from any number of end users", async () => {
    const rates = createMemoryRates({ clock: new FakeClock(), burstMs: 60_000, maxSubjects: 2 });
    const isAdmitted = async (subject: string) =>
      (await rates.take(demandOf([subjectOf(subject, { requestsPerMinute: 1 })]))).admitted;
    expect(await isAdmitted("key:a")).toBe(true);
    for (const name of ["1", "2", "3"]) expect(await isAdmitted(`end_user:a:${name}`)).toBe(true);
    expect(await isAdmitted("end_user:a:3")).toBe(false);
    expect(await isAdmitted("end_user:a:1")).toBe(true);
    expect(await isAdmitted("key:a")).toBe(false);
  });
});
