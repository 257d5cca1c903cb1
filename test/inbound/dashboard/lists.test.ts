import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RotationGrace } from "../../../gen/parley/console/v1/key_pb.js";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { errorOf, fieldOf } from "./errors.ts";
import { type ConsoleUnderTest, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
});
afterEach(() => site.close());

async function addAccounts(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await site.access.store.insert({
      id: `acct_${String(index).padStart(4, "0")}`,
      kind: "person",
      email: `person-${index}@example.com`,
      name: `Person ${index}`,
      role: "developer",
      passwordHash: undefined,
      limits: NO_LIMITS,
      // Several at the same moment, as when they are imported.
      createdAtMs: 1_000 + Math.floor(index / 7),
      disabledAtMs: undefined,
    });
  }
}

describe("accounts", () => {
  it("come in pages that leave none out and repeat none", async () => {
    const ada = await site.signedUp("ada");
    await addAccounts(25);
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await ada.account.list({ limit: 4, pageToken });
      expect(page.accounts.length).toBeLessThanOrEqual(4);
      ids.push(...page.accounts.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(ids).toEqual((await site.access.store.list()).map(({ id }) => id));
    expect(new Set(ids).size).toBe(26);
  });

  it("are at most 1,000 a page, which is also the default", async () => {
    const ada = await site.signedUp("ada");
    await addAccounts(1_050);
    const first = await ada.account.list({});
    expect(first.accounts).toHaveLength(1_000);
    const second = await ada.account.list({ pageToken: first.nextPageToken });
    expect(second.accounts).toHaveLength(51);
    expect(second.nextPageToken).toBe("");
  });

  it("say how many of their keys work", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { key } = await bob.key.create({ name: "one" });
    await bob.key.create({ name: "two" });
    await bob.key.create({ name: "short", lifetime: { seconds: 60n } });
    await bob.key.revoke({ id: key!.id });
    site.access.clock.advance(61_000);
    const { accounts } = await ada.account.list({});
    expect(accounts.map(({ id, workingKeys }) => [id, workingKeys])).toEqual([
      [ada.id, 0n],
      [bob.id, 1n],
    ]);
  });
});

describe("keys", () => {
  it("come in pages, of one's own account for members", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    await ada.key.create({ name: "ada's" });
    for (let index = 0; index < 5; index += 1) await bob.key.create({ name: `key ${index}` });
    const first = await bob.key.list({ limit: 3 });
    const second = await bob.key.list({ limit: 3, pageToken: first.nextPageToken });
    expect([first.keys.length, second.keys.length, second.nextPageToken]).toEqual([3, 2, ""]);
    const names = [...first.keys, ...second.keys].map(({ name }) => name);
    expect(names.toSorted()).toEqual(["key 0", "key 1", "key 2", "key 3", "key 4"]);
    expect((await ada.key.list({})).keys).toHaveLength(6);
  });

  it("that name a thousand models come in shorter pages, one list of an account at a time", async () => {
    const bob = await site.signedUp("bob");
    await bob.key.create({ name: "first" });
    const [record] = await site.keys.list();
    const models = Array.from({ length: 1_500 }, (_, index) => `vendor/model-with-a-long-name-${index}`);
    for (let index = 1; index < 40; index += 1)
      await site.keys.insert({ hash: `hash ${index}`, record: { ...record!, id: `key_${index}`, models } });
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await bob.key.list({ pageToken });
      expect(page.keys.length).toBeLessThan(20);
      ids.push(...page.keys.map(({ id }) => id));
      ({ nextPageToken: pageToken } = page);
    } while (pageToken !== "");
    expect(new Set(ids).size).toBe(40);
    expect(ids).toHaveLength(40);

    let inFlight = 0;
    let most = 0;
    vi.spyOn(site.keys, "list").mockImplementation(async () => {
      most = Math.max(most, ++inFlight);
      await new Promise(setImmediate);
      inFlight -= 1;
      return [];
    });
    await Promise.all(Array.from({ length: 5 }, () => bob.key.list({})));
    expect(most).toBe(1);
  });

  it("are at most 1,000 that work for an account", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { key: first } = await bob.key.create({ name: "first" });
    const [record] = await site.keys.list();
    for (let index = 1; index < 1_000; index += 1) {
      await site.keys.insert({ hash: `hash ${index}`, record: { ...record!, id: `key_${index}` } });
    }
    for (const act of [bob.key.create({ name: "more" }), ada.key.create({ name: "more", accountId: bob.id })]) {
      const error = await errorOf(act);
      expect([error.code, error.rawMessage]).toEqual([
        Code.InvalidArgument,
        "This account has reached the maximum of 1,000 active keys. Revoke a key first.",
      ]);
    }
    await ada.key.create({ name: "another account's" });
    // In place of the old one at once there are not more; with a grace there would be.
    expect((await errorOf(bob.key.rotate({ id: "key_7" }))).code).toBe(Code.InvalidArgument);
    await bob.key.rotate({ id: "key_7", grace: RotationGrace.NONE });
    await bob.key.revoke({ id: first!.id });
    await bob.key.create({ name: "room again" });
  });
});

describe("entries of the audit log", () => {
  it("come in pages, newest first, of one's own account for members", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    for (let index = 0; index < 5; index += 1) await bob.key.create({ name: `key ${index}` });
    const first = await bob.audit.list({ limit: 4 });
    const second = await bob.audit.list({ limit: 4, pageToken: first.nextPageToken });
    expect([...first.entries, ...second.entries].map(({ action }) => action)).toEqual([
      ...Array.from({ length: 5 }, () => "key_created"),
      "signed_up",
    ]);
    expect(second.nextPageToken).toBe("");
    const sequences = [...first.entries, ...second.entries].map(({ sequence }) => sequence);
    expect(new Set(sequences).size).toBe(6);
    // Another's page token opens nothing of theirs.
    const all = await ada.audit.list({ limit: 1 });
    const { entries } = await bob.audit.list({ pageToken: all.nextPageToken });
    expect(entries.every(({ accountId }) => accountId === bob.id)).toBe(true);
  });
});

describe("a page that cannot be", () => {
  it.each([
    [{ limit: -1 }, "limit"],
    [{ limit: 1_001 }, "limit"],
    [{ pageToken: "x' OR 1=1" }, "page_token"],
    [{ pageToken: Buffer.from("1 acct_\0").toString("base64url") }, "page_token"],
  ])("is refused: %o", async (request, field) => {
    const ada = await site.signedUp("ada");
    expect(await fieldOf(ada.account.list(request))).toBe(field);
    expect(await fieldOf(ada.key.list(request))).toBe(field);
    expect(await fieldOf(ada.audit.list(request))).toBe(field);
  });
});
