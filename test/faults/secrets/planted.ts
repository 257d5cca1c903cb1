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

  /** Returns which secrets occur in which artefact where they do not belong, also encoded in base64 or for a URL. */
  findIn(artefacts: Artefacts): string[] {
    return [...this.#secrets].flatMap(([what, secret]) =>
      [...artefacts]
        .filter(([name, text]) => !isKept(what, name) && formsOf(secret).some((form) => text.includes(form)))
        .map(([name]) => `${what} in ${name}`),
    );
  }

  /** Names of the artefacts that contain the secret as it is. */
  placesOf(what: string, artefacts: Artefacts): string[] {
    const secret = this.secretOf(what);
    return [...artefacts].filter(([, text]) => text.includes(secret)).map(([name]) => name);
  }
}

/**
 * The caller's own words for whom and what a request is for: the ledger keeps them, as docs/operations/attribution.md says, and nothing
 * else does: no log, metric or error. API keys among them are planted by themselves, and belong nowhere.
 */
const ATTRIBUTION: ReadonlySet<string> = new Set(["a user's name", "metadata"]);

/** The database with the ledger: SQLite's files, its notes of calls in flight, a backup of it, and PostgreSQL's tables of completions. */
const LEDGER = /^(?:data\/parley\.db|data\/begun-completions-|backup\.db|PostgreSQL's completions)/;

function isKept(what: string, name: string): boolean {
  return ATTRIBUTION.has(what) && LEDGER.test(name);
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64");
  // Neighbouring bytes change the last digits.
  return [secret, base64.slice(0, -4), encodeURIComponent(secret), Buffer.from(secret).toString("hex")];
}
