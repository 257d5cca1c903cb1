import { describe, expect, it } from "vitest";
import { isPrivateAddress } from "../../src/net/private-addresses.ts";

describe("an address", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.53",
    "169.254.169.254",
    "172.31.255.255",
    "192.168.1.1",
    "198.19.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::a00:1",
    "fd00::1",
    "fe80::1",
    "ff02::1",
  ])("%s is private", (address) => {
    expect(isPrivateAddress(address)).toBe(true);
  });

  it.each([
    "8.8.8.8",
    "11.0.0.1",
    "100.128.0.1",
    "172.32.0.1",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
  ])("%s is public", (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  });
});
