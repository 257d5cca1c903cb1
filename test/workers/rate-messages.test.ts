import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMemoryRates } from "../../src/limits/memory.ts";
import type { RateDemand } from "../../src/limits/rates.ts";
import { type Borrower, ParentRates } from "../../src/workers/parent-rates.ts";
import { type RateAnswer, RateEncoder, type RateMessage, type RateStep } from "../../src/workers/rate-messages.ts";
import { FakeClock } from "../support/fake-clock.ts";

const BURST_MS = 60_000;

const limit = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined });
const demand = fc.record({
  subjects: fc.uniqueArray(
    fc.record({
      subject: fc.constantFrom("key:a", "key:b", "account:c"),
      accountId: fc.constant(""),
      requestsPerMinute: limit,
      tokensPerMinute: limit,
      concurrentRequests: limit,
    }),
    { minLength: 1, maxLength: 3, selector: ({ subject }) => subject },
  ),
  tokens: fc.integer({ min: 0, max: 9 }),
});
/** Demands, whether each is released at once, and the tokens it used. */
const history = fc.array(fc.tuple(demand, fc.boolean(), fc.integer({ min: 0, max: 9 })), { maxLength: 30 });

const workerOf = (name: string): Borrower => ({ name, ask: () => Promise.reject(new Error("has no credit")) });

const admits = (answer: RateAnswer): boolean => answer !== null && "admitted" in answer && answer.admitted;

const overTheChannel = (message: RateMessage): RateMessage => JSON.parse(JSON.stringify(message)) as RateMessage;

describe("rates in the parent process", () => {
  it("are decided as by a single process, for any sequence of demands", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const clock = new FakeClock();
        const alone = createMemoryRates({ clock, burstMs: BURST_MS });
        const parent = new ParentRates({ clock, store: createMemoryRates({ clock, burstMs: BURST_MS }) });
        const encoder = new RateEncoder(BURST_MS);
        const say = async (step: RateStep): Promise<RateAnswer> => {
          const reply = await parent.perform(workerOf("1.1"), overTheChannel(encoder.toMessage([step])));
          return encoder.readReply([step], reply)[0]!;
        };
        for (const [index, [asked, isGivenBack, usedTokens]] of steps.entries()) {
          const take: RateDemand = { id: `id-${index}`, ...asked };
          const expected = await alone.take(take);
          expect(await say({ take })).toEqual(expected);
          if (!expected.admitted || !isGivenBack) continue;
          await alone.release({ id: take.id, subjects: take.subjects, reservedTokens: take.tokens, usedTokens });
          expect(await say({ release: { id: take.id, usedTokens } })).toBeNull();
        }
      }),
    );
  });

  it("free the concurrency slots of a worker that has ended, and no others", async () => {
    const clock = new FakeClock();
    const parent = new ParentRates({ clock, store: createMemoryRates({ clock, burstMs: BURST_MS }) });
    const encoders = { "1.1": new RateEncoder(BURST_MS), "2.2": new RateEncoder(BURST_MS) };
    const isAdmitted = async (worker: keyof typeof encoders, id: string): Promise<boolean> => {
      const limits = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrentRequests: 2 };
      const steps = [{ take: { id, tokens: 1, subjects: [{ subject: "key:a", accountId: "a", ...limits }] } }];
      const reply = await parent.perform(workerOf(worker), encoders[worker].toMessage(steps));
      return admits(encoders[worker].readReply(steps, reply)[0]!);
    };
    expect(await isAdmitted("1.1", "a")).toBe(true);
    expect(await isAdmitted("2.2", "b")).toBe(true);
    expect(await isAdmitted("2.2", "c")).toBe(false);
    await parent.leave(workerOf("1.1"));
    expect(await isAdmitted("2.2", "d")).toBe(true);
    expect(await isAdmitted("2.2", "e")).toBe(false);
  });

  it("still work after more subjects than MAX_SUBJECTS", async () => {
    const clock = new FakeClock();
    const parent = new ParentRates({ clock, store: createMemoryRates({ clock, burstMs: BURST_MS }) });
    const encoder = new RateEncoder(BURST_MS);
    const limits = { requestsPerMinute: 1, tokensPerMinute: undefined, concurrentRequests: undefined };
    const ask = async (subject: string, id: string): Promise<boolean> => {
      const steps = [{ take: { id, tokens: 0, subjects: [{ subject, accountId: "a", ...limits }] } }];
      const reply = await parent.perform(workerOf("1.1"), encoder.toMessage(steps));
      return admits(encoder.readReply(steps, reply)[0]!);
    };
    for (let index = 0; index < 10_002; index++) expect(await ask(`key:${index}`, `first ${index}`)).toBe(true);
    expect(await ask("key:0", "again")).toBe(false);
    expect(await ask("key:new", "new")).toBe(true);
  });
});
