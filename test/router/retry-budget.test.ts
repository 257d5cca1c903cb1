import { expect, it } from "vitest";
import { RetryBudget } from "../../src/router/retry-budget.ts";

/** How many retries the budget gives while this many requests are under way. */
function roomWith(requests: number): number {
  const budget = new RetryBudget();
  for (let count = 0; count < requests; count++) budget.begin();
  let room = 0;
  while (budget.take() !== undefined) room += 1;
  return room;
}

it.each([
  { requests: 0, room: 3 },
  { requests: 1, room: 3 },
  { requests: 15, room: 3 },
  { requests: 16, room: 4 },
  { requests: 20, room: 4 },
  { requests: 100, room: 20 },
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
  let room = 0;
  while (budget.take() !== undefined) room += 1;
  expect(room).toBe(3);
});
