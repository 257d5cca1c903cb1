import { describe, expect, it } from "vitest";
import { hashApiKey } from "../../../src/access/api-key.ts";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import type { StoredStop } from "../../../src/access/stops.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { Store } from "../../../src/store/store.ts";
import { accountNamed } from "./shared-accounts.ts";

const stopOf = (index: number): StoredStop => ({
  id: `stop${index}`,
  kind: "session",
  value: `session ${index}`,
  untilMs: index,
  createdAtMs: index,
  createdBy: DEFAULT_ACCOUNT_ID,
});

/** Registers the suite that every StopStore has to pass. */
export function describeStopStore(open: () => Promise<Store>): void {
  describe("stops", () => {
    it("are of an account's keys, to which each change is announced, and of which no simultaneous one is lost", async () => {
      const { stops, accounts, keys, keyChanges } = await open();
      const context = { store: keys, clock: systemClock };
      const { secret } = await createKey(context, { name: "a" });
      await accounts.insert(accountNamed("other"));
      const other = await createKey(context, { name: "b", accountId: "acct_other" });
      const stopsOf = async (key: string) => (await keys.findByHash(hashApiKey(key)))?.stops;
      expect(await stopsOf(secret)).toBeUndefined();
      const heard = new Set<string | undefined>();
      const end = keyChanges.subscribe((hash) => void heard.add(hash));
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          stops.change(DEFAULT_ACCOUNT_ID, (before) => [...before, stopOf(index)]),
        ),
      );
      expect(await stopsOf(secret)).toHaveLength(20);
      expect((await stopsOf(secret))?.[0]).toEqual({
        kind: "session",
        value: expect.stringContaining("session ") as string,
        untilMs: expect.any(Number) as number,
      });
      expect(await stopsOf(other.secret)).toBeUndefined();
      expect(heard).toContain(hashApiKey(secret));
      expect(heard).not.toContain(hashApiKey(other.secret));
      end();
      const listed = (await stops.list(undefined)).filter(({ accountId }) => accountId === DEFAULT_ACCOUNT_ID);
      expect(listed.map(({ id }) => id).toSorted()).toEqual(
        Array.from({ length: 20 }, (_, n) => `stop${n}`).toSorted(),
      );
      expect(await stops.list(["acct_other"])).toEqual([]);
      expect(await stops.change(DEFAULT_ACCOUNT_ID, () => [])).toBe(true);
      expect(await stopsOf(secret)).toBeUndefined();
      expect(await stops.change("acct_none", () => [stopOf(0)])).toBe(false);
    });
  });
}
