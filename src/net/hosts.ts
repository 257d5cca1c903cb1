const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^@/?#]*)(.*)$/is;

/**
 * Splits an address with several hosts, such as `redis://:password@a:6379,b:6379/0`, into one address for each host, in their
 * order. Undefined for an invalid address.
 */
export function splitHosts(address: string): readonly URL[] | undefined {
  const [, start = "", authority = "", rest = ""] = PARTS.exec(address) ?? [];
  const hosts = authority.split(",");
  const urls = hosts.map((host) => URL.parse(`${start}${host}${rest}`));
  if (hosts.length > 1 && hosts.includes("")) return undefined;
  return urls.some((url) => url === null) ? undefined : (urls as URL[]);
}
