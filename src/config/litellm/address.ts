import { isVariable, type Part } from "./part.ts";
import type { Remarks } from "./remarks.ts";

/** An address without a user, a password and a query, which may be secrets. */
export interface Address {
  readonly text: string;
  /** The query, for parts that are no secrets. */
  readonly query: URLSearchParams;
}

interface AddressParts {
  readonly params: Part;
  readonly remarks: Remarks;
  /** Settings that may have it; the first one that is there counts. */
  readonly keys: readonly string[];
  /** Parts of the query that are converted. Default: none. */
  readonly converted?: readonly string[];
}

const SCHEME = "([a-z][\\w+.-]*:[/\\\\]*)?";
const USER = new RegExp(`^${SCHEME}[^/\\\\?#]*@`, "i");
/** Where the end of a password is not certain. */
const ALL_BEFORE_HOST = new RegExp(`^${SCHEME}.*@`, "is");

/** Reads an address. Undefined, with a remark, for one that cannot be read. */
export function takeAddress({ params, remarks, keys, converted = [] }: AddressParts): Address | undefined {
  const key = keys.find((name) => params.takeText(name) !== undefined);
  if (key === undefined) return undefined;
  const given = params.takeText(key)!;
  const path = [...params.path, key];
  const isReadable = URL.canParse(given);
  if (!isReadable && !isVariable(given) && /[@?#]/.test(given)) {
    remarks.lost(path, "it cannot be read as an address; write base_url");
    return undefined;
  }
  const whole = given.replace(isReadable ? USER : ALL_BEFORE_HOST, "$1");
  if (whole !== given) remarks.lost(path, "an address has no user and password; write them as api_keys or headers");
  const query = new URLSearchParams(/\?([^#]*)/s.exec(whole)?.[1]);
  if ([...query.keys()].some((name) => !converted.includes(name)))
    remarks.lost(path, "an address has no query; write a key in it as api_keys or headers");
  return { text: whole.replace(/[?#].*$/s, ""), query };
}
