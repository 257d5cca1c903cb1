import { describe, expect, it } from "vitest";
import { afterThisLoopTurn } from "../../src/scheduling/read-scheduler.ts";

describe("the end of an event-loop turn", () => {
  it("resumes all waiters together, in order, after the turn's own work", async () => {
    const done: string[] = [];
    const goOn = async (name: string): Promise<void> => {
      await afterThisLoopTurn();
      done.push(name);
      await Promise.resolve();
      done.push(`${name} again`);
    };
    const both = [goOn("a"), goOn("b")];
    await new Promise<void>((resolve) => process.nextTick(resolve));
    expect(done).toEqual([]);
    await Promise.all(both);
    expect(done).toEqual(["a", "b", "a again", "b again"]);
  });

  it("is awaited again in the next turn", async () => {
    await afterThisLoopTurn();
    let isOver = false;
    const next = afterThisLoopTurn().then(() => (isOver = true));
    await Promise.resolve();
    expect(isOver).toBe(false);
    await next;
    expect(isOver).toBe(true);
  });
});
