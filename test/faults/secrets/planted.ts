/** Where something may have got to, by its name, and what is there. */
export type Artefacts = ReadonlyMap<string, string>;

/** Secrets that occur nowhere else, each planted in one place; where they turn up again is where they have leaked to. */
export class Planted {
  readonly #secrets = new Map<string, string>();

  /** Plants one of its own making, or the one that is given; it must be long enough to be told from chance. */
  plant(what: string, secret = `planted-${this.#secrets.size}-${crypto.randomUUID()}`): string {
    if (secret.length < 20) throw new RangeError(`${what} is too short to be looked for`);
    if (this.#secrets.has(what)) throw new RangeError(`${what} was planted already`);
    this.#secrets.set(what, secret);
    return secret;
  }

  /** What was planted under this name. */
  secretOf(what: string): string {
    const secret = this.#secrets.get(what);
    if (secret === undefined) throw new RangeError(`${what} was not planted`);
    return secret;
  }

  /** How many kinds there are. */
  get count(): number {
    return this.#secrets.size;
  }

  /** Which of them are in which artefact, as they are or as they would be in base64 or in a URL. */
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
  // What stands beside it changes the last digits.
  return [secret, base64.slice(0, -4), encodeURIComponent(secret), Buffer.from(secret).toString("hex")];
}
