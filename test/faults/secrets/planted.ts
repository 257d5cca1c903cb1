/** An artefact that may contain a secret: its name and its content. */
export type Artefacts = ReadonlyMap<string, string>;

/** Unique secrets, each planted in one place; a copy elsewhere is a leak. */
export class Planted {
  readonly #secrets = new Map<string, string>();

  /** Plants a random secret or the given one, which must be long enough to be unique. */
  plant(what: string, secret = `planted-${this.#secrets.size}-${crypto.randomUUID()}`): string {
    if (secret.length < 20) throw new RangeError(`${what} is too short to be looked for`);
    if (this.#secrets.has(what)) throw new RangeError(`${what} was planted already`);
    this.#secrets.set(what, secret);
    return secret;
  }

  /** Returns the secret with this name. */
  secretOf(what: string): string {
    const secret = this.#secrets.get(what);
    if (secret === undefined) throw new RangeError(`${what} was not planted`);
    return secret;
  }

  /** Number of kinds. */
  get count(): number {
    return this.#secrets.size;
  }

  /** Returns which secrets occur in which artefact, also encoded in base64 or for a URL. */
  findIn(artefacts: Artefacts): string[] {
    return [...this.#secrets].flatMap(([what, secret]) =>
      [...artefacts]
        .filter(([, text]) => formsOf(secret).some((form) => text.includes(form)))
        .map(([name]) => `${what} in ${name}`),
    );
  }
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64");
  // Neighbouring bytes change the last digits.
  return [secret, base64.slice(0, -4), encodeURIComponent(secret), Buffer.from(secret).toString("hex")];
}
