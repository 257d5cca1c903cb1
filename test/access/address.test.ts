import { describe, expect, it } from "vitest";
import { hashEmail, networkOf, toEmail } from "../../src/access/address.ts";

describe("an e-mail address", () => {
  it("is kept in lower case without spaces around it", () => {
    expect(toEmail("  Ada@Example.COM ")).toBe("ada@example.com");
    expect(toEmail(`${"a".repeat(242)}@example.com`)).toHaveLength(254);
  });

  it.each([
    ["ada@corp.test.", "ada@corp.test"],
    ["ada@ｃｏｒｐ.test", "ada@corp.test"],
    ["ada@corp。test", "ada@corp.test"],
    ["ada@XN--BCHER-KVA.example", "ada@bücher.example"],
    ["ada@Bücher.example", "ada@bücher.example"],
    ["ada+list@localhost", "ada+list@localhost"],
  ])("has one spelling of its domain: %s is %s", (text, email) => {
    expect([toEmail(text), toEmail(email)]).toEqual([email, email]);
  });

  it.each([
    "",
    "ada",
    "@example.com",
    "ada@",
    "a@b@c",
    "a b@example.com",
    "a\0@example.com",
    "<a@example.com>",
    ...[
      "corp\u00ad.test",
      "co\u200brp.test",
      "corp.test,",
      "corp.test;",
      "(x)corp.test",
      "corp.test(x)",
      "%63orp.test",
    ].map((domain) => `ada@${domain}`),
    ...["corp.test/x", "corp.test..", "a..test", ".test", "a_b.test", "[::1]", "corp.test:25"].map(
      (domain) => `ada@${domain}`,
    ),
    ...["a\u200b", "a\u00ad", "a\u2028b", "a,b", "a;b", "a(b)", "a:b", "a\\b", "\u202ea"].map(
      (name) => `${name}@corp.test`,
    ),
  ])("is not %j", (text) => expect(() => toEmail(text)).toThrow("must be an e-mail address"));

  it.each([`${"a".repeat(243)}@example.com`, "a".repeat(1_000_000)])("has at most 254 characters: case %#", (text) => {
    expect(() => toEmail(text)).toThrow("at most 254");
  });

  it("is hashed for the log", () => {
    expect(hashEmail("ada@example.com")).toMatch(/^[0-9a-f]{16}$/);
    expect(hashEmail("ada@example.com")).not.toBe(hashEmail("bob@example.com"));
  });
});

describe("a network", () => {
  it.each([
    ["192.0.2.77", "192.0.2.0/24"],
    ["::ffff:192.0.2.77", "192.0.2.0/24"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
    ["2001:0DB8::1", "2001:db8:0::/48"],
    ["::1", "0:0:0::/48"],
    ["fe80::1%eth0", "fe80:0:0::/48"],
    ["1:2:3::4:5:6", "1:2:3::/48"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0::/48"],
    ["not an address", "unknown"],
    ["", "unknown"],
  ])("of %s is %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
