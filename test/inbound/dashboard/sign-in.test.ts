import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PASSWORD } from "../../access/set-up.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

/** Every browser here comes through a trusted proxy, which says its address. */
const from = (address: string) => ({ "x-forwarded-for": address });
const HOME = from("192.0.2.10");
const ATTACKER = from("192.0.2.66");
const ELSEWHERE = from("198.51.100.7");
const WRONG = "not these words at all";
const BOB = { email: "bob@example.com", password: PASSWORD };

let site: ConsoleUnderTest;
let admin: Browser;
beforeEach(async () => {
  site = await startConsole({ signUp: "open", trustedProxies: ["127.0.0.1"] });
  admin = await site.signedUp("ada");
});
afterEach(() => site.close());

/** How sign-ins end, one after another. */
async function guess(browser: Browser, emails: readonly string[]): Promise<(Code | "signed in")[]> {
  const ends: (Code | "signed in")[] = [];
  for (const email of emails) {
    ends.push(
      await browser.session.signIn({ email, password: WRONG }).then(
        () => "signed in" as const,
        (error: unknown) => ConnectError.from(error).code,
      ),
    );
  }
  return ends;
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

describe("wrong passwords for somebody's address", () => {
  it("do not prevent a known browser or another network from signing in", async () => {
    const bob = site.browser(HOME);
    await bob.session.signUp({ ...BOB, name: "bob" });
    await bob.session.signOut({});
    const codes = await guess(
      site.browser(ATTACKER),
      times(9, () => BOB.email),
    );
    expect(codes).toContain(Code.ResourceExhausted);
    // The attacker's network waits, also with the right password; bob's own browser, on the same network, does not.
    expect((await errorOf(site.browser(ATTACKER).session.signIn(BOB))).code).toBe(Code.ResourceExhausted);
    await bob.session.signIn(BOB);
    await site.browser(ELSEWHERE).session.signIn(BOB);
  });

  it("do not prevent people who are signed in from what needs a fresh password", async () => {
    const bob = site.browser(HOME);
    await bob.session.signUp({ ...BOB, name: "bob" });
    await guess(
      site.browser(ATTACKER),
      times(9, () => BOB.email),
    );
    await bob.session.reauthenticate({ password: PASSWORD });
    const change = { currentPassword: PASSWORD, newPassword: "four other unrelated words" };
    expect((await bob.session.changePassword(change)).session?.account?.email).toBe(BOB.email);
  });
});

describe("guesses at addresses without an account", () => {
  it("do not prevent others on the same network from signing in", async () => {
    const codes = await guess(
      site.browser(ATTACKER),
      times(24, (at) => `nobody${at}@example.com`),
    );
    expect(codes).not.toContain("signed in");
    // The administrator, in a browser that was never seen before.
    await site.browser(ATTACKER).session.signIn({ email: "ada@example.com", password: PASSWORD });
    await admin.session.reauthenticate({ password: PASSWORD });
  });
});
