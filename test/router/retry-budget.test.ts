import { expect, it } from "vitest";
import { RetryBudget } from "../../src/router/retry-budget.ts";

/** Returns the number of retries that the budget permits now, at most 1,000. */
function roomIn(budget: RetryBudget): number {
  let room = 0;
  while (room < 1_000 && budget.take() !== undefined) room += 1;
  return room;
}

/** Returns the number of retries that the budget permits with this many requests in flight. */
function roomWith(requests: number): number {
  const budget = new RetryBudget();
  for (let count = 0; count < requests; count++) budget.begin();
  return roomIn(budget);
}

it.each([
  { requests: 0, room: 3 },
  { requests: 1, room: 3 },
  { requests: 15, room: 3 },
  { requests: 18, room: 3 },
  { requests: 19, room: 4 },
  { requests: 24, room: 4 },
  { requests: 100, room: 17 },
])("$requests requests in flight permit $room retries", ({ requests, room }) => {
  expect(roomWith(requests)).toBe(room);
});

it("a released retry can be taken again", () => {
  const budget = new RetryBudget();
  const [first] = [budget.take(), budget.take(), budget.take()];
  expect(budget.take()).toBeUndefined();
  first!();
  expect(budget.take()).toBeDefined();
  expect(budget.take()).toBeUndefined();
});

it("counts what it granted and refused, and what is in flight", () => {
  const budget = new RetryBudget();
  const [first] = [budget.take(), budget.take(), budget.take()];
  expect(budget.take()).toBeUndefined();
  first!();
  expect(budget.counts).toEqual({ granted: 3, refused: 1, inFlight: 2 });
});

it("finished requests add nothing to the budget", () => {
  const budget = new RetryBudget();
  const ends = Array.from({ length: 100 }, () => budget.begin());
  for (const end of ends) end();
  expect(roomIn(budget)).toBe(3);
});

it("limits calls of a failing provider to 1.2 times the requests, however long its failures take", () => {
  const budget = new RetryBudget();
  // Each sends one request after the other at its own rate, and retries at once if permitted.
  const callers = Array.from({ length: 100 }, (_, index) => ({
    everyMs: 1_000 + index,
    failsAtMs: 10 * index,
    end: budget.begin(),
    giveBack: undefined as (() => void) | undefined,
  }));
  let requests = callers.length;
  let calls = 0;
  while (requests < 20_000) {
    const caller = callers.reduce((first, other) => (other.failsAtMs < first.failsAtMs ? other : first));
    caller.failsAtMs += caller.everyMs;
    calls += 1;
    const wasRetry = caller.giveBack !== undefined;
    caller.giveBack?.();
    caller.giveBack = wasRetry ? undefined : budget.take();
    if (caller.giveBack !== undefined) continue;
    caller.end();
    caller.end = budget.begin();
    requests += 1;
  }
  expect(calls).toBeLessThanOrEqual(1.2 * requests + 3);
  // Retries are still permitted.
  expect(calls).toBeGreaterThan(1.15 * requests);
});
