import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/store.ts";

/** Registers the suite that every database has to pass. */
export function describeHealthNotes(open: () => Promise<Store>): void {
  describe("notes about upstream models", () => {
    it("are the latest one of each other replica", async () => {
      const store = await open();
      const [one, two, three] = ["one", "two", "three"].map((replica) => store.createHealthNotes({ replica }));
      expect(await one!.exchange({ down: ["a/m"], up: ["b/m"] })).toEqual([]);
      expect(await two!.exchange({ down: [], up: ["a/m"] })).toEqual([{ down: ["a/m"], up: ["b/m"] }]);
      expect(await one!.exchange({ down: ["b/m"], up: [] })).toEqual([{ down: [], up: ["a/m"] }]);
      expect(await three!.exchange({ down: [], up: [] })).toEqual(
        expect.arrayContaining([
          { down: ["b/m"], up: [] },
          { down: [], up: ["a/m"] },
        ]),
      );
    });

    it("are exchanged by many replicas at once", async () => {
      const store = await open();
      const all = Array.from({ length: 20 }, (_, index) => store.createHealthNotes({ replica: `replica ${index}` }));
      await Promise.all(all.map((notes) => notes.exchange({ down: [], up: ["a/m"] })));
      expect(await all[0]!.exchange({ down: [], up: [] })).toHaveLength(19);
    });
  });
}
