import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { LargeBodyScheduler } from "../../src/scheduling/read-scheduler.ts";

it("resumes the oldest waiting answer, one read per event-loop turn", async () => {
  const turns = new LargeBodyScheduler();
  const read: string[] = [];
  let left = 2;
  const oldest = (): void => {
    read.push("oldest");
    if (left-- > 0) turns.wait(1, oldest);
  };
  turns.wait(3, () => read.push("youngest"));
  turns.wait(1, oldest);
  turns.wait(2, () => read.push("middle"));
  expect(read).toEqual([]);
  const seen: number[] = [];
  while (read.length < 5) {
    await turn();
    seen.push(read.length);
  }
  expect(read).toEqual(["oldest", "oldest", "oldest", "middle", "youngest"]);
  expect(Math.max(...seen.map((count, at) => count - (seen[at - 1] ?? 0)))).toBe(1);

  turns.wait(4, () => read.push("later"));
  await turn();
  expect(read).toHaveLength(6);
});
