import { describe, expect, it } from "vitest";
import type { UnchainedEntry } from "../../src/access/audit-entry.ts";
import { chain, formatLink, GENESIS, parseLink } from "../../src/access/audit-entry.ts";
import { differenceOf, toFieldText } from "../../src/access/audit-fields.ts";
import { type AuditLog, createAuditLog } from "../../src/access/audit-log.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

const HOUR_MS = 60 * 60 * 1000;

function setUp() {
  const clock = new FakeClock();
  const { audit: store, entries } = openMemoryStores();
  const heard: [UnchainedEntry, unknown][] = [];
  const log: AuditLog = createAuditLog({
    store,
    clock,
    actor: { kind: "nobody", id: undefined },
    listener: (entry, lost) => heard.push([entry, lost]),
  });
  return { clock, store, entries, heard, log };
}

describe("the audit log", () => {
  it("has the account that acted, or else its own actor, and the account as the object", async () => {
    const { log, entries } = setUp();
    await log.record({ action: "signed_in", actorId: "acct_1", accountId: "acct_1", network: "192.0.2.0/24" });
    await log.record({ action: "reauthentication_failed", accountId: "acct_1" });
    await log.record({ action: "key_created", actor: { kind: "gateway", id: undefined } });
    expect(entries()).toMatchObject([
      { actor: { kind: "account", id: "acct_1" }, object: { kind: "account", id: "acct_1" }, result: "done" },
      { actor: { kind: "nobody" }, object: { kind: "account", id: "acct_1" }, result: "failed" },
      { actor: { kind: "gateway" }, object: undefined },
    ]);
  });

  it("reports an entry that could not be stored to its listener, and does not fail", async () => {
    const { log, store, heard } = setUp();
    const full = new Error("the disk is full");
    store.append = () => Promise.reject(full);
    await log.record({ action: "signed_in" });
    expect(heard).toMatchObject([[{ action: "signed_in" }, full]]);
  });

  it("records a flood of failed sign-ins with unknown addresses by its size, and all others", async () => {
    const { log, entries, clock } = setUp();
    const guess = (accountId?: string) => log.record({ action: "sign_in_failed", accountId, network: "192.0.2.0/24" });
    for (let count = 0; count < 1_000; count += 1) await guess();
    expect(entries()).toHaveLength(103);
    const attempts = entries().map(({ details = '{"attempts":"1"}' }) =>
      Number((JSON.parse(details) as { attempts: string }).attempts),
    );
    expect(attempts.slice(99)).toEqual([1, 100, 200, 400]);
    for (let count = 0; count < 3; count += 1) await guess("acct_1");
    expect(entries()).toHaveLength(106);
    clock.advance(HOUR_MS);
    await guess();
    expect(entries()).toHaveLength(107);
  });

  it("records a flood of sign-ins of one account by its size, those of others, and all changes", async () => {
    const { log, entries } = setUp();
    for (let count = 0; count < 250; count += 1) await log.record({ action: "signed_in", accountId: "acct_1" });
    expect(entries()).toHaveLength(101);
    expect(entries().at(-1)!.details).toBe('{"attempts":"100"}');
    await log.record({ action: "signed_in", accountId: "acct_2" });
    await log.record({ action: "reauthenticated", accountId: "acct_1" });
    for (let count = 0; count < 150; count += 1) await log.record({ action: "key_created", accountId: "acct_1" });
    expect(entries()).toHaveLength(253);
  });
});

describe("fields of an entry", () => {
  it("are those that differ", () => {
    const before = { name: "a", tags: ["x"], limit: null, same: { deep: [1] } };
    const after = { name: "b", tags: ["x", "y"], limit: 5, same: { deep: [1] } };
    expect(differenceOf(before, after)).toEqual({
      before: { name: "a", tags: ["x"], limit: null },
      after: { name: "b", tags: ["x", "y"], limit: 5 },
    });
    expect(differenceOf({ gone: 1 }, { made: 2 })).toEqual({
      before: { gone: 1, made: null },
      after: { gone: null, made: 2 },
    });
  });

  it("are bounded, one by one and together", () => {
    const long = "é".repeat(50_000);
    expect(JSON.parse(toFieldText({ short: "s", long }))).toEqual({
      short: "s",
      long: { beginning: `"${"é".repeat(749)}`, characters: 50_002 },
    });
    const fieldsOf = (count: number, name: string, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}${index}`, value]));
    const fields = [
      fieldsOf(10, "field", "x".repeat(3_000)),
      fieldsOf(100, "x".repeat(250), "model"),
      fieldsOf(1_000, '"'.repeat(20), { deep: "\0\uD800" }),
      fieldsOf(1, "x".repeat(100_000), null),
    ];
    for (const each of fields) {
      const text = toFieldText(each);
      expect(text.length).toBeLessThanOrEqual(2_000);
      expect(JSON.parse(text)).toBeTypeOf("object");
    }
  });
});

describe("a link of the chain", () => {
  it("is a text that can be read again, and no other text is one", () => {
    const [entry] = chain(GENESIS, [
      {
        atMs: 1,
        action: "signed_in",
        actor: { kind: "nobody", id: undefined },
        network: undefined,
        client: undefined,
        object: undefined,
        accountId: undefined,
        result: "done",
        before: undefined,
        after: undefined,
        details: undefined,
      },
    ]);
    const { sequence, hash } = entry!;
    // Computed elsewhere: the encoding must never change.
    expect(hash).toBe(EXPECTED_HASH);
    expect(parseLink(formatLink({ sequence, hash }))).toEqual({ sequence, hash });
    for (const text of ["", "1", `1:${hash}0`, `x:${hash}`, `1:${hash.toUpperCase()}!`])
      expect(parseLink(text)).toBeUndefined();
  });
});

/** SHA-256 of 64 zeros, a line feed and `["parley.audit.1",1,1,"signed_in","nobody",null,…,"done",null,null,null]`. */
const EXPECTED_HASH = "0dac60c030fe27cd30f995da1259fabdf9b17216bbdc1605561597800aa6cf20";
