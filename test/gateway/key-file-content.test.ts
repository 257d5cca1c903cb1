import { describe, expect, it } from "vitest";
import type { ConfirmedKey } from "../../src/access/known-keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { encodeKeys, readPiece, shareFairly } from "../../src/gateway/key-file-content.ts";

/** A key whose text has about a thousand bytes. */
function keyOf(hash: string, accountId: string): ConfirmedKey {
  const record = { id: hash, keyFamilyId: hash, accountId, name: "n".repeat(800), limits: NO_LIMITS };
  const permitted = {
    models: "all",
    capabilities: [],
    options: "default",
    requiredLabels: {},
    tags: [],
    storesContent: false,
  } as const;
  return {
    hash,
    confirmedAtMs: 1,
    grant: {
      record: { ...record, ...permitted, expiresAtMs: undefined, revokedAtMs: undefined },
      accountLimits: NO_LIMITS,
      accountDisabled: false,
      routing: undefined,
    },
  };
}

describe("a key in the file", () => {
  it("has the limits of its end users, and all else that its grant has", async () => {
    const { grant, ...key } = keyOf("a", "acct_a");
    const attributionLimits = { endUserRequestsPerMinute: 5, sessionBudgetMicroUsd: 1_000_000, requiresEndUser: true };
    const given = { ...key, grant: { ...grant, record: { ...grant.record, attributionLimits, storesContent: true } } };
    const { pieces } = await encodeKeys([given], 100_000);
    expect([...pieces].flatMap(readPiece)).toEqual([given]);
  });
});

describe("the share of each need", () => {
  it.each([
    ["is all of it where they fit", [3, 0, 2], 5, [3, 0, 2]],
    ["is the same for all that are larger than others", [100, 2, 50, 3], 25, [10, 2, 10, 3]],
    ["is nothing of nothing", [], 5, []],
  ])("%s", (_, needs, limit, shares) => {
    expect(shareFairly(needs, limit)).toEqual(shares);
  });
});

describe("keys that do not fit", () => {
  it("are the oldest of the accounts with many; others lose none", async () => {
    const many = Array.from({ length: 400 }, (_, index) => keyOf(`many-${index}`, "acct_many"));
    const few = Array.from({ length: 10 }, (_, index) => keyOf(`few-${index}`, "acct_few"));
    const { pieces, totalBytes } = await encodeKeys([...many, ...few], 100_000);
    const texts = [...pieces];
    expect(totalBytes).toBeGreaterThan(400_000);
    expect(texts.join("").length).toBeLessThanOrEqual(100_000);
    const read = texts.flatMap(readPiece).map(({ hash }) => hash);
    expect(read).toEqual(expect.arrayContaining(few.map(({ hash }) => hash)));
    const kept = read.filter((hash) => hash.startsWith("many"));
    expect(kept.length).toBeGreaterThan(70);
    expect(kept).toEqual(many.slice(0, kept.length).map(({ hash }) => hash));
  });
});
