import { describe, expect, it } from "vitest";
import { isMetadataAddress, isPrivateAddress } from "../../src/net/private-addresses.ts";

describe("an address", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.53",
    "168.63.129.16",
    "169.254.169.254",
    "172.31.255.255",
    "192.168.1.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.19.0.1",
    "198.51.100.1",
    "203.0.113.255",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:7f00:1",
    "::ffff:203.0.113.1",
    "::a00:1",
    "::ffff:0:a00:1",
    "::ffff:0:808:808",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fd00::1",
    "fe80::1",
    "fec0::1",
    "feff::1",
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
    "192.0.1.1",
    "192.0.3.1",
    "192.88.98.1",
    "198.51.101.1",
    "203.0.114.1",
    "2000::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db9::1",
    "2003::1",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "3fff:1000::1",
    "::ffff:8.8.8.8",
  ])("%s is public", (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  });

  it.each(["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192"])(
    "%s is of a cloud's metadata, mapped and through NAT64 too",
    (address) => {
      for (const each of [address, `::ffff:${address}`, `64:ff9b::${address}`])
        expect(isMetadataAddress(each)).toBe(true);
      expect(isMetadataAddress("64:ff9b::8.8.8.8")).toBe(false);
    },
  );
});
