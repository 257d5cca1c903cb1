import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { signIn } from "../../src/access/sign-in.ts";
import { SignInQueue } from "../../src/access/sign-in-queue.ts";
import { networkNumber, PASSWORD, setUpAccess } from "./set-up.ts";

/** A queue, and work that the test ends. */
function setUp() {
  const queue = new SignInQueue();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const take = (network: string | undefined, name = network): Promise<void> =>
    queue.take(network, async () => {
      begun.push(name ?? "none");
      await new Promise<void>((resolve) => ends.push(resolve));
    });
  return { begun, take, end: () => ends.shift()!() };
}

describe("requests of callers who have not signed in", () => {
  it("use the database four at a time, and networks take turns", async () => {
    const { begun, take, end } = setUp();
    const flood = Array.from({ length: 10 }, (_, index) => take("a", `a${index}`));
    const other = take("b");
    expect(begun).toEqual(["a0", "a1", "a2", "a3"]);
    for (let count = 0; count < 2; count++) {
      end();
      await turn();
    }
    expect(begun.slice(4)).toEqual(["a4", "b"]);
    for (let count = 0; count < 9; count++) {
      end();
      await turn();
    }
    await Promise.all([...flood, other]);
  });

  it("are refused when 500 of their network wait, and others are not", async () => {
    const { take, begun } = setUp();
    const waiting = Array.from({ length: 504 }, () => take("a"));
    await expect(take("a")).rejects.toMatchObject({ code: "overloaded" });
    void take("b");
    void take(undefined);
    await turn();
    expect(begun.at(-1)).toBe("none");
    expect(waiting).toHaveLength(504);
  });

  it("are refused when 2,000 networks wait", async () => {
    const { take } = setUp();
    for (let count = 0; count < 2_004; count++) void take(networkNumber(count));
    await expect(take("another")).rejects.toMatchObject({ code: "overloaded" });
  });

  it("replace a request of another network that has more of 2,000", async () => {
    const { take, begun, end } = setUp();
    const flood = Array.from({ length: 2_004 }, (_, index) => take(networkNumber(index % 5)).catch(() => "refused"));
    void take("a");
    expect(await Promise.race(flood)).toBe("refused");
    for (let count = 0; count < 6; count++) {
      end();
      await turn();
    }
    expect(begun).toContain("a");
  });
});

it("a flood of sign-ins has four queries in the database's queue", async () => {
  const access = setUpAccess();
  let running = 0;
  let most = 0;
  vi.spyOn(access.store, "findByEmail").mockImplementation(async () => {
    most = Math.max(most, (running += 1));
    await turn();
    running -= 1;
    return undefined;
  });
  const attempts = Array.from({ length: 40 }, () =>
    signIn(access, { email: "nobody@x.test", password: PASSWORD }, { network: networkNumber(1) }).catch(
      () => undefined,
    ),
  );
  await Promise.all(attempts);
  expect(most).toBe(4);
});
