import { domainToASCII, domainToUnicode } from "node:url";

/** Letters, digits, hyphens and dots of all scripts: the conversion would decode or drop others. */
const WRITTEN = /^[\p{L}\p{M}\p{N}\-.\u3002\uff0e\uff61]{1,320}$/u;
const LABELS = /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;

/**
 * The domain of an e-mail address in the one spelling that is stored and compared: lower case, without a dot at the end, letters of other
 * scripts as such (not `xn--`). Undefined for a text that is no domain.
 */
export function toMailDomain(text: string): string | undefined {
  if (!WRITTEN.test(text)) return undefined;
  const ascii = domainToASCII(text).replace(/\.$/, "");
  return LABELS.test(ascii) ? domainToUnicode(ascii) : undefined;
}
