import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, it } from "vitest";
import { totalOf, type UsageStore } from "../../../src/ledger/usage-store.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { type ConsoleUnderTest, refusalOf, startConsole } from "./set-up.ts";

let answer: () => void;
let site: ConsoleUnderTest;
beforeEach(async () => {
  const answered = Promise.withResolvers<void>();
  answer = answered.resolve;
  const usage: UsageStore = {
    async summarize() {
      await answered.promise;
      return { rows: [], total: totalOf([]), isChosenByDay: false, cutSinceMs: undefined };
    },
    latency: async () => ({ overall: undefined, points: [], sinceMs: undefined }),
    prune: async () => 0,
    pruneMinutes: async () => 0,
    rank: async () => 0,
  };
  site = await startConsole({ signUp: "open", usage });
});
afterEach(() => site.close());

it("an account has at most 32 calls in flight, half of them in one session, and others have theirs", async () => {
  const ada = await site.signedUp("ada");
  const bob = await site.signedUp("bob");
  const again = site.browser();
  await again.session.signIn({ email: "ada@example.com", password: PASSWORD });
  const reports = Array.from({ length: 16 }, () => ada.usage.summarize({}));
  await expect.poll(() => site.calls.active).toBe(16);
  expect((await refusalOf(site, ada.key.list({}))).rawMessage).toBe(
    "This session has reached the maximum of 16 concurrent dashboard calls. Try again when one completes.",
  );
  expect(await again.key.list({})).toBeDefined();
  reports.push(...Array.from({ length: 16 }, () => again.usage.summarize({})));
  await expect.poll(() => site.calls.active).toBe(32);
  const third = site.browser();
  await third.session.signIn({ email: "ada@example.com", password: PASSWORD });
  const { code, rawMessage } = await refusalOf(site, third.key.list({}));
  expect(code).toBe(Code.ResourceExhausted);
  expect(rawMessage).toBe(
    "This account has reached the maximum of 32 concurrent dashboard calls. Try again when one completes.",
  );
  expect(await bob.key.list({})).toBeDefined();
  // Calls without a session: signing out above all.
  expect((await ada.session.getSession({})).session?.account?.id).toBe(ada.id);
  answer();
  await Promise.all(reports);
  await expect.poll(() => site.calls.active).toBe(0);
  expect(await ada.key.list({})).toBeDefined();
});
