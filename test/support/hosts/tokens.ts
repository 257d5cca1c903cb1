import { randomBytes } from "node:crypto";

/** Tokens that a token service has issued, and that a service accepts while they are valid. */
export class IssuedTokens {
  readonly #expiries = new Map<string, number>();

  /** Number of tokens so far. */
  get issued(): number {
    return this.#expiries.size;
  }

  issue(seconds: number): string {
    // Letters only, so that no pattern of credentials matches: only code that knows the token can remove it from a text.
    const letters = randomBytes(5)
      .toString("hex")
      .replace(/\d/g, (digit) => "ghijklmnop"[Number(digit)]!);
    const token = `issued-${letters}`;
    this.#expiries.set(token, Date.now() + seconds * 1000);
    return token;
  }

  /** Revokes all tokens before their expiry. */
  revokeAll(): void {
    for (const token of this.#expiries.keys()) this.#expiries.set(token, 0);
  }

  /** Whether the header `authorization` has a token that is valid now. */
  accepts(authorization: string | undefined): boolean {
    const token = /^Bearer (\S+)$/.exec(authorization ?? "")?.[1];
    return token !== undefined && (this.#expiries.get(token) ?? 0) > Date.now();
  }
}
