import { hash } from "node:crypto";
import { isIP } from "node:net";
import { invalidField } from "../core/failure.ts";
import { toMailDomain } from "../net/mail-domain.ts";

const MAX_EMAIL_LENGTH = 254;

/** Local part without quotes: no invisible characters, and none with a meaning in a list of addresses. */
const NAME = /^[^\s@\p{Cc}\p{Cf}\p{Cs}\p{Z}<>"(),:;[\\\]]+$/u;

/**
 * Normalises an e-mail address for storage and comparison: lower case, no surrounding spaces, one spelling of the domain. Checks only the
 * shape: no e-mail confirms that it is the account's. Throws an `invalid_request` Failure.
 */
export function toEmail(text: string, field = "email"): string {
  if (text.length > MAX_EMAIL_LENGTH + 64) throw invalidField(field, `has at most ${MAX_EMAIL_LENGTH} characters`);
  const written = text.trim().normalize("NFC").toLowerCase();
  if (written.length > MAX_EMAIL_LENGTH) throw invalidField(field, `has at most ${MAX_EMAIL_LENGTH} characters`);
  const at = written.lastIndexOf("@");
  const [name, domain] = [written.slice(0, Math.max(at, 0)), toMailDomain(written.slice(at + 1))];
  if (!NAME.test(name) || domain === undefined) throw invalidField(field, "must be an e-mail address");
  return `${name}@${domain}`;
}

/** Hashes an address for logs and events, where the address itself must not appear. */
export function hashEmail(email: string): string {
  return hash("sha256", email, "hex").slice(0, 16);
}

/** The network that one attacker can be expected to own: `192.0.2.0/24`, `2001:db8:1::/48`. */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (isIP(plain) === 4) return `${plain.split(".").slice(0, 3).join(".")}.0/24`;
  if (isIP(plain) !== 6) return "unknown";
  return `${firstGroups(plain, 3).join(":")}::/48`;
}

/** The subnet of an IPv6 address: `2001:db8:1:2::/64`. A machine has one; a provider's network has those of many machines. */
export function subnetOf(address: string): string {
  return `${firstGroups(address.replace(/%.*$/, ""), 4).join(":")}::/64`;
}

/** The first groups of an IPv6 address, without leading zeros. */
function firstGroups(address: string, count: number): string[] {
  const [head = "", tail] = address.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  // An IPv4 address embedded at the end counts as two groups.
  const width = after.length + (after.at(-1)?.includes(".") === true ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(8 - before.length - width, 0);
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after].slice(0, count);
  return groups.map((group) => Number.parseInt(group, 16).toString(16));
}
