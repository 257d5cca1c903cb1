import { describe, expect, it, vi } from "vitest";
import { createAccount, updateAccount } from "../../src/access/accounts.ts";
import type { Origin } from "../../src/access/context.ts";
import { pruneAccess } from "../../src/access/prune-access.ts";
import { rememberBrowser } from "../../src/access/known-browsers.ts";
import { createPasswordHasher } from "../../src/access/password-hash.ts";
import { changePassword, resetPassword } from "../../src/access/password-change.ts";
import { generateToken, hashToken } from "../../src/access/secret-token.ts";
import { findSession, pruneSessions, requireFresh, signOut, startSession } from "../../src/access/sessions.ts";
import { reauthenticate, signIn } from "../../src/access/sign-in.ts";
import { type AccessUnderTest, CHEAP, networkNumber, PASSWORD, setUpAccess } from "./set-up.ts";

const EMAIL = "ada@example.com";
const ADA = { email: EMAIL, password: PASSWORD };
const HERE = { network: "192.0.2.0/24" };
const HOUR_MS = 60 * 60 * 1000;
const OTHER_PASSWORD = "another set of words";

async function setUp(changes: Parameters<typeof setUpAccess>[0] = {}) {
  const access = setUpAccess(changes);
  const account = await createAccount(access, { ...ADA, name: "Ada", role: "owner" });
  return { access, account };
}

/** The parts of a failed sign-in's failure that the caller sees. */
async function refusal(access: AccessUnderTest, credentials: { email: string; password: string }, network = "a") {
  const reason = await signIn(access, credentials, { network }).catch((error: unknown) => error);
  const { code, message, violations, retryAfterMs, detail } = reason as Record<string, unknown>;
  return { code, message, violations, retryAfterMs, detail };
}

