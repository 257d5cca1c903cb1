import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, it } from "vitest";
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
