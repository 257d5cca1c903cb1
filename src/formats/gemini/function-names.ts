import { createHash } from "node:crypto";
import { NAME } from "../../core/validate.ts";

/** Characters of a name that its alias keeps. */
const KEPT_CHARS = 48;

/**
 * The names of a request's functions. The format allows more characters than the contract, so such a function gets an alias, which
 * is the same in every request.
 */
export class FunctionNames {
  readonly #given = new Map<string, string>();

  /** The name in the contract. */
  toContract(name: string): string {
    // Core refuses other names as invalid.
    if (NAME.test(name) || !/^[\w.:-]{1,128}$/.test(name)) return name;
    const hash = createHash("sha256").update(name).digest("hex").slice(0, 12);
    const alias = `${name.slice(0, KEPT_CHARS).replace(/[.:]/g, "_")}_${hash}`;
    this.#given.set(alias, name);
    return alias;
  }

  /** The caller's name. */
  toGiven(name: string): string {
    return this.#given.get(name) ?? name;
  }
}