describe("signing in", () => {
  it("starts a session with an ID of 256 random bits, of which only the hash is stored", async () => {
    const { access, account } = await setUp();
    const { id } = await signIn(access, { email: " ADA@example.com", password: PASSWORD }, HERE);
    expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const sessions = access.stores.rows("sessions");
    expect(sessions.map(({ hash }) => hash)).toEqual([hashToken(id)]);
    expect(JSON.stringify(sessions)).not.toContain(id);
    expect((await findSession(access, id))?.account.id).toBe(account.id);
  });

  it("fails alike for an unknown address, a wrong password and a disabled account", async () => {
    const { access } = await setUp();
    const bob = await createAccount(access, {
      email: "bob@example.com",
      name: "",
      role: "developer",
      password: PASSWORD,
    });
    await updateAccount(access, {
      id: bob.id,
      update: { disabled: true },
      actor: { actorId: undefined, network: undefined },
    });
    const wrong = await refusal(access, { email: EMAIL, password: "not these words at all" });
    expect(wrong).toMatchObject({ code: "unauthenticated", message: "The e-mail address or the password is wrong." });
    expect(await refusal(access, { email: "nobody@example.com", password: PASSWORD })).toEqual(wrong);
    expect(await refusal(access, { email: "bob@example.com", password: PASSWORD })).toEqual(wrong);
    // An account without an address.
    expect(await refusal(access, { email: "acct_default@x", password: "" })).toEqual(wrong);
  });

  it("takes as long for an unknown address as for a wrong password", async () => {
    const { access } = await setUp({ passwords: createPasswordHasher() });
    const times = { known: [] as number[], unknown: [] as number[] };
    for (let round = 0; round < 5; round += 1) {
      for (const [kind, email] of [
        ["known", EMAIL],
        ["unknown", `nobody${round}@example.com`],
      ] as const) {
        await access.throttle.forget(EMAIL);
        const beganMs = performance.now();
        await refusal(access, { email, password: "not these words at all" }, networkNumber(round));
        times[kind].push(performance.now() - beganMs);
      }
    }
    const [known, unknown] = [times.known, times.unknown].map((each) => each.toSorted((a, b) => a - b)[2]!);
    // Without the hash an unknown address would be answered in a thousandth of the time.
    expect(unknown! / known!).toBeGreaterThan(1 / 3);
    expect(unknown! / known!).toBeLessThan(3);
  });

  it("rehashes the password when the hash has another cost", async () => {
    const { access, account } = await setUp();
    const dearer = { ...access, passwords: createPasswordHasher({ ...CHEAP, passes: 2 }) };
    await signIn(dearer, ADA, HERE);
    const { passwordHash } = (await access.store.find(account.id))!;
    expect(passwordHash).toContain("t=2");
    await signIn(dearer, ADA, HERE);
    expect((await access.store.find(account.id))?.passwordHash).toBe(passwordHash);
  });

  it("refuses an overlong password before anything is hashed", async () => {
    const { access } = await setUp();
    const fail = () => expect.fail("hashed");
    const passwords = { hash: fail, verify: fail, requireRoom: fail };
    const password = "x".repeat(129);
    await expect(signIn({ ...access, passwords }, { email: EMAIL, password }, HERE)).rejects.toThrow("at most 128");
  });

  it("ends its session again when the password changes, or the account is disabled, meanwhile", async () => {
    const { access, account } = await setUp();
    const during = (change: () => Promise<unknown>): AccessUnderTest => ({
      ...access,
      passwords: {
        ...access.passwords,
        verify: async (password, encoded) => {
          const verdict = await access.passwords.verify(password, encoded);
          await change();
          return verdict;
        },
      },
    });
    const changing = during(() => resetPassword(access, account, OTHER_PASSWORD));
    await expect(signIn(changing, ADA, HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(access.stores.rows("sessions")).toEqual([]);
    const disabling = during(() => access.store.update(account.id, { disabledAtMs: 1 }));
    const credentials = { email: EMAIL, password: OTHER_PASSWORD };
    await expect(signIn(disabling, credentials, HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(access.stores.rows("sessions")).toEqual([]);
  });
});

describe("the throttle", () => {
  const WRONG = "not these words at all";
  const guessFrom = (access: AccessUnderTest, network: string, email = EMAIL) =>
    refusal(access, { email, password: WRONG }, network);

  it("makes a network wait from its fifth failure at an account on, twice as long each time, up to 15 minutes", async () => {
    const { access } = await setUp();
    const waits: number[] = [];
    for (let guess = 1; guess <= 16; guess += 1) {
      expect((await guessFrom(access, "a")).code).toBe("unauthenticated");
      const state = access.stores.rows("throttles").find(({ subject }) => /^account:\w+\/a$/.test(subject))!;
      const waitMs = state.blocked_until_ms - access.clock.now();
      waits.push(waitMs / 1000);
      access.clock.advance(waitMs);
    }
    expect(waits).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  });

  it("makes all networks together wait from the fiftieth failure on", async () => {
    const { access } = await setUp();
    const codes = [];
    for (let guess = 0; guess < 52; guess += 1) codes.push((await guessFrom(access, networkNumber(guess))).code);
    expect(codes).toEqual([...Array.from({ length: 50 }, () => "unauthenticated"), "rate_limited", "rate_limited"]);
    expect((await refusal(access, ADA, "b")).code).toBe("rate_limited");
    // Attempts refused because of other networks do not count as this network's failures.
    access.clock.advance(1000);
    for (let attempt = 0; attempt < 4; attempt += 1) {
      expect((await guessFrom(access, "b")).code).toBe("unauthenticated");
      access.clock.advance(900_000);
    }
  });

  it("does the same for addresses that have no account", async () => {
    const answers = async (email: string) => {
      const { access } = await setUp();
      const seen = [];
      for (let attempt = 0; attempt < 8; attempt += 1) {
        seen.push(await guessFrom(access, "a", email));
        access.clock.advance(100);
      }
      for (let attempt = 0; attempt < 60; attempt += 1)
        seen.push(await guessFrom(access, networkNumber(attempt), email));
      return seen;
    };
    const known = await answers(EMAIL);
    expect(known.slice(0, 8).map(({ code }) => code)).toEqual([
      ...Array.from({ length: 5 }, () => "unauthenticated"),
      ...Array.from({ length: 3 }, () => "rate_limited"),
    ]);
    expect(known.at(-1)?.code).toBe("rate_limited");
    expect(await answers("nobody@example.com")).toEqual(known);
  });

  it("counts simultaneous attempts like successive ones", async () => {
    const { access } = await setUp();
    const attempts = Array.from({ length: 30 }, () => guessFrom(access, "a"));
    const codes = (await Promise.all(attempts)).map(({ code }) => code);
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(5);
    expect(codes.filter((code) => code === "rate_limited")).toHaveLength(25);
  });

  it("refuses also the right password while a network has to wait, and clears the count after a success", async () => {
    const { access } = await setUp();
    for (let attempt = 0; attempt < 5; attempt += 1) await guessFrom(access, "a");
    expect(await refusal(access, ADA)).toMatchObject({ code: "rate_limited", retryAfterMs: 1000 });
    access.clock.advance(1000);
    await signIn(access, ADA, { network: "a" });
    for (let attempt = 0; attempt < 4; attempt += 1)
      expect(await guessFrom(access, "a")).toMatchObject({ code: "unauthenticated" });
  });

  it("does not count successful sign-ins as failures, or for their network", async () => {
    const { access } = await setUp();
    access.clock.advance(60_000 - (access.clock.now() % 60_000));
    for (let attempt = 0; attempt < 130; attempt += 1) {
      await signIn(access, ADA, { network: "a" });
      access.clock.advance(1_000);
    }
    const counts = access.stores.rows("throttles").map(({ subject, count }) => [subject.replace(/:.*/, ""), count]);
    // 60 in each minute: of an account.
    expect(Object.fromEntries(counts)).toEqual({ network: 0, account: 0, "accounts-of": 0, attempts: 10 });
  });

  it("permits fewer than 100 guesses an hour, from however many networks", async () => {
    const { access } = await setUp();
    let guesses = 0;
    for (let second = 0; second < 3600; second += 1) {
      if ((await guessFrom(access, networkNumber(second))).code === "unauthenticated") guesses += 1;
      access.clock.advance(1000);
    }
    expect(guesses).toBeLessThan(70);
  });

  it("permits failures of a network at 20 accounts a minute, whichever they are", async () => {
    const { access } = await setUp();
    const emails = Array.from({ length: 25 }, (_, index) => `user${index}@example.com`);
    const member = { name: "", role: "developer", password: PASSWORD } as const;
    for (const email of emails) await createAccount(access, { email, ...member });
    const codes = [];
    for (const email of emails) codes.push((await guessFrom(access, "spray", email)).code);
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(20);
    // From then on even the right password is refused in this network, and only there.
    expect(await refusal(access, ADA, "spray")).toMatchObject({ code: "rate_limited" });
    await signIn(access, ADA, HERE);
    access.clock.advance(60_000);
    await signIn(access, ADA, { network: "spray" });
  });

  it("limits exact answers for addresses without an account alike, and stops guesses at 120 a minute", async () => {
    const { access } = await setUp();
    const seen = [];
    for (let guess = 0; guess < 121; guess += 1) seen.push(await guessFrom(access, "a", `nobody${guess}@example.com`));
    expect(seen.map(({ code }) => code).filter((code) => code === "unauthenticated")).toHaveLength(20);
    // Above 120 no password is compared any more.
    const passwords = { ...access.passwords, verify: () => expect.fail("compared") };
    const flooded = signIn({ ...access, passwords }, ADA, { network: "a" });
    await expect(flooded).rejects.toMatchObject({ code: "rate_limited" });
    // They are recorded only until the throttle refuses.
    expect(access.stores.entries().filter(({ action }) => action === "sign_in_failed")).toHaveLength(20);
  });

  it("forgets failures after a day, and stores no address", async () => {
    const { access } = await setUp();
    for (let attempt = 0; attempt < 5; attempt += 1) await guessFrom(access, "a");
    expect(JSON.stringify(access.stores.rows("throttles"))).not.toContain("ada");
    access.clock.advance(24 * HOUR_MS);
    for (let attempt = 0; attempt < 4; attempt += 1)
      expect(await guessFrom(access, "a")).toMatchObject({ code: "unauthenticated" });
  });
});

describe("a browser in which the account has signed in before", () => {
  const known = async (access: AccessUnderTest, accountId: string) => {
    const browserToken = await rememberBrowser(access, accountId, undefined);
    return { network: "a", browserToken };
  };
  const fail = (access: AccessUnderTest, origin: Origin) =>
    signIn(access, { email: EMAIL, password: "not these words at all" }, origin).catch(({ code }) => code as string);

  it("signs in while its network and its account wait, and has ten failures of its own before it waits", async () => {
    const { access, account } = await setUp();
    const origin = await known(access, account.id);
    for (let guess = 0; guess < 60; guess += 1)
      await fail(access, { network: guess < 10 ? "a" : networkNumber(guess) });
    await signIn(access, ADA, origin);
    const codes = [];
    for (let guess = 0; guess < 11; guess += 1) codes.push(await fail(access, origin));
    expect(codes).toEqual([...Array.from({ length: 10 }, () => "unauthenticated"), "rate_limited"]);
  });

  it("signs in while all attempts of its network are used up, and one with a made-up token does not", async () => {
    const { access, account } = await setUp();
    const origin = await known(access, account.id);
    const { promise, resolve } = Promise.withResolvers<void>();
    const flood = Array.from({ length: 504 }, () => access.signInQueue.take("a", () => promise));
    const signingIn = signIn(access, ADA, origin);
    const forged = { ...origin, browserToken: generateToken() };
    await expect(signIn(access, ADA, forged)).rejects.toMatchObject({ code: "overloaded" });
    resolve();
    expect((await signingIn).account.id).toBe(account.id);
    await Promise.all(flood);
  });

  it("is known for the accounts that have signed in with it, and for no others", async () => {
    const { access, account } = await setUp();
    const bob = await createAccount(access, {
      email: "bob@example.com",
      name: "",
      role: "developer",
      password: PASSWORD,
    });
    const origin = await known(access, bob.id);
    for (let guess = 0; guess < 5; guess += 1) await fail(access, { network: "a" });
    await expect(signIn(access, ADA, origin)).rejects.toMatchObject({ code: "rate_limited" });
    const both = { network: "a", browserToken: await rememberBrowser(access, account.id, origin.browserToken) };
    await signIn(access, ADA, both);
    await signIn(access, { email: "bob@example.com", password: PASSWORD }, both);
    // Each sign-in replaces the token.
    expect(access.stores.rows("known_browsers").map(({ hash }) => hash)).not.toContain(hashToken(origin.browserToken));
  });

  it("is unknown after the password was changed or reset, and half a year after the last sign-in", async () => {
    const { access, account } = await setUp();
    const blocked = async (origin: Origin) => {
      for (let guess = 0; guess < 5; guess += 1) await fail(access, { network: "a" });
      return (await fail(access, origin)) === "rate_limited";
    };
    const changed = await known(access, account.id);
    const signedIn = await signIn(access, ADA, HERE);
    await changePassword(access, { signedIn, current: PASSWORD, next: OTHER_PASSWORD }, HERE);
    expect(await blocked(changed)).toBe(true);
    const reset = await known(access, account.id);
    await resetPassword(access, account, PASSWORD);
    expect(await blocked(reset)).toBe(true);
    await known(access, account.id);
    access.clock.advance(180 * 24 * HOUR_MS + 1);
    expect(await pruneAccess({ ...access, nowMs: access.clock.now() })).toMatchObject({ browsers: 1 });
  });

  it("is checked before unknown browsers, also when their queue is full", async () => {
    const passwords = createPasswordHasher({ memoryKib: 8192, passes: 2, parallelism: 1 });
    const encoded = await passwords.hash(PASSWORD);
    const order: string[] = [];
    const flood = Array.from({ length: 9 }, () => passwords.verify("x", encoded).then(() => order.push("unknown")));
    expect(() => passwords.requireRoom(undefined)).toThrow("busy checking passwords");
    await expect(passwords.verify("x", encoded)).rejects.toMatchObject({ code: "overloaded" });
    // Some may have been checked by now.
    const before = order.length;
    await passwords.verify(PASSWORD, encoded, { known: "acct_ada" }).then(() => order.push("known"));
    expect(order.indexOf("known") - before).toBeLessThan(3);
    await Promise.all(flood);
  });
});

describe("a session", () => {
  it("ends after two hours without use", async () => {
    const { access } = await setUp();
    const { id } = await signIn(access, ADA, HERE);
    access.clock.advance(2 * HOUR_MS - 1);
    expect(await findSession(access, id)).toBeDefined();
    access.clock.advance(2 * HOUR_MS - 1);
    expect(await findSession(access, id)).toBeDefined();
    access.clock.advance(2 * HOUR_MS);
    expect(await findSession(access, id)).toBeUndefined();
  });

  it("ends after a day however much it is used", async () => {
    const { access } = await setUp();
    const { id } = await signIn(access, ADA, HERE);
    for (let hour = 0; hour < 23; hour += 1) {
      access.clock.advance(HOUR_MS);
      expect(await findSession(access, id)).toBeDefined();
    }
    access.clock.advance(HOUR_MS);
    expect(await findSession(access, id)).toBeUndefined();
    expect(await pruneSessions({ ...access, nowMs: access.clock.now() })).toBe(0);
    access.clock.advance(1);
    expect(await pruneSessions({ ...access, nowMs: access.clock.now() })).toBe(1);
  });

  it("is touched once a minute at most", async () => {
    const { access } = await setUp();
    const { id, session } = await signIn(access, ADA, HERE);
    const seen = () => access.stores.rows("sessions")[0]?.last_seen_at_ms;
    access.clock.advance(59_999);
    await findSession(access, id);
    expect(seen()).toBe(session.lastSeenAtMs);
    access.clock.advance(1);
    await findSession(access, id);
    expect(seen()).toBe(session.lastSeenAtMs + 60_000);
  });

  it("ends when its owner signs out, without ending others", async () => {
    const { access } = await setUp();
    const [one, other] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    expect(one.id).not.toBe(other.id);
    await signOut(access, one.id, HERE);
    expect(await findSession(access, one.id)).toBeUndefined();
    expect(await findSession(access, other.id)).toBeDefined();
    await signOut(access, "not a session", HERE);
  });

  it("that is unknown is ended without writing anything", async () => {
    const { access } = await setUp();
    const removeSession = vi.spyOn(access.store, "removeSession");
    await signOut(access, generateToken(), HERE);
    expect(removeSession).not.toHaveBeenCalled();
  });

  it("ends at once when its account is disabled", async () => {
    const { access, account } = await setUp();
    const { id } = await signIn(access, ADA, HERE);
    await access.store.update(account.id, { disabledAtMs: 1 });
    expect(await findSession(access, id)).toBeUndefined();
  });

  it.each(["", "x", "a".repeat(42), `${"a".repeat(43)}\n`, "a".repeat(100_000), "' OR 1=1 --"])(
    "is not looked up for a malformed ID: case %#",
    async (id) => {
      const { access } = await setUp();
      const store = { ...access.store, findSession: () => expect.fail("looked up") };
      expect(await findSession({ ...access, store }, id)).toBeUndefined();
    },
  );

  it("is fresh for ten minutes after the password was given", async () => {
    const { access } = await setUp();
    const signedIn = await signIn(access, ADA, HERE);
    access.clock.advance(600_000 - 1);
    expect(() => requireFresh(signedIn, access.clock.now())).not.toThrow();
    access.clock.advance(1);
    const stale = { code: "permission_denied", detail: "reauthentication_required" };
    expect(() => requireFresh(signedIn, access.clock.now())).toThrow(expect.objectContaining(stale));
    const again = { signedIn, password: "not these words at all" };
    await expect(reauthenticate(access, again, HERE)).rejects.toMatchObject({ param: "password" });
    const fresh = await reauthenticate(access, { signedIn, password: PASSWORD }, HERE);
    expect(() => requireFresh(fresh, access.clock.now())).not.toThrow();
    expect((await findSession(access, signedIn.id))?.session).toEqual(fresh.session);
  });
});

describe("changing the password", () => {
  it("ends all sessions, and starts a new one", async () => {
    const { access, account } = await setUp();
    const [mine, other] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    const change = { signedIn: mine, current: PASSWORD, next: OTHER_PASSWORD };
    const { id } = await changePassword(access, change, HERE);
    for (const old of [mine.id, other.id]) expect(await findSession(access, old)).toBeUndefined();
    expect((await findSession(access, id))?.account.id).toBe(account.id);
    await expect(signIn(access, ADA, HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    await signIn(access, { email: EMAIL, password: OTHER_PASSWORD }, HERE);
  });

  it.each([
    [
      { current: "not these words at all", next: OTHER_PASSWORD },
      { code: "invalid_request", param: "current_password" },
    ],
    [
      { current: PASSWORD, next: "short" },
      { code: "invalid_request", param: "new_password" },
    ],
    [
      { current: PASSWORD, next: "password1234" },
      { code: "invalid_request", param: "new_password" },
    ],
    [
      { current: PASSWORD, next: PASSWORD },
      { code: "invalid_request", param: "new_password" },
    ],
  ])("is refused for %o", async (words, expected) => {
    const { access } = await setUp();
    const signedIn = await signIn(access, ADA, HERE);
    await expect(changePassword(access, { signedIn, ...words }, HERE)).rejects.toMatchObject(expected);
    expect(await findSession(access, signedIn.id)).toBeDefined();
  });

  it("is refused with a password that was changed meanwhile", async () => {
    const { access } = await setUp();
    const [owner, other] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    await changePassword(access, { signedIn: owner, current: PASSWORD, next: OTHER_PASSWORD }, HERE);
    // The account as it was when the other request began.
    const late = changePassword(access, { signedIn: other, current: PASSWORD, next: "a third password" }, HERE);
    await expect(late).rejects.toMatchObject({ code: "invalid_request", param: "current_password" });
    await signIn(access, { email: EMAIL, password: OTHER_PASSWORD }, HERE);
  });

  it("permits ten guesses of the current one by a session before it waits", async () => {
    const { access } = await setUp();
    const signedIn = await signIn(access, ADA, HERE);
    const guess = () =>
      changePassword(access, { signedIn, current: "wrong", next: OTHER_PASSWORD }, HERE).catch((error) => error.code);
    for (let attempt = 0; attempt < 10; attempt += 1) expect(await guess()).toBe("invalid_request");
    expect(await guess()).toBe("rate_limited");
    // The session's count does not affect sign-ins.
    await signIn(access, ADA, HERE);
  });

  it("from the command line needs no old password, and clears the throttle and all sessions", async () => {
    const { access, account } = await setUp();
    const { id } = await startSession(access, account, { network: undefined });
    for (let attempt = 0; attempt < 5; attempt += 1) await refusal(access, { email: EMAIL, password: "wrong" });
    await resetPassword(access, account, OTHER_PASSWORD);
    expect(await findSession(access, id)).toBeUndefined();
    await signIn(access, { email: EMAIL, password: OTHER_PASSWORD }, HERE);
  });
});
