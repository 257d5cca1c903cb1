import { BlockList, isIP } from "node:net";

/** IPv4 networks without public services, by IANA's registry of special-purpose addresses. */
const PRIVATE_V4 = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8],
  ["168.63.129.16", 32], // Azure's services for its machines
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // relays of 6to4
  ["192.168.0.0", 16],
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 3], // multicast and reserved
] as const) {
  PRIVATE_V4.addSubnet(network, prefix, "ipv4");
}

/** IPv6 networks with assigned public addresses. */
const GLOBAL_V6 = new BlockList();
GLOBAL_V6.addSubnet("2000::", 3, "ipv6");

/** Parts of `GLOBAL_V6` without public services. Some embed IPv4 addresses, which may be private. */
const PRIVATE_V6 = new BlockList();
for (const [network, prefix] of [
  ["2001::", 23], // protocol assignments; Teredo is 2001::/32
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["3fff::", 20], // documentation
] as const) {
  PRIVATE_V6.addSubnet(network, prefix, "ipv6");
}

/** IPv4-mapped IPv6 addresses: `::ffff:10.0.0.1`. */
const MAPPED_V4 = new BlockList();
MAPPED_V4.addSubnet("::ffff:0:0", 96, "ipv6");

/**
 * Whether an IPv4 or IPv6 address cannot belong to a public service. IPv4-mapped addresses count as IPv4. Of IPv6, only assigned
 * global addresses are public, except those that translate to IPv4 (NAT64, 6to4, Teredo, SIIT).
 */
export function isPrivateAddress(address: string): boolean {
  if (isIP(address) !== 6) return PRIVATE_V4.check(address, "ipv4");
  // BlockList checks a mapped address against IPv4 networks.
  if (MAPPED_V4.check(address, "ipv6")) return PRIVATE_V4.check(address, "ipv6");
  return !GLOBAL_V6.check(address, "ipv6") || PRIVATE_V6.check(address, "ipv6");
}

/** Link-local networks, and other addresses of clouds' metadata services, from the clouds' documentation (November 2026). */
const METADATA = new BlockList();
for (const [network, prefix] of [
  ["169.254.0.0", 16],
  ["100.100.100.200", 32], // Alibaba Cloud
  ["168.63.129.16", 32], // Azure
  ["192.0.0.192", 32], // Oracle Cloud
] as const) {
  METADATA.addSubnet(network, prefix, "ipv4");
  METADATA.addSubnet(`64:ff9b::${network}`, 96 + prefix, "ipv6"); // NAT64
}
METADATA.addSubnet("fe80::", 10, "ipv6");
METADATA.addSubnet("fd00:ec2::", 32, "ipv6"); // AWS
METADATA.addAddress("fd20:ce::254", "ipv6"); // Google Cloud

/** Whether an IPv4 or IPv6 address is link-local, or that of a cloud's metadata service, which gives a machine its credentials. */
export function isMetadataAddress(address: string): boolean {
  return METADATA.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
