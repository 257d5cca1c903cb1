import { describe, expect, it } from "vitest";
import { createAccount, updateAccount } from "../../src/access/accounts.ts";
import { createPasswordHasher } from "../../src/access/password-hash.ts";
import { changePassword, resetPassword } from "../../src/access/password-change.ts";
import { hashToken } from "../../src/access/secret-token.ts";
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
  const account = await createAccount(access, { ...ADA, name: "Ada", role: "administrator" });
  return { access, account };
}

/** What the caller sees of a sign-in that fails. */
async function refusal(access: AccessUnderTest, credentials: { email: string; password: string }, network = "a") {
  const reason = await signIn(access, credentials, { network }).catch((error: unknown) => error);
  const { code, message, violations, retryAfterMs, detail } = reason as Record<string, unknown>;
  return { code, message, violations, retryAfterMs, detail };
}

describe("signing in", () => {
  it("gives a session of 256 random bits, of which only the hash is kept", async () => {
    const { access, account } = await setUp();
    const { id } = await signIn(access, { email: " ADA@example.com", password: PASSWORD }, HERE);
    expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect([...access.store.sessions.keys()]).toEqual([hashToken(id)]);
    expect(JSON.stringify([...access.store.sessions])).not.toContain(id);
    expect((await findSession(access, id))?.account.id).toBe(account.id);
  });

  it("says the same of an unknown address, a wrong password and a disabled account", async () => {
    const { access } = await setUp();
    const bob = await createAccount(access, { email: "bob@example.com", name: "", role: "member", password: PASSWORD });
    await updateAccount(access, {
      id: bob.id,
      update: { disabled: true },
      actor: { actorId: undefined, network: undefined },
    });
    const wrong = await refusal(access, { email: EMAIL, password: "not these words at all" });
    expect(wrong).toMatchObject({ code: "unauthenticated", message: "The e-mail address or the password is wrong." });
    expect(await refusal(access, { email: "nobody@example.com", password: PASSWORD })).toEqual(wrong);
    expect(await refusal(access, { email: "bob@example.com", password: PASSWORD })).toEqual(wrong);
    // The account that nobody has claimed an address for.
    expect(await refusal(access, { email: "acct_default@x", password: "" })).toEqual(wrong);
  });

  it("takes as long for an unknown address as for a wrong password", async () => {
    const { access } = await setUp({ passwords: createPasswordHasher() });
    const times = { known: [] as number[], unknown: [] as number[] };
    for (let round = 0; round < 11; round += 1) {
      for (const [kind, email] of [
        ["known", EMAIL],
        ["unknown", `nobody${round}@example.com`],
      ] as const) {
        await access.throttle.succeeded(EMAIL);
        const beganMs = performance.now();
        await refusal(access, { email, password: "not these words at all" }, networkNumber(round));
        times[kind].push(performance.now() - beganMs);
      }
    }
    const [known, unknown] = [times.known, times.unknown].map((each) => each.toSorted((a, b) => a - b)[5]!);
    // Without the hash an unknown address would be answered in a thousandth of the time.
    expect(unknown! / known!).toBeGreaterThan(1 / 3);
    expect(unknown! / known!).toBeLessThan(3);
  });

  it("makes the hash anew when it was made at another cost", async () => {
    const { access, account } = await setUp();
    const dearer = { ...access, passwords: createPasswordHasher({ ...CHEAP, passes: 2 }) };
    await signIn(dearer, ADA, HERE);
    const { passwordHash } = (await access.store.find(account.id))!;
    expect(passwordHash).toContain("t=2");
    await signIn(dearer, ADA, HERE);
    expect((await access.store.find(account.id))?.passwordHash).toBe(passwordHash);
  });

  it("refuses what cannot be a password before anything is hashed", async () => {
    const { access } = await setUp();
    const passwords = { hash: () => expect.fail("hashed"), verify: () => expect.fail("compared") };
    const password = "x".repeat(129);
    await expect(signIn({ ...access, passwords }, { email: EMAIL, password }, HERE)).rejects.toThrow("at most 128");
  });

  it("takes its session back when the password changes, or the account is disabled, meanwhile", async () => {
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
    expect(access.store.sessions.size).toBe(0);
    const disabling = during(() => access.store.update(account.id, { disabledAtMs: 1 }));
    const credentials = { email: EMAIL, password: OTHER_PASSWORD };
    await expect(signIn(disabling, credentials, HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(access.store.sessions.size).toBe(0);
  });
});

describe("the throttle", () => {
  const WRONG = "not these words at all";

  it("makes one wait from the fifth failure on, twice as long each time, up to 15 minutes", async () => {
    const { access } = await setUp();
    const waits: number[] = [];
    for (let guess = 1; guess <= 16; guess += 1) {
      const { code } = await refusal(access, { email: EMAIL, password: WRONG }, networkNumber(guess));
      expect(code).toBe("unauthenticated");
      const [, state] = [...access.throttles.states].find(([subject]) => subject.startsWith("account:"))!;
      const waitMs = state.blockedUntilMs - access.clock.now();
      waits.push(waitMs / 1000);
      access.clock.advance(waitMs);
    }
    expect(waits).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  });

  it("does the same for addresses that have no account", async () => {
    const answers = async (email: string) => {
      const { access } = await setUp();
      const seen = [];
      for (let attempt = 0; attempt < 8; attempt += 1) {
        seen.push(await refusal(access, { email, password: WRONG }, networkNumber(attempt)));
        access.clock.advance(100);
      }
      return seen;
    };
    const known = await answers(EMAIL);
    expect(known.map(({ code }) => code)).toEqual([
      ...Array.from({ length: 5 }, () => "unauthenticated"),
      ...Array.from({ length: 3 }, () => "rate_limited"),
    ]);
    expect(await answers("nobody@example.com")).toEqual(known);
  });

  it("counts attempts at once like attempts one after another", async () => {
    const { access } = await setUp();
    const attempts = Array.from({ length: 30 }, (_, index) =>
      refusal(access, { email: EMAIL, password: WRONG }, networkNumber(index)),
    );
    const codes = (await Promise.all(attempts)).map(({ code }) => code);
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(5);
    expect(codes.filter((code) => code === "rate_limited")).toHaveLength(25);
  });

  it("refuses the right password too while one has to wait, and forgets after it was right", async () => {
    const { access } = await setUp();
    for (let attempt = 0; attempt < 5; attempt += 1) await refusal(access, { email: EMAIL, password: WRONG });
    expect(await refusal(access, ADA)).toMatchObject({ code: "rate_limited", retryAfterMs: 1000 });
    access.clock.advance(1000);
    await signIn(access, ADA, HERE);
    expect(await refusal(access, { email: EMAIL, password: WRONG })).toMatchObject({ code: "unauthenticated" });
    expect(await refusal(access, { email: EMAIL, password: WRONG })).toMatchObject({ code: "unauthenticated" });
  });

  it("lets fewer than 100 guesses an hour through, from however many networks", async () => {
    const { access } = await setUp();
    let guesses = 0;
    for (let second = 0; second < 3600; second += 1) {
      const { code } = await refusal(access, { email: EMAIL, password: WRONG }, networkNumber(second));
      if (code === "unauthenticated") guesses += 1;
      access.clock.advance(1000);
    }
    expect(guesses).toBeLessThan(20);
  });

  it("lets a network try 20 times a minute, whatever accounts", async () => {
    const { access } = await setUp();
    const spray = async (count: number): Promise<unknown[]> => {
      const codes = [];
      for (let each = 0; each < count; each += 1) {
        codes.push((await refusal(access, { email: `user${each}@example.com`, password: WRONG }, "spray")).code);
      }
      return codes;
    };
    expect((await spray(25)).filter((code) => code === "unauthenticated")).toHaveLength(20);
    expect(await refusal(access, ADA, "spray")).toMatchObject({ code: "rate_limited", retryAfterMs: 60_000 });
    await signIn(access, ADA, HERE);
    access.clock.advance(60_000);
    expect(await spray(1)).toEqual(["unauthenticated"]);
  });

  it("forgets failures after a day, and names nobody", async () => {
    const { access } = await setUp();
    for (let attempt = 0; attempt < 5; attempt += 1) await refusal(access, { email: EMAIL, password: WRONG });
    expect(JSON.stringify([...access.throttles.states])).not.toContain("ada");
    access.clock.advance(24 * HOUR_MS);
    for (let attempt = 0; attempt < 4; attempt += 1) {
      expect(await refusal(access, { email: EMAIL, password: WRONG })).toMatchObject({ code: "unauthenticated" });
    }
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
    expect(await pruneSessions(access)).toBe(0);
    access.clock.advance(1);
    expect(await pruneSessions(access)).toBe(1);
  });

  it("is touched once a minute at most", async () => {
    const { access } = await setUp();
    const { id, session } = await signIn(access, ADA, HERE);
    const seen = () => access.store.sessions.get(session.hash)?.lastSeenAtMs;
    access.clock.advance(59_999);
    await findSession(access, id);
    expect(seen()).toBe(session.lastSeenAtMs);
    access.clock.advance(1);
    await findSession(access, id);
    expect(seen()).toBe(session.lastSeenAtMs + 60_000);
  });

  it("ends when its owner signs out, and only that one", async () => {
    const { access } = await setUp();
    const [one, other] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    expect(one.id).not.toBe(other.id);
    await signOut(access, one.id, HERE.network);
    expect(await findSession(access, one.id)).toBeUndefined();
    expect(await findSession(access, other.id)).toBeDefined();
    await signOut(access, "not a session", HERE.network);
  });

  it("ends at once when its account is disabled", async () => {
    const { access, account } = await setUp();
    const { id } = await signIn(access, ADA, HERE);
    await access.store.update(account.id, { disabledAtMs: 1 });
    expect(await findSession(access, id)).toBeUndefined();
  });

  it.each(["", "x", "a".repeat(42), `${"a".repeat(43)}\n`, "a".repeat(100_000), "' OR 1=1 --"])(
    "is not looked up for text %# of these",
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
  it("ends all sessions, and gives the one that did it a new ID", async () => {
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

  it("guesses the current one no faster than a sign-in", async () => {
    const { access } = await setUp();
    const signedIn = await signIn(access, ADA, HERE);
    const guess = () =>
      changePassword(access, { signedIn, current: "wrong", next: OTHER_PASSWORD }, HERE).catch((error) => error.code);
    for (let attempt = 0; attempt < 5; attempt += 1) expect(await guess()).toBe("invalid_request");
    expect(await guess()).toBe("rate_limited");
  });

  it("from the command line needs no old one, and ends the throttle and all sessions", async () => {
    const { access, account } = await setUp();
    const { id } = await startSession(access, account, { network: undefined });
    for (let attempt = 0; attempt < 5; attempt += 1) await refusal(access, { email: EMAIL, password: "wrong" });
    await resetPassword(access, account, OTHER_PASSWORD);
    expect(await findSession(access, id)).toBeUndefined();
    await signIn(access, { email: EMAIL, password: OTHER_PASSWORD }, HERE);
  });
});
