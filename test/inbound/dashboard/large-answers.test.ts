import { createContextValues } from "@connectrpc/connect";
import { expect, it } from "vitest";
import type { SignedIn } from "../../../src/access/sessions.ts";
import { CALL, type ConsoleCall } from "../../../src/inbound/dashboard/call.ts";
import { answersInTurn } from "../../../src/inbound/dashboard/large-answers.ts";
import type { OpenCall } from "../../../src/inbound/calls.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function contextOf(account: string, signal: AbortSignal = new AbortController().signal) {
  const signedIn = { account: { id: account } } as SignedIn;
  const open = { signal } as Partial<OpenCall> as OpenCall;
  return { values: createContextValues().set(CALL, { signedIn, open } as Partial<ConsoleCall> as ConsoleCall) };
}

it("large answers are made one at a time, for the accounts in turn, after a pause as long as the one before took", async () => {
  const clock = new FakeClock();
  const inTurn = answersInTurn(clock);
  const begun: string[] = [];
  const made = ["a1", "a2", "a3", "b1"].map((name) =>
    inTurn(contextOf(name[0]!), () => {
      begun.push(name);
      clock.advance(100);
    }),
  );
  await expect.poll(() => begun).toEqual(["a1"]);
  await new Promise(setImmediate);
  clock.advance(99);
  await new Promise(setImmediate);
  expect(begun).toEqual(["a1"]);
  for (const count of [2, 3, 4]) {
    clock.advance(1);
    await expect.poll(() => begun).toHaveLength(count);
    await new Promise(setImmediate);
    clock.advance(99);
  }
  await Promise.all(made);
  expect(begun.indexOf("b1")).toBeLessThan(begun.indexOf("a3"));
});

it("a large answer whose caller has left is not made, and the next one is", async () => {
  const clock = new FakeClock();
  const inTurn = answersInTurn(clock);
  await inTurn(contextOf("a"), () => clock.advance(100));
  const gone = new AbortController();
  const begun: string[] = [];
  const left = inTurn(contextOf("a", gone.signal), () => void begun.push("left"));
  const next = inTurn(contextOf("b"), () => void begun.push("next"));
  await new Promise(setImmediate);
  gone.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  await new Promise(setImmediate);
  clock.advance(100);
  await next;
  expect(begun).toEqual(["next"]);
});
