import type { Product } from "../../support/product.ts";
import { ConsoleCaller, PASSWORD } from "../support/console.ts";

/** A key in use by a call. */
export interface SoakKey {
  readonly secret: string;
  release(): void;
}

/** Keys that are created, used and revoked in the dashboard. */
export interface KeyChurn {
  /** Number of keys created so far. */
  readonly made: number;
  take(): SoakKey;
  /** Creates a key and revokes the oldest one; returns an error text, if any. */
  turn(): Promise<string | undefined>;
}

interface LivingKey {
  readonly id: string;
  readonly secret: string;
  users: number;
  unused: () => void;
}

/** Number of valid keys at the same time. */
const LIVING = 6;
/** Creating keys needs a password entered within ten minutes. */
const FRESH_MS = 5 * 60_000;

/** Signs up as the first person, and creates the first keys. */
export async function startKeyChurn(product: Product): Promise<KeyChurn> {
  const person = new ConsoleCaller(product);
  await person.signUp("soak@example.com");
  let freshMs = performance.now();
  const living: LivingKey[] = [];
  let made = 0;
  let turn = 0;

  const make = async (): Promise<void> => {
    if (performance.now() - freshMs > FRESH_MS) {
      await person.call("SessionService/Reauthenticate", { password: PASSWORD });
      freshMs = performance.now();
    }
    const { key, secret } = await person.call("KeyService/Create", { name: `key ${made++}` });
    living.push({ id: (key as { id: string }).id, secret: String(secret), users: 0, unused: () => undefined });
  };
  for (let count = 0; count < LIVING; count++) await make();

  return {
    get made() {
      return made;
    },
    take() {
      const key = living[turn++ % living.length]!;
      key.users += 1;
      return {
        secret: key.secret,
        release() {
          key.users -= 1;
          if (key.users === 0) key.unused();
        },
      };
    },
    async turn() {
      await make();
      const oldest = living.shift()!;
      // A key is revoked only after its calls have ended, so that a refusal always has another cause.
      if (oldest.users > 0) await new Promise<void>((resolve) => (oldest.unused = resolve));
      await person.call("KeyService/Revoke", { id: oldest.id });
      const status = await statusOf(product, oldest.secret);
      return status === 401 ? undefined : `a revoked key was answered with ${status}`;
    },
  };
}

async function statusOf({ url }: Product, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}
