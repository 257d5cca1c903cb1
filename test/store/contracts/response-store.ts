import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import type { ResponseStore } from "../../../src/store/responses/response-store.ts";
import type { Store } from "../../../src/store/store.ts";

const MANY = { responses: 100, bytes: 1_000_000 };

/** Registers the suite that every ResponseStore has to pass. */
export function describeResponseStore(open: () => Promise<Store>): void {
  describe("stored responses", () => {
    const insert = (responses: ResponseStore, id: string, atMs: number, limits = MANY): Promise<void> =>
      responses.insert(
        { account_id: DEFAULT_ACCOUNT_ID, id, created_at_ms: atMs, content: `content of ${id}` },
        limits,
      );
    const idsOf = async (responses: ResponseStore, ids: readonly string[]): Promise<string[]> => {
      const found = await Promise.all(ids.map((id) => responses.find(DEFAULT_ACCOUNT_ID, id, 0)));
      return ids.filter((_, at) => found[at] !== undefined);
    };

    it("are found by account and ID until they are too old", async () => {
      const { responses } = await open();
      await insert(responses, "resp_1", 1000);
      expect(await responses.find(DEFAULT_ACCOUNT_ID, "resp_1", 999)).toBe("content of resp_1");
      expect(await responses.find(DEFAULT_ACCOUNT_ID, "resp_1", 1000)).toBeUndefined();
      expect(await responses.find("acct_other", "resp_1", 0)).toBeUndefined();
      expect(await responses.find(DEFAULT_ACCOUNT_ID, "resp_2", 0)).toBeUndefined();
    });

    it("are removed once, by their account only", async () => {
      const { responses } = await open();
      await insert(responses, "resp_1", 1000);
      expect(await responses.remove("acct_other", "resp_1", 0)).toBe(false);
      expect(await responses.remove(DEFAULT_ACCOUNT_ID, "resp_1", 1000)).toBe(false);
      expect(await responses.remove(DEFAULT_ACCOUNT_ID, "resp_1", 0)).toBe(true);
      expect(await responses.remove(DEFAULT_ACCOUNT_ID, "resp_1", 0)).toBe(false);
    });

    it("are pruned when they are too old", async () => {
      const { responses } = await open();
      const ids = ["resp_1", "resp_2", "resp_3"];
      for (const [at, id] of ids.entries()) await insert(responses, id, 1000 * (at + 1));
      expect(await responses.prune(2000)).toBe(2);
      expect(await responses.prune(2000)).toBe(0);
      expect(await idsOf(responses, ids)).toEqual(["resp_3"]);
    });

    it("push out the oldest ones of the account beyond its number, to a tenth below it", async () => {
      const { responses } = await open();
      const ids = Array.from({ length: 11 }, (_, at) => `resp_${at}`);
      for (const [at, id] of ids.entries()) await insert(responses, id, at + 1, { ...MANY, responses: 10 });
      expect(await idsOf(responses, ids)).toEqual(ids.slice(2));
    });

    it("push out the oldest ones beyond the account's bytes, but not the newest one", async () => {
      const { responses } = await open();
      const limits = { ...MANY, bytes: 40 };
      for (const at of [1, 2, 3]) await insert(responses, `resp_${at}`, at, limits);
      expect(await idsOf(responses, ["resp_1", "resp_2", "resp_3"])).toEqual(["resp_2", "resp_3"]);
      await insert(responses, "resp_4", 4, { ...MANY, bytes: 5 });
      expect(await idsOf(responses, ["resp_2", "resp_3", "resp_4"])).toEqual(["resp_4"]);
    });
  });
}
