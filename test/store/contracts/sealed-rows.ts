import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import type { Store } from "../../../src/store/store.ts";

/** Registers the suite of stored prompts and answers. */
export function describeContents(open: () => Promise<Store>): void {
  describe("stored prompts and answers", () => {
    const rowOf = (id: string, atMs: number) => ({
      account_id: DEFAULT_ACCOUNT_ID,
      id,
      created_at_ms: atMs,
      content: `content of ${id}`,
    });

    it("are found by account and completion until they are too old", async () => {
      const { contents } = await open();
      await contents.insert(rowOf("chatcmpl-1", 1000));
      expect(await contents.find(DEFAULT_ACCOUNT_ID, "chatcmpl-1", 999)).toBe("content of chatcmpl-1");
      expect(await contents.find(DEFAULT_ACCOUNT_ID, "chatcmpl-1", 1000)).toBeUndefined();
      expect(await contents.find("acct_other", "chatcmpl-1", 0)).toBeUndefined();
      expect(await contents.find(DEFAULT_ACCOUNT_ID, "chatcmpl-2", 0)).toBeUndefined();
    });

    it("are pruned when they are too old, and apart from stored responses", async () => {
      const { contents, responses } = await open();
      for (const at of [1, 2, 3]) await contents.insert(rowOf(`chatcmpl-${at}`, 1000 * at));
      await responses.insert(rowOf("chatcmpl-1", 1000));
      expect(await contents.prune(2000)).toBe(2);
      expect(await contents.prune(2000)).toBe(0);
      expect(await contents.find(DEFAULT_ACCOUNT_ID, "chatcmpl-3", 0)).toBe("content of chatcmpl-3");
      expect(await responses.find(DEFAULT_ACCOUNT_ID, "chatcmpl-1", 0)).toBe("content of chatcmpl-1");
    });

    it("belong to accounts that exist", async () => {
      const { contents } = await open();
      await expect(contents.insert({ ...rowOf("chatcmpl-1", 1), account_id: "acct_nobody" })).rejects.toThrow(
        /foreign key/i,
      );
    });
  });
}
