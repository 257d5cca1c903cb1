import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { generateApiKey } from "../../src/access/api-key.ts";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";

const SAMPLES = 1_500;
/** A smaller difference cannot be measured over a network. */
const INDISTINGUISHABLE_MS = 0.05;

it("takes as long to refuse a key that was revoked as an unknown one", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-timing-"));
  const store = await openStore({ dataDir, databaseUrl: undefined });
  onTestFinished(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  const keys = { store: store.keys, clock: systemClock };
  const revoked: string[] = [];
  for (let count = 0; count < SAMPLES; count++) {
    const { secret, record } = await createKey(keys, { name: "revoked" });
    await revokeKey(keys, record.id);
    revoked.push(secret);
  }
  const authenticator = createAuthenticator({ store: store.keys, clock: systemClock });
  const measure = async (key: string): Promise<number> => {
    const beganMs = performance.now();
    await expect(authenticator.authenticate(key)).rejects.toThrow("not valid");
    return performance.now() - beganMs;
  };
  const times: Record<"revoked" | "unknown", number[]> = { revoked: [], unknown: [] };
  for (const secret of revoked) {
    // Alternating, so that other load on the machine affects both alike.
    times.unknown.push(await measure(generateApiKey()));
    times.revoked.push(await measure(secret));
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
  expect(Math.abs(median(times.revoked) - median(times.unknown))).toBeLessThan(INDISTINGUISHABLE_MS);
});
