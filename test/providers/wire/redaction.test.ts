import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactionOf } from "../../../src/providers/wire/redaction.ts";

const SECRET = 'horse/staple+ö "quoted" \\bat\'tery!';
const percentOfAll = (text: string): string =>
  Buffer.from(text)
    .toString("hex")
    .replace(/../g, (byte) => `%${byte}`);
const unitsOf = (text: string): string =>
  text.replace(/[^]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** Texts that are escaped one to three times. */
const escaped = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(texts, fc.constantFrom(...ESCAPES), fc.integer({ min: 1, max: 3 })).map(([text, escape, times]) => {
    let result = text;
    for (let time = 0; time < times; time++) result = escape(result);
    return result;
  });
const ESCAPES: readonly ((text: string) => string)[] = [
  encodeURIComponent,
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => text.replaceAll("&", "&amp;").replace(/[<>"'/]/g, (char) => `&#x${char.charCodeAt(0).toString(16)};`),
];
const redact = redactionOf([SECRET, "correcthorsebatterystaple"]);

describe("a provider's credentials", () => {
  it.each([
    ["as they are", SECRET],
    ["in other letters", SECRET.toUpperCase()],
    ["in JSON", JSON.stringify({ key: SECRET })],
    ["in JSON that escapes slashes", JSON.stringify(SECRET).replaceAll("/", "\\/")],
    ["in ASCII JSON", JSON.stringify(SECRET).replace("ö", "\\u00f6")],
    ["in JSON in JSON", JSON.stringify(JSON.stringify(SECRET))],
    ["in a URL", `?key=${encodeURIComponent(SECRET)}&x=1`],
    ["in a URL by RFC 3986", encodeURIComponent(SECRET).replaceAll("'", "%27").replaceAll("!", "%21")],
    ["in a URL that keeps slashes", encodeURIComponent(SECRET).replaceAll("%2F", "/")],
    ["in a form", new URLSearchParams({ key: SECRET }).toString()],
    ["in a URL in a URL", encodeURIComponent(encodeURIComponent(SECRET))],
    ["in a URL that encodes all characters", percentOfAll(SECRET)],
    ["in HTML", SECRET.replaceAll("+", "&#43;").replaceAll('"', "&quot;").replaceAll("'", "&#x27;")],
    ["in HTML that escapes slashes", SECRET.replaceAll("/", "&#x2F;").replaceAll('"', "&#034;")],
    ["in HTML in HTML", SECRET.replaceAll("/", "&amp;#47;").replaceAll('"', "&amp;amp;quot;")],
    ["in HTML in JSON", JSON.stringify(SECRET.replaceAll('"', "&quot;").replaceAll("/", "&#x2F;"))],
    ["in JSON that escapes all characters", unitsOf(SECRET)],
    ["in JSON that escapes all characters, in JSON", JSON.stringify(unitsOf(SECRET))],
    ["in hexadecimal", Buffer.from(SECRET).toString("hex")],
    ["in upper-case hexadecimal behind a name", Buffer.from(`user:${SECRET}`).toString("hex").toUpperCase()],
    ["in base64 in a URL", encodeURIComponent(Buffer.from(SECRET).toString("base64"))],
    ["in base64", Buffer.from(SECRET).toString("base64")],
    ["in base64 for URLs", Buffer.from(SECRET).toString("base64url")],
    ["in base64 behind a name", Buffer.from(`user:${SECRET}`).toString("base64")],
    ["in base64 behind a longer name", Buffer.from(`users:${SECRET}!`).toString("base64")],
    ["one of its words", 'said "quoted" twice'],
  ])("are replaced: %s", (_, text) => {
    const shown = redact(`got ${text} here`);
    expect(shown).toContain("[key]");
    for (const part of ["staple", "tery", "quoted"]) expect(shown.toLowerCase()).not.toContain(part);
  });

  it.each([
    ["key Zq7w-correct-horse-42-battery", "Bad key [key] given"],
    ["key Zq7w-correct…", "Bad key [key]… given"],
    ["key Zq7w-correct-ho…", "Bad key [key]… given"],
    ["key …horse-42-battery", "Bad key …[key] given"],
    ["key …42-battery", "Bad key …42-battery given"],
    ["key Zq7w-correct****rse-42-battery", "Bad key [key]****[key] given"],
    ["key ZQ7W%2Dcorrect%2dhor&hellip;", "Bad key [key]&hellip; given"],
    ["key Zq7w-correc…", "Bad key Zq7w-correc… given"],
    ["one=%Zq7w-correct-horse-42-battery two", "Bad one=%[key] two given"],
    ["one=%abcd2345 two", "Bad one=%[key] two given"],
  ])("are replaced when they are cut: %s", (text, shown) => {
    const cut = redactionOf(["Zq7w-correct-horse-42-battery", "abcd2345"]);
    expect(cut(`Bad ${text} given`)).toBe(shown);
  });

  it("are not looked for by a beginning that is an ordinary word", () => {
    const beta = redactionOf(["prompt-caching-2024-07-31", "organizational-unit/subscription"]);
    for (const text of ["prompt-caching is off", "an organization with a subscription", "an organizational unit"])
      expect(beta(text)).toBe(text);
    expect(beta("no organizational-unit here")).toBe("no [key] here");
  });

  it("are replaced with their escapes, and nothing else is", () => {
    fc.assert(
      fc.property(
        escaped(fc.string({ maxLength: 8 })),
        escaped(fc.constant(SECRET)),
        escaped(fc.string()),
        (...texts) => {
          const [before, secret, after] = texts;
          expect(redact(`${before} ${secret} ${after}`)).toBe(`${before} [key] ${after}`);
        },
      ),
    );
  });

  it("are replaced wherever they stand in base64", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const text = Buffer.from(`${before}correcthorsebatterystaple${after}`).toString("base64");
        const shown = redact(text);
        expect(shown).toContain("[key]");
        expect(Buffer.from(shown.replaceAll("[key]", ""), "base64").toString()).not.toContain("horse");
      }),
    );
  });

  it("are not looked for when they are words that anything may have", () => {
    const short = redactionOf(["true", "a b c", "", "v1.2024"]);
    expect(short("true is a b c of v1.2024")).toBe("true is a b c of v1.2024");
    expect(redactionOf([])("anything")).toBe("anything");
  });

  it("are taken literally", () => {
    expect(redactionOf(["a.*b(c)[d]{e}|^$"])("axxb(c) a.*b(c)[d]{e}|^$")).toBe("axxb(c) [key]");
  });
});
