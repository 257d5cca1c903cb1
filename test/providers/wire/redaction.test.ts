import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactionOf } from "../../../src/providers/wire/redaction.ts";

const SECRET = 'horse/staple+ö "quoted" \\bat\'tery!';
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
