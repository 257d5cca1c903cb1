import { afterEach, describe, expect, it, vi } from "vitest";
import { createAccount } from "../../src/access/accounts.ts";
import type { Origin } from "../../src/access/context.ts";
import { rememberBrowser } from "../../src/access/known-browsers.ts";
import { resetPassword } from "../../src/access/password-change.ts";
import { areResetsOffered, PasswordResets, resetByLink } from "../../src/access/password-reset.ts";
import { findSession } from "../../src/access/sessions.ts";
import { createSignInLink, signInByLink } from "../../src/access/sign-in-link.ts";
import { generateToken } from "../../src/access/secret-token.ts";
import { signIn } from "../../src/access/sign-in.ts";
import { PASSWORD, RULES, setUpAccess } from "./set-up.ts";

const EMAIL = "ada@example.com";
const HERE = { network: "192.0.2.0/24" };
const NEXT = "another set of words";
const HOUR_MS = 60 * 60_000;

afterEach(() => vi.restoreAllMocks());

async function setUp(changes: Parameters<typeof setUpAccess>[0] = {}) {
  const sent: { readonly to: string; readonly token: string }[] = [];
  const resetMail = () => async (to: string, token: string) => void sent.push({ to, token });
  const access = setUpAccess({ resetMail, ...changes });
  const account = await createAccount(access, { email: EMAIL, password: PASSWORD, name: "Ada", role: "owner" });
  const resets = new PasswordResets(access);
  const request = async (email = EMAIL, origin: Origin = HERE): Promise<string> => {
    const before = sent.length;
    await resets.request(email, origin);
    await expect.poll(() => sent.length).toBeGreaterThan(before);
    return sent.at(-1)!.token;
  };
  return { access, account, resets, sent, request };
}

