import { generateKeyPairSync } from "node:crypto";
import { exportJWK, SignJWT } from "jose";

/** An issuer of JSON Web Tokens for the audience `parley`, that end in an hour. */
export class TestIssuer {
  readonly issuer: string;
  readonly #keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

  constructor(issuer: string) {
    this.issuer = issuer;
  }

  /** Its JSON Web Key Set. */
  async keySet(): Promise<string> {
    return JSON.stringify({ keys: [{ ...(await exportJWK(this.#keys.publicKey)), kid: "1", alg: "ES256" }] });
  }

  sign(claims: Record<string, unknown>): Promise<string> {
    const exp = Math.floor(Date.now() / 1000) + 3600;
    return new SignJWT({ iss: this.issuer, aud: "parley", exp, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .sign(this.#keys.privateKey);
  }
}
