import { describe, expect, it } from "vitest";
import { MAX_VERSIONS, type NewVersion } from "../../../src/store/configuration-store.ts";
import type { Store } from "../../../src/store/store.ts";

function versionOf(expected: number, changes: Partial<Omit<NewVersion, "expected">> = {}): NewVersion {
  const version = { at_ms: 1_700_000_000_000 + expected, actor_id: null, comment: "", document: `n: ${expected}` };
  return { expected, version, credentials: [], removed: [], ...changes };
}

const credentialOf = (provider: string, sealed = "sealed") => ({
  provider,
  address: "https://api.example.com",
  sealed,
  keys: 1,
  set_at_ms: 1_700_000_000_000,
  set_by: "acct_1",
});

/** Registers the suite of the stored configuration. */
export function describeConfigurationStore(open: () => Promise<Store>): void {
  describe("the stored configuration", () => {
    it("is empty at first, and then has the latest version with all credentials", async () => {
      const { configuration } = await open();
      expect(await configuration.latest()).toBe(0);
      expect(await configuration.read()).toBeUndefined();
      expect(await configuration.insert(versionOf(0, { credentials: [credentialOf("a"), credentialOf("b")] }))).toBe(1);
      expect(
        await configuration.insert(versionOf(1, { credentials: [credentialOf("a", "other")], removed: ["b"] })),
      ).toBe(2);
      expect(await configuration.latest()).toBe(2);
      expect(await configuration.read()).toEqual({
        version: { version: 2, ...versionOf(1).version },
        credentials: [credentialOf("a", "other")],
      });
      expect(await configuration.find(1)).toEqual({ version: 1, ...versionOf(0).version });
      expect(await configuration.find(3)).toBeUndefined();
    });

    it("is changed by one of many that begin from the same version, with its credential", async () => {
      const { configuration } = await open();
      const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
      const made = await Promise.all(
        names.map((name) => configuration.insert(versionOf(0, { credentials: [credentialOf(name)] }))),
      );
      expect(made.filter((version) => version !== undefined)).toEqual([1]);
      const rows = await configuration.read();
      expect(rows?.credentials.map(({ provider }) => provider)).toEqual([names[made.indexOf(1)]]);
      expect(await configuration.insert(versionOf(0))).toBeUndefined();
    });

    it("lists its versions newest first, page by page, and keeps the latest", async () => {
      const { configuration } = await open();
      for (let version = 0; version < MAX_VERSIONS + 2; version++) await configuration.insert(versionOf(version));
      const page = await configuration.list({ before: undefined, limit: 2 });
      expect(page.map(({ version }) => version)).toEqual([102, 101]);
      expect(page[0]).not.toHaveProperty("document");
      const all = await configuration.list({ before: 101, limit: 200 });
      expect(all.map(({ version }) => version)).toEqual(Array.from({ length: 98 }, (_, index) => 100 - index));
    });

    it("has its credentials encrypted anew, those that cannot be read excepted", async () => {
      const { configuration } = await open();
      await configuration.insert(versionOf(0, { credentials: [credentialOf("a"), credentialOf("b")] }));
      const seal = ({ provider }: { provider: string }) => (provider === "a" ? "again" : undefined);
      const facts = { at_ms: 1_700_000_000_001, actor_id: null, comment: "anew" };
      expect(await configuration.reseal(seal, facts)).toEqual({ resealed: 1, unreadable: 1 });
      const rows = await configuration.read();
      expect(rows?.credentials.map(({ sealed }) => sealed).toSorted()).toEqual(["again", "sealed"]);
      // Replicas read credentials with a new version only.
      expect(rows?.version).toEqual({ version: 2, document: "n: 0", ...facts });
      expect(await configuration.reseal(() => undefined, facts)).toEqual({ resealed: 0, unreadable: 2 });
      expect(await configuration.latest()).toBe(2);
    });
  });
}
