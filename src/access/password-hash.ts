import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { Failure } from "../core/failure.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** Cost parameters of a hash. */
export interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** 46 MiB and two passes, as OWASP and ASVS recommend; about 0.1 s of one core. */
const COST: HashCost = { memoryKib: 47_104, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Hashes computed at once; each takes a core. At most one for unknown browsers: any client can keep that busy, and on two
 * cores the event loop needs the other one.
 */
const MAX_RUNNING = { all: 2, unknown: 1 } as const;
/** Limits of waiting passwords of each kind. Each takes about 0.1 s, so the first of an account or network has its turn within 13 s. */
const PLACES = { perKey: 8, all: 128 } as const;
const RETRY_AFTER_MS = 2_000;
/** Queue key of callers without a network. */
const NO_NETWORK = "none";

/**
 * Queue of a password. Known browsers, sessions and invited people have their own, which goes first, so that others cannot delay
 * them; there accounts take turns, and `known` is the account's ID, or the address of a person who has none yet. Unknown browsers
 * wait for the turn of their network.
 */
type Lane = { readonly known: string } | { readonly network: string | undefined };

/** Result of a comparison. */
interface Verdict {
  readonly matches: boolean;
  /** The hash has another cost than new ones: rehash while the password is known. */
  readonly outdated: boolean;
}

/**
 * Makes and checks encoded argon2id hashes, `$argon2id$v=19$m=47104,t=2,p=1$salt$hash`. Throws `overloaded` when the queue
 * is full: password guessing must not use up the machine. The default lane is that of unknown browsers without a network.
 */
export interface PasswordHasher {
  hash(password: string, lane?: Lane): Promise<string>;
  /** Takes as long without a hash to compare with: the time does not tell whether an account exists. */
  verify(password: string, encoded: string | undefined, lane?: Lane): Promise<Verdict>;
  /** Throws `overloaded` while the queue of unknown browsers has no place for this network. */
  requireRoom(network: string | undefined): void;
}

/** Makes a hasher with its own queue. Tests pass a lower cost. */
export function createPasswordHasher(cost: HashCost = COST): PasswordHasher {
  const queue = new Queue();
  // Compared with when there is no account; no password matches it.
  const dummy = encode(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES));
  return {
    async hash(password, lane = { network: undefined }) {
      const salt = randomBytes(SALT_BYTES);
      return encode(cost, salt, await queue.run(lane, () => derive(password, salt, cost)));
    },
    requireRoom: (network) => queue.requireRoom(network),
    async verify(password, encoded, lane = { network: undefined }) {
      const known = decode(encoded ?? dummy);
      if (known === undefined) throw new TypeError("a stored password hash cannot be read");
      const actual = await queue.run(lane, () => derive(password, known.salt, known.cost));
      const matches = actual.length === known.hash.length && timingSafeEqual(actual, known.hash);
      return { matches: matches && encoded !== undefined, outdated: !isEqual(known.cost, cost) };
    },
  };
}

function derive(password: string, salt: Buffer, { memoryKib, passes, parallelism }: HashCost): Promise<Buffer> {
  const parameters = { message: password, nonce: salt, memory: memoryKib, passes, parallelism, tagLength: HASH_BYTES };
  return new Promise((resolve, reject) => {
    argon2("argon2id", parameters, (error, derived) => (error === null ? resolve(derived) : reject(error)));
  });
}

function encode({ memoryKib, passes, parallelism }: HashCost, salt: Buffer, derived: Buffer): string {
  const [saltText, hashText] = [salt, derived].map((bytes) => bytes.toString("base64").replace(/=+$/, ""));
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${parallelism}$${saltText}$${hashText}`;
}

const ENCODED = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

function decode(encoded: string): { cost: HashCost; salt: Buffer; hash: Buffer } | undefined {
  const [, memory, passes, parallelism, salt, hash] = ENCODED.exec(encoded) ?? [];
  if (salt === undefined || hash === undefined) return undefined;
  return {
    cost: { memoryKib: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    salt: Buffer.from(salt, "base64"),
    hash: Buffer.from(hash, "base64"),
  };
}

function isEqual(one: HashCost, other: HashCost): boolean {
  return one.memoryKib === other.memoryKib && one.passes === other.passes && one.parallelism === other.parallelism;
}

/** Limits concurrent work to MAX_RUNNING; more waits. */
class Queue {
  readonly #running = { known: 0, unknown: 0 };
  readonly #waiting = { known: new WaitingRoom(PLACES, busy), unknown: new WaitingRoom(PLACES, busy) };

  async run<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
    const [kind, key] = "known" in lane ? (["known", lane.known] as const) : (["unknown", lane.network] as const);
    if (this.#mayRun(kind)) this.#running[kind] += 1;
    else await this.#waiting[kind].enter(key ?? NO_NETWORK);
    try {
      return await work();
    } finally {
      this.#running[kind] -= 1;
      this.#beginNext();
    }
  }

  #mayRun(kind: "known" | "unknown"): boolean {
    const { known, unknown } = this.#running;
    return known + unknown < MAX_RUNNING.all && (kind === "known" || unknown < MAX_RUNNING.unknown);
  }

  /** The slot passes directly to the next waiting one, so that a newcomer cannot take it in between. */
  #beginNext(): void {
    const next = (["known", "unknown"] as const).find((kind) => this.#mayRun(kind) && this.#waiting[kind].callNext());
    if (next !== undefined) this.#running[next] += 1;
  }

  requireRoom(network: string | undefined): void {
    this.#waiting.unknown.requireRoom(network ?? NO_NETWORK);
  }
}

function busy(): Failure {
  return new Failure("overloaded", "The server is busy checking passwords. Try again shortly.", {
    unavailable: "busy",
    retryAfterMs: RETRY_AFTER_MS,
  });
}
