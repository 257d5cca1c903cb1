import { describe, expect, it } from "vitest";
import { MAX_SAVED_FILTERS } from "../../../src/access/saved-filters.ts";
import type { Store } from "../../../src/store/store.ts";

/** Registers the suite of saved filters. */
export function describeSavedFilters(open: () => Promise<Store>): void {
  describe("saved filters", () => {
    it("are of one account, by name, and replaced by one of the same name", async () => {
      const { savedFilters } = await open();
      await savedFilters.save("acct_a", { name: "errors", query: "outcome=failed" });
      await savedFilters.save("acct_a", { name: "dear", query: "order=cost" });
      await savedFilters.save("acct_b", { name: "errors", query: "outcome=cancelled" });
      await savedFilters.save("acct_a", { name: "errors", query: "outcome=failed&range=24h" });
      expect(await savedFilters.list("acct_a")).toEqual([
        { name: "dear", query: "order=cost" },
        { name: "errors", query: "outcome=failed&range=24h" },
      ]);
      await savedFilters.remove("acct_a", "errors");
      await savedFilters.remove("acct_a", "nothing");
      expect(await savedFilters.list("acct_a")).toEqual([{ name: "dear", query: "order=cost" }]);
      expect(await savedFilters.list("acct_b")).toHaveLength(1);
    });

    it("are limited in number, and the last one can still be replaced", async () => {
      const { savedFilters } = await open();
      for (let number = 0; number < MAX_SAVED_FILTERS; number += 1)
        expect(await savedFilters.save("acct_a", { name: `filter ${number}`, query: "" })).toBe(true);
      expect(await savedFilters.save("acct_a", { name: "one more", query: "" })).toBe(false);
      expect(await savedFilters.save("acct_a", { name: "filter 7", query: "model=m" })).toBe(true);
      expect(await savedFilters.list("acct_a")).toHaveLength(MAX_SAVED_FILTERS);
    });
  });
}
