import { expect, it } from "vitest";
import { RetryBudget } from "../../src/router/retry-budget.ts";

/** How many retries the budget gives now, if not for ever. */
function roomIn(budget: RetryBudget): number {
  let room = 0;
  while (room < 1_000 && budget.take() !== undefined) room += 1;
  return room;
}

/** How many retries the budget gives while this many requests are under way. */
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
])("$requests requests under way leave room for $room retries", ({ requests, room }) => {
  expect(roomWith(requests)).toBe(room);
});

it("room that is given back can be taken again", () => {
  const budget = new RetryBudget();
  const [first] = [budget.take(), budget.take(), budget.take()];
  expect(budget.take()).toBeUndefined();
  first!();
  expect(budget.take()).toBeDefined();
  expect(budget.take()).toBeUndefined();
});

it("requests that are over leave no room behind", () => {
  const budget = new RetryBudget();
  const ends = Array.from({ length: 100 }, () => budget.begin());
  for (const end of ends) end();
  expect(roomIn(budget)).toBe(3);
});

it("keeps what a failing provider is asked at 1.2 times the requests, however long its failures take", () => {
  const budget = new RetryBudget();
  // Each goes on without a break and at a pace of its own, and tries again at once where it may.
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
  // Retries are not kept out altogether, either.
  expect(calls).toBeGreaterThan(1.15 * requests);
});
