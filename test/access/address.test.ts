import { describe, expect, it } from "vitest";
import { hashEmail, networkOf, toEmail } from "../../src/access/address.ts";

describe("an e-mail address", () => {
  it("is kept in lower case without spaces around it", () => {
    expect(toEmail("  Ada@Example.COM ")).toBe("ada@example.com");
    expect(toEmail(`${"a".repeat(242)}@example.com`)).toHaveLength(254);
  });

  it.each(["", "ada", "@example.com", "ada@", "a@b@c", "a b@example.com", "a\0@example.com", "<a@example.com>"])(
    "is not %j",
    (text) => expect(() => toEmail(text)).toThrow("must be an e-mail address"),
  );

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
