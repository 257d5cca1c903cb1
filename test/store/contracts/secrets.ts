import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/store.ts";

/** Registers the suite of the keys that all processes of a database share. */
export function describeSecrets(open: () => Promise<Store>): void {
  describe("a secret", () => {
    it("is made once, also by many at the same moment, and another one by another name", async () => {
      const store = await open();
      const made = await Promise.all(Array.from({ length: 8 }, () => store.secret("a")));
      const [first] = made as [Buffer];
      expect(first).toHaveLength(32);
      for (const each of made) expect(each).toEqual(first);
      expect(await store.secret("a")).toEqual(first);
      expect(await store.secret("b")).not.toEqual(first);
    });
  });
}
