import { isIP } from "node:net";

/** Schemes that the gRPC library resolves by itself; the latter take several addresses, separated by commas. */
const SCHEMES = /^(dns|unix|ipv4|ipv6):/;

/**
 * Converts the value of `--core` to a target of the gRPC library: one of its own targets (`dns:///cores:50051`), one
 * `host:port`, or several IP addresses with ports, separated by commas. Throws a RangeError that names the valid forms.
 */
export function coreTarget(text: string): string {
  if (SCHEMES.test(text)) return text;
  const addresses = text.split(",").map((each) => parse(each.trim()));
  if (addresses.length === 1) return `dns:///${text.trim()}`;
  const families = new Set(addresses.map(isIP));
  if (families.has(0)) throw new RangeError("several cores are one name that resolves to all of them, or IP addresses");
  if (families.size > 1) throw new RangeError("the addresses must be all IPv4 or all IPv6");
  return `${families.has(4) ? "ipv4" : "ipv6"}:${text.replaceAll(" ", "")}`;
}

/** The host of `host:port`. */
function parse(address: string): string {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(address);
  if (match === null || Number(match[3]) === 0 || Number(match[3]) > 65_535)
    throw new RangeError(`"${address}" is not HOST:PORT`);
  return match[1] ?? match[2]!;
}
