import { domainToASCII, domainToUnicode } from "node:url";

/** Letters, digits, hyphens and dots of all scripts. The conversion would decode or drop other characters. */
const WRITTEN = /^[\p{L}\p{M}\p{N}\-.\u3002\uff0e\uff61]{1,320}$/u;
const LABELS = /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;

/**
 * The canonical spelling of an e-mail domain, which is stored and compared: lower case, without a trailing dot, in Unicode (not
 * `xn--`). Undefined for a text that is no domain.
 */
export function toMailDomain(text: string): string | undefined {
  if (!WRITTEN.test(text)) return undefined;
  const ascii = domainToASCII(text).replace(/\.$/, "");
  return LABELS.test(ascii) ? domainToUnicode(ascii) : undefined;
}