describe("a link for a new password", () => {
  it("sets it once, and ends all sessions", async () => {
    const { access, account, sent, request } = await setUp();
    const { id } = await signIn(access, { email: EMAIL, password: PASSWORD }, HERE);
    const token = await request(" ADA@example.com");
    expect(sent).toEqual([{ to: EMAIL, token: expect.stringMatching(/^[\w-]{43}$/) }]);
    await resetByLink(access, { token, password: NEXT }, HERE);
    expect(await findSession(access, id)).toBeUndefined();
    await signIn(access, { email: EMAIL, password: NEXT }, HERE);
    await expect(resetByLink(access, { token, password: PASSWORD }, HERE)).rejects.toMatchObject({
      code: "unauthenticated",
    });
    const events = access.logged.filter(({ action }) => action.startsWith("password_reset"));
    expect(events).toMatchObject([
      { action: "password_reset_requested", accountId: account.id, network: HERE.network },
      { action: "password_reset", accountId: account.id, network: HERE.network },
    ]);
    expect(JSON.stringify(access.logged)).not.toContain(token);
  });

  it("is sent to a known browser, and works there, while others in its network use up the limit of that", async () => {
    const { access, account, resets, request } = await setUp();
    const limited = { code: "rate_limited" };
    const known = { ...HERE, browserToken: await rememberBrowser(access, account.id, undefined) };
    for (let count = 0; count < 20; count += 1) await resets.request(`nobody${count}@example.com`, HERE);
    await expect(resets.request("nobody@example.com", HERE)).rejects.toMatchObject(limited);
    const token = await request(EMAIL, known);
    const use = (shown: string, origin: Origin) => resetByLink(access, { token: shown, password: NEXT }, origin);
    for (let count = 0; count < 20; count += 1)
      await expect(use(generateToken(), HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    await expect(use(token, HERE)).rejects.toMatchObject(limited);
    const link = await createSignInLink(access, account);
    await expect(signInByLink(access, link, HERE)).rejects.toMatchObject(limited);
    await signInByLink(access, link, known);
    await use(token, known);
  });

  it("does not replace a password that was set while it was used", async () => {
    const { access, account, request } = await setUp();
    const token = await request();
    const hash = access.passwords.hash.bind(access.passwords);
    vi.spyOn(access.passwords, "hash").mockImplementationOnce(async (...asked) => {
      await resetPassword(access, account, "words of the operator");
      return hash(...asked);
    });
    await expect(resetByLink(access, { token, password: NEXT }, HERE)).rejects.toMatchObject({
      code: "unauthenticated",
    });
    await signIn(access, { email: EMAIL, password: "words of the operator" }, HERE);
  });

  it("is not used up by a refused password", async () => {
    const { access, request } = await setUp();
    const token = await request();
    for (const password of ["short", "ada@example.com"])
      await expect(resetByLink(access, { token, password }, HERE)).rejects.toMatchObject({ code: "invalid_request" });
    await resetByLink(access, { token, password: NEXT }, HERE);
  });

  it.each<[string, (under: Awaited<ReturnType<typeof setUp>>, token: string) => unknown]>([
    ["an hour later", ({ access }) => access.clock.advance(HOUR_MS)],
    ["after another one", ({ request }) => request()],
    ["of a disabled account", ({ access, account }) => access.store.update(account.id, { disabledAtMs: 1 })],
    [
      "of an account without a password",
      ({ access, account }) => access.store.update(account.id, { passwordHash: undefined }),
    ],
    [
      "after a reset",
      ({ access }, token) => resetByLink(access, { token, password: "four other unrelated words" }, HERE),
    ],
  ])("is not valid %s", async (_, change) => {
    const under = await setUp();
    const token = await under.request();
    await change(under, token);
    await expect(resetByLink(under.access, { token, password: NEXT }, HERE)).rejects.toMatchObject({
      code: "unauthenticated",
    });
  });

  it("is not sent to unknown addresses and accounts without a password, with the same answer", async () => {
    const { access, account, resets, sent, request } = await setUp();
    await createAccount(access, { email: "bob@example.com", password: PASSWORD, name: "Bob", role: "developer" });
    const lookUp = vi.spyOn(access.store, "findByEmail");
    await access.store.update(account.id, { passwordHash: undefined });
    for (const email of ["nobody@example.com", EMAIL]) expect(await resets.request(email, HERE)).toBeUndefined();
    await expect.poll(() => lookUp.mock.results.length).toBe(2);
    // Sent after the others were looked up.
    await request("bob@example.com");
    expect(sent.map(({ to }) => to)).toEqual(["bob@example.com"]);
  });

  it("is refused alike for all addresses that sign in at the provider, and without a server for e-mail", async () => {
    const provider = { name: "Acme ID", domains: new Set(["example.com"]) };
    const { access, resets } = await setUp({ signIn: { ...RULES, provider } });
    for (const email of [EMAIL, "nobody@example.com"])
      await expect(resets.request(email, HERE)).rejects.toMatchObject({ code: "permission_denied" });
    const without = await setUp({ resetMail: () => undefined });
    expect([areResetsOffered(access), areResetsOffered(without.access)]).toEqual([true, false]);
    await expect(without.resets.request(EMAIL, HERE)).rejects.toMatchObject({ code: "permission_denied" });
  });

  it("is sent three times an hour to an address, known or not, and 20 times a minute for a network", async () => {
    const { access, resets } = await setUp();
    for (const email of [EMAIL, "nobody@example.com"]) {
      for (let time = 0; time < 3; time += 1) await resets.request(email, HERE);
      await expect(resets.request(email, HERE)).rejects.toMatchObject({ code: "rate_limited" });
    }
    for (let other = 0; other < 12; other += 1) await resets.request(`nobody${other}@example.com`, HERE);
    const limited = expect.objectContaining({ code: "rate_limited" });
    await expect(resets.request("one-more@example.com", HERE)).rejects.toEqual(limited);
    await resets.request("one-more@example.com", { network: "elsewhere" });
    access.clock.advance(HOUR_MS);
    await resets.request(EMAIL, HERE);
  });

  it("is sent to a bounded number of addresses at once, and a failure reveals nothing", async () => {
    const { promise: never, reject } = Promise.withResolvers<void>();
    const { resets, access } = await setUp({ resetMail: () => () => never });
    const findAll = vi.spyOn(access.store, "findByEmail").mockImplementation(() => never.then(() => undefined));
    const request = (index: number) => resets.request(`nobody${index}@example.com`, { network: `network ${index}` });
    for (let index = 0; index < 32; index += 1) await request(index);
    await expect(request(32)).rejects.toMatchObject({ code: "overloaded" });
    reject(new Error("no such server"));
    await expect.poll(() => findAll.mock.settledResults.every(({ type }) => type !== "incomplete")).toBe(true);
    await request(33);
  });

  it.each([
    ["removed where the new password alone signs in", RULES, false, 0],
    ["kept where an app is asked for", RULES, true, 2],
    ["kept where a second factor is required", { ...RULES, secondFactor: "required" } as const, false, 2],
  ])("has passkeys %s", async (_, rules, hasApp, left) => {
    const { access, account, request } = await setUp({ signIn: rules });
    const passkey = { accountId: account.id, name: "Laptop", publicKey: "key", counter: 0, transports: [] };
    for (const id of ["one", "two"])
      await access.store.insertPasskey({ ...passkey, id, createdAtMs: 1, usedAtMs: undefined }, 20);
    if (hasApp)
      await access.store.insertTotp(account.id, { sealed: "x", lastStep: 1, createdAtMs: 1, codeHashes: ["code"] });
    await resetByLink(access, { token: await request(), password: NEXT }, HERE);
    expect(await access.store.listPasskeys(account.id)).toHaveLength(left);
    expect((await access.store.findTotp(account.id)) !== undefined).toBe(hasApp);
    const details = left === 0 ? { method: "link", passkeys_removed: "2" } : { method: "link" };
    expect(access.logged.at(-1)?.details).toBe(JSON.stringify(details));
  });

  it("allows no more guesses of codes", async () => {
    const { access, account, request } = await setUp();
    const sealed = access.factors.seal("JBSWY3DPEHPK3PXP", account.id);
    await access.store.insertTotp(account.id, { sealed, lastStep: 1, createdAtMs: 1, codeHashes: ["code"] });
    const guess = (password: string, index: number) =>
      signIn(access, { email: EMAIL, password, code: "000000" }, { network: `192.0.${index}.0/24` });
    for (let index = 0; index < 50; index += 1)
      await expect(guess(PASSWORD, index)).rejects.toMatchObject({ code: "invalid_request" });
    await resetByLink(access, { token: await request(), password: NEXT }, HERE);
    await expect(guess(NEXT, 60)).rejects.toMatchObject({ code: "rate_limited" });
  });

  it("is no text without the form of a token", async () => {
    const { access } = await setUp();
    await expect(resetByLink(access, { token: "short", password: NEXT }, HERE)).rejects.toThrow("not complete");
  });
});
