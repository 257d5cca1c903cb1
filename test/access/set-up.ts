import { randomBytes } from "node:crypto";
import type { AccessContext } from "../../src/access/context.ts";
import type { UnchainedEntry } from "../../src/access/audit-entry.ts";
import { createAuditLog } from "../../src/access/audit-log.ts";
import { createPasswordHasher, type HashCost } from "../../src/access/password-hash.ts";
import type { SignInRules } from "../../src/access/sign-in-rules.ts";
import { createThrottle } from "../../src/access/throttle.ts";
import { SignInQueue } from "../../src/access/sign-in-queue.ts";
import { createCipher } from "../../src/store/cipher.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type MemoryStores, openMemoryStores } from "../support/memory-database.ts";

/** The lowest cost of argon2id; its strength has tests of its own. */
export const CHEAP: HashCost = { memoryKib: 8, passes: 1, parallelism: 1 };

/** Passwords alone, with the default times. */
export const RULES: SignInRules = {
  sessionMs: 24 * 3_600_000,
  idleMs: 2 * 3_600_000,
  password: true,
  secondFactor: "optional",
  provider: undefined,
};

/** A valid password. */
export const PASSWORD = "four unrelated words";

export interface AccessUnderTest extends AccessContext {
  readonly stores: MemoryStores;
  readonly throttles: MemoryStores["throttles"];
  readonly audit: MemoryStores["audit"];
  readonly clock: FakeClock;
  /** Entries passed to the listener. */
  readonly logged: UnchainedEntry[];
}

/** An AccessContext on a database in memory, a fake clock and cheap hashes, with `changes`. */
export function setUpAccess(
  changes: Partial<Pick<AccessContext, "signUp" | "signIn" | "isExposed" | "passwords" | "resetMail">> = {},
): AccessUnderTest {
  const clock = new FakeClock();
  const key = randomBytes(32);
  const cipher = createCipher(key);
  const stores = openMemoryStores();
  const logged: UnchainedEntry[] = [];
  return {
    store: stores.accounts,
    stores,
    throttles: stores.throttles,
    audit: stores.audit,
    clock,
    logged,
    throttle: createThrottle(stores.throttles, clock),
    signInQueue: new SignInQueue(),
    passwords: createPasswordHasher(CHEAP),
    factors: {
      seal: (secret, accountId) => cipher.seal(Buffer.from(secret), [accountId]),
      open: (sealed, accountId) => cipher.open(sealed, [accountId])?.toString(),
      sealProblem: () => undefined,
      challengeKey: async () => key,
    },
    resetMail: () => undefined,
    log: createAuditLog({
      store: stores.audit,
      clock,
      actor: { kind: "nobody", id: undefined },
      listener: (entry) => logged.push(entry),
    }),
    signUp: "open",
    signIn: RULES,
    isExposed: false,
    ...changes,
  };
}

/** A distinct network for each index. */
export function networkNumber(index: number): string {
  return `10.${index >> 8}.${index & 255}.0/24`;
}
