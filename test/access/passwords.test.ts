import { describe, expect, it } from "vitest";
import { createPasswordHasher } from "../../src/access/password-hash.ts";
import { checkPassword, toPassword } from "../../src/access/password-rules.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { findFailure } from "../support/errors.ts";
import { CHEAP, networkNumber, PASSWORD } from "./set-up.ts";

describe("a password's hash", () => {
  it("is argon2id with 46 MiB, two passes and a salt of its own", async () => {
    const passwords = createPasswordHasher();
    const [one, other] = [await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=47104,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(one).not.toBe(other);
    expect(await passwords.verify(PASSWORD, one)).toEqual({ matches: true, outdated: false });
    expect(await passwords.verify(`${PASSWORD} `, one)).toEqual({ matches: false, outdated: false });
  });

  it("agrees with the reference implementation", async () => {
    // Made with: echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1
    const encoded = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    const passwords = createPasswordHasher(CHEAP);
    expect(await passwords.verify("password", encoded)).toEqual({ matches: true, outdated: true });
    expect((await passwords.verify("passwore", encoded)).matches).toBe(false);
  });

  it("never matches when there is no hash", async () => {
    const passwords = createPasswordHasher(CHEAP);
    expect((await passwords.verify(PASSWORD, undefined)).matches).toBe(false);
    expect((await passwords.verify("", undefined)).matches).toBe(false);
    await expect(passwords.verify(PASSWORD, "plain text")).rejects.toThrow("cannot be read");
  });

  it("is computed for at most nine requests of a network at once; others are refused as overloaded", async () => {
    const passwords = createPasswordHasher(CHEAP);
    const all = await Promise.allSettled(Array.from({ length: 50 }, () => passwords.hash(PASSWORD)));
    const refused = all.filter((result) => result.status === "rejected");
    expect(refused).toHaveLength(41);
    expect(refused[0]?.reason).toMatchObject({ code: "overloaded", retryAfterMs: 2000 });
    // The queue is empty again.
    expect(await passwords.hash(PASSWORD)).toMatch(/^\$argon2id/);
  });

  it("is computed for networks in turn, so that those that flood the queue delay others by one hash each", async () => {
    const passwords = createPasswordHasher(CHEAP);
    const order: string[] = [];
    const hash = (network: string) => passwords.hash(PASSWORD, { network }).then(() => order.push(network));
    const flood = Array.from({ length: 120 }, (_, index) => hash(networkNumber(index % 20)).catch(() => undefined));
    expect(() => passwords.requireRoom("newcomer")).not.toThrow();
    await hash("newcomer");
    expect(order).toHaveLength(22);
    await Promise.all(flood);
  });

  it("is computed for known browsers and sessions of accounts in turn, so that one account neither delays nor refuses those of others", async () => {
    const passwords = createPasswordHasher(CHEAP);
    const encoded = await passwords.hash(PASSWORD);
    const order: string[] = [];
    const check = (known: string) => passwords.verify(PASSWORD, encoded, { known }).then(() => order.push(known));
    const flood = Array.from({ length: 100 }, () => check("acct_eve").catch(() => "refused"));
    await check("acct_ada");
    expect(order.indexOf("acct_ada")).toBeLessThan(5);
    const refused = (await Promise.all(flood)).filter((outcome) => outcome === "refused");
    // Two are computed at once, and eight wait.
    expect(refused).toHaveLength(90);
  });

  it("is computed for each request that arrives while fewer than 128 networks wait", async () => {
    const passwords = createPasswordHasher(CHEAP);
    const hash = (index: number) => passwords.hash(PASSWORD, { network: networkNumber(index) });
    // The first one begins at once, and 8 of each of 16 networks fill the queue.
    const flood = Promise.allSettled(Array.from({ length: 129 }, (_, index) => hash(index % 16)));
    const newcomers = Array.from({ length: 112 }, (_, index) => hash(16 + index));
    expect(() => passwords.requireRoom(networkNumber(128))).toThrow("busy checking passwords");
    await expect(hash(128)).rejects.toMatchObject({ code: "overloaded" });
    await expect(Promise.all(newcomers)).resolves.toHaveLength(112);
    const served = (await flood).map(({ status }) => status === "fulfilled");
    // Each network of the flood has kept its oldest.
    expect(served.lastIndexOf(true)).toBe(16);
    expect(served.filter(Boolean)).toHaveLength(17);
  });
});

describe("a password", () => {
  const check = (text: string): void => checkPassword(toPassword(text), "ada.lovelace@example.com");

  it.each([
    PASSWORD,
    "Tr0ub4dor&3xyz",
    "            a",
    "correct horse battery",
    "🦜".repeat(5) + "parrots",
    "пароль из слов",
    "nul\0byte inside",
    "x".repeat(64) + "y and more words",
    // Three known words; MOST_WORDS is two.
    "monkeydragonfreedom",
    "correcthorsebattery",
    "four score and seven",
    "dog-8372-6251-9934-cat-73",
    "kahvipannu2026",
  ])("is accepted: case %#", (text) => {
    expect(() => check(text)).not.toThrow();
  });

  it.each([
    ["short", "at least 12"],
    ["elevenchars", "at least 12"],
    ["🦜🦜🦜🦜🦜🦜", "at least 12"],
    ["e\u0301".repeat(11), "at least 12"],
    ["x".repeat(129), "at most 128"],
    ["é".repeat(129), "at most 128"],
    ["a".repeat(1_000_000), "at most 128"],
    ["aaaaaaaaaaaa", "too common"],
    ["abcabcabcabc", "too common"],
    ["123456789012", "too common"],
    ["qwertyuiop[]", "too common"],
    ["lkjhgfdsapoiuytrewq", "too common"],
    ["1qaz2wsx3edc", "too common"],
    ["PasswordPassword", "too common"],
    ["P@ssw0rd2024!", "too common"],
    ["!!Welcome1234", "too common"],
    ["MichaelJackson", "too common"],
    ["parley123456", "too common"],
    ["parleyparley", "too common"],
    ["Ada.Lovelace", "too common"],
    ["ada.lovelace2024", "too common"],
    ["ADA.lovelace@example.com", "too common"],
    ["letmeinletme", "too common"],
    ["trustno1trust", "too common"],
    ["companyname1", "too common"],
    ["Company-Name-2026", "too common"],
    ["example12345", "too common"],
    ["Lovelace@Example1", "too common"],
    ["MonkeyDragon99", "too common"],
    ["zaqzaqzaqzaq1", "too common"],
    ["qwe123asd456", "too common"],
    ["123qwe123qwe", "too common"],
    ["qwertyytrewq", "too common"],
    ["a1s2d3f4g5h6", "too common"],
    ["nastyanastya", "too common"],
    ["Pa$$word-P@ssword", "too common"],
  ])("is refused: case %#", (text, why) => {
    expect(() => check(text)).toThrow(why);
    expect(() => check(text)).toThrow(expect.objectContaining({ code: "invalid_request", param: "password" }));
  });

  it("is checked within 200 ms of the processor, whatever it is", () => {
    for (const unit of [
      "qwertyuiop",
      "ab",
      "monkeydragon",
      "monkey1",
      "aab",
      "1qaz",
      "lovelove1234 ",
      "abcdefghijklmnop",
    ]) {
      const password = `${unit.repeat(128 / unit.length)}ß`.slice(-128);
      expect(cpuMs(() => findFailure(() => check(password)))).toBeLessThan(200);
    }
  });

  it("is not repeated in the error", () => {
    expect(() => check("Tr0ub4dor")).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("Tr0ub") }),
    );
  });

  it("has up to 128 code points, and is never truncated", async () => {
    const long = "🦜".repeat(64) + "xo".repeat(32);
    expect(() => check(long)).not.toThrow();
    const passwords = createPasswordHasher(CHEAP);
    const encoded = await passwords.hash(toPassword(long));
    expect((await passwords.verify(toPassword(long.slice(0, -1)), encoded)).matches).toBe(false);
  });

  it("is the same in every Unicode composition, and only then", async () => {
    const passwords = createPasswordHasher(CHEAP);
    const encoded = await passwords.hash(toPassword("caf\u00e9 au lait please"));
    expect((await passwords.verify(toPassword("cafe\u0301 au lait please"), encoded)).matches).toBe(true);
    for (const other of ["CAFÉ au lait please", "cafe au lait please", "café au lait please "]) {
      expect((await passwords.verify(toPassword(other), encoded)).matches).toBe(false);
    }
  });
});
