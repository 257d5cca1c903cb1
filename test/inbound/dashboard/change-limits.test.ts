import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { SignedIn } from "../../../src/access/sessions.ts";
import { CallLimits } from "../../../src/inbound/dashboard/call-limits.ts";
import { POLICIES } from "../../../src/inbound/dashboard/policy.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { type Browser, type ConsoleUnderTest, refusalOf, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
});
afterEach(() => site.close());

const change = ({ routing }: Browser): Promise<unknown> => routing.setAliases({ aliases: [] });

async function again(name: string): Promise<Browser> {
  const browser = site.browser();
  await browser.session.signIn({ email: `${name}@example.com`, password: PASSWORD });
  return browser;
}

it("a session may make 30 changes at once and five a second, its account twice as many, and others have theirs", async () => {
  const ada = await site.signedUp("ada");
  const bob = await site.signedUp("bob");
  const [second, third] = [await again("ada"), await again("ada")];
  const changes = async (session: Browser, count: number): Promise<void> => {
    for (let made = 0; made < count; made += 1) await change(session);
  };
  await changes(ada, 30);
  await changes(second, 30);
  const refusal = await refusalOf(site, change(ada));
  expect([refusal.code, refusal.rawMessage]).toEqual([
    Code.ResourceExhausted,
    "This session has reached the maximum of 5 changes a second. Try again shortly.",
  ]);
  expect(refusal.metadata.get("retry-after")).toBe("1");
  // The second that the refusal took was worth ten.
  await changes(third, 10);
  expect((await refusalOf(site, change(third))).rawMessage).toBe(
    "This account has reached the maximum of 10 changes a second. Try again shortly.",
  );
  await change(bob);
  // Reads are no changes.
  await ada.routing.getRouting({});
  await changes(ada, 10);
  expect((await refusalOf(site, change(ada))).code).toBe(Code.ResourceExhausted);
});

it("an account may make 10,000 changes a day, however slowly", () => {
  const { clock } = site.access;
  const limits = new CallLimits(clock);
  const changeOf = (id: string): void =>
    limits.take({ account: { id }, session: { hash: id } } as unknown as SignedIn, { changes: true })();
  const spacedChanges = (count: number): void => {
    for (let made = 0; made < count; made += 1) {
      changeOf("ada");
      clock.advance(200);
    }
  };
  spacedChanges(10_200);
  expect(() => spacedChanges(100)).toThrow("This account has reached the maximum of 10000 changes a day. Try again in");
  changeOf("bob");
  clock.advance(9_000);
  changeOf("ada");
});

it("every RPC is a change but those that read, ask a model, or are for people who have not signed in", () => {
  const unlimited = [...POLICIES]
    .filter(([, { changes }]) => changes === undefined)
    .map(([path]) => path.split("/")[2]!);
  const reads = /^(Get|List|Watch|Summarize|Export)|^(ExplainRoute|TestModel|Stream)$/;
  expect(unlimited.filter((name) => !reads.test(name)).toSorted()).toEqual([
    "RequestReset",
    "Reset",
    "SignIn",
    "SignInByLink",
    "SignInByPasskey",
    "SignOut",
    "SignUp",
  ]);
});
