import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Authenticator } from "../../src/access/key-cache.ts";
import type { ConfirmedKey } from "../../src/access/known-keys.ts";
import type { Config } from "../../src/config/config.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { KeyFile } from "../../src/gateway/key-file.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

const SERVE_MS = 3_600_000;
const FACTS = { stateSecret: randomBytes(32), replicas: () => 3 };

function keyOf(hash: string, confirmedAtMs: number): ConfirmedKey {
  const record = { id: `key_${hash}`, keyFamilyId: `key_${hash}`, accountId: "acct", name: "a name" };
  const permitted = {
    models: ["m"],
    capabilities: ["chat"],
    options: "default",
    requiredLabels: {},
    tags: [],
    storesContent: false,
  } as const;
  return {
    hash,
    confirmedAtMs,
    grant: {
      record: { ...record, ...permitted, limits: NO_LIMITS, expiresAtMs: undefined, revokedAtMs: undefined },
      accountLimits: NO_LIMITS,
      accountDisabled: false,
      routing: { aliases: [["a", "b"]], credentials: new Map([["openai", { id: "c", sealed: "s" }]]) },
    },
  };
}

function flipByte(sealed: string): string {
  const bytes = Buffer.from(sealed, "base64");
  bytes[40]! ^= 1;
  return bytes.toString("base64");
}

function setUp() {
  const home = mkdtempSync(join(tmpdir(), "parley-keys-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const dataDir = join(home, "data");
  const clock = new FakeClock();
  const log = { warn: vi.fn<() => void>(), error: vi.fn<() => void>() };
  const open = ({
    databaseUrl = "postgres://u:p@db/parley",
    encryptionKey,
    worker = 0,
    workers = 3,
  }: { databaseUrl?: string; encryptionKey?: string; worker?: number; workers?: number } = {}) =>
    new KeyFile({ dataDir, databaseUrl, workers, outage: { serveMs: SERVE_MS, encryptionKey } } as Config, {
      clock,
      log: log as unknown as Logger,
      worker,
    });
  /** Writes these keys as one process does when it ends. */
  const write = async (file: KeyFile, keys: readonly ConfirmedKey[]): Promise<void> => {
    await file.keep({ changes: () => 0, confirmedKeys: async () => keys }, FACTS)();
  };
  return { dataDir, clock, log, open, write };
}

describe("the file of known keys", () => {
  it("is read by the next process, and says nothing to others", async () => {
    const { dataDir, clock, log, open, write } = setUp();
    const keys = [keyOf("one", clock.now()), keyOf("two", clock.now() - 10)];
    expect(await open().read()).toBeUndefined();
    await write(open(), keys);
    expect(await open().read()).toEqual({ keys, stateSecret: FACTS.stateSecret, replicas: 3 });
    for (const name of readdirSync(dataDir)) {
      expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
      expect(readFileSync(join(dataDir, name), "latin1")).not.toMatch(/key_one|a name/);
    }
    expect(log.warn).not.toHaveBeenCalled();
  });

  it.each([
    ["of another database", {}, { databaseUrl: "postgres://u:p@db/staging" }],
    ["of another encryption key", { encryptionKey: "a".repeat(64) }, { encryptionKey: "b".repeat(64) }],
  ])("%s is not used", async (_, written, read) => {
    const { clock, log, open, write } = setUp();
    await write(open(written), [keyOf("one", clock.now())]);
    expect(await open(read).read()).toBeUndefined();
    expect(log.warn).toHaveBeenCalledOnce();
    expect(await open(written).read()).toBeDefined();
  });

  it.each<[string, (lines: string[], other: string[]) => readonly string[]]>([
    ["with a changed byte", ([first, ...rest]) => [flipByte(first!), ...rest]],
    ["with a changed piece", (lines) => lines.with(1, flipByte(lines[1]!))],
    ["without a piece", (lines) => lines.toSpliced(1, 1)],
    ["with pieces in another order", ([head, one, two, ...rest]) => [head!, two!, one!, ...rest]],
    ["without its end", (lines) => lines.slice(0, -1)],
    ["with a piece of another write", (lines, other) => lines.with(1, other[1]!)],
  ])("is not used %s", async (_, change) => {
    const { dataDir, clock, open, write } = setUp();
    const path = join(dataDir, "known-keys-0.sealed");
    const keys = Array.from({ length: 3_000 }, (__, index) => keyOf(`${index}`, clock.now()));
    const linesOf = async (): Promise<string[]> => {
      await write(open(), keys);
      return readFileSync(path, "utf8").split("\n");
    };
    const [other, lines] = [await linesOf(), await linesOf()];
    expect(lines.length).toBeGreaterThan(3);
    expect((await open().read())?.keys).toHaveLength(3_000);
    writeFileSync(path, change(lines, other).join("\n"));
    expect(await open().read()).toBeUndefined();
  });

  it("has the aliases and credentials of an account once, in pieces of bounded size", async () => {
    const { dataDir, clock, open, write } = setUp();
    const aliases = Array.from({ length: 50 }, (_, index) => [`${index}-`.padEnd(255, "x"), "m"] as const);
    const keys = Array.from({ length: 3_000 }, (_, index) => {
      const key = keyOf(`${index}`, clock.now());
      const record = { ...key.grant.record, accountId: `acct_${index % 3}` };
      return { ...key, grant: { ...key.grant, record, routing: { ...key.grant.routing!, aliases } } };
    });
    await write(open(), keys);
    const path = join(dataDir, "known-keys-0.sealed");
    expect(statSync(path).size).toBeLessThan(2 * 2 ** 20);
    const lengths = readFileSync(path, "utf8")
      .split("\n")
      .map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(2 ** 19);
    const read = (await open().read())!.keys;
    expect(new Set(read.map(({ hash }) => hash)).size).toBe(3_000);
    expect(read.find(({ hash }) => hash === "7")).toEqual(keys[7]);
    const ofAccount = read.filter(({ grant }) => grant.record.accountId === "acct_1").map(({ grant }) => grant.routing);
    expect(new Set(ofAccount).size).toBeLessThan(10);
  });

  it("is written less often the larger it is", async () => {
    const { clock, open } = setUp();
    // 5.9 MiB.
    const large = Array.from({ length: 60 }, (_, index) => {
      const key = keyOf(`${index}`, clock.now());
      const record = { ...key.grant.record, name: "x".repeat(100 * 2 ** 10) };
      return { ...key, grant: { ...key.grant, record } };
    });
    let changes = 0;
    const confirmedKeys = vi.fn<Authenticator["confirmedKeys"]>(async () => large);
    const file = open();
    const stop = file.keep({ changes: () => ++changes, confirmedKeys }, FACTS);
    await clock.pass(2_000);
    await expect.poll(() => [file.ageMs, clock.pending]).toEqual([0, 1]);
    await clock.pass(5_000);
    expect(confirmedKeys).toHaveBeenCalledTimes(1);
    await clock.pass(1_000);
    await expect.poll(() => [confirmedKeys.mock.calls.length, clock.pending]).toEqual([2, 1]);
    await stop();
  });

  it("has the keys of all workers, without those that are too old", async () => {
    const { clock, open, write } = setUp();
    await write(open({ worker: 1 }), [keyOf("one", clock.now())]);
    await write(open({ worker: 2 }), [keyOf("two", clock.now() + 10), keyOf("old", clock.now() - SERVE_MS - 1)]);
    const before = await open({ worker: 3 }).read();
    expect(before?.keys.map(({ hash }) => hash)).toEqual(["two", "one"]);
    clock.advance(SERVE_MS + 11);
    expect(await open().read()).toBeUndefined();
  });

  it.each([
    ["fewer workers", { worker: 1, workers: 2 }, [1, 2]],
    ["no workers", { worker: 0, workers: 1 }, [0]],
  ])("is removed with its revoked keys when %s start after the ones that wrote it", async (_, first, left) => {
    const { dataDir, clock, open, write } = setUp();
    await write(open({ worker: 0 }), [keyOf("revoked", clock.now())]);
    await write(open({ worker: 2 }), [keyOf("two", clock.now())]);
    await write(open({ worker: 3 }), [keyOf("revoked", clock.now())]);
    await write(open(first), [keyOf("one", clock.now())]);
    const files = readdirSync(dataDir).filter((name) => name.endsWith(".sealed"));
    expect(files.toSorted()).toEqual(left.map((number) => `known-keys-${number}.sealed`));
    const { keys } = (await open(first).read())!;
    expect(keys.map(({ hash }) => hash)).not.toContain("revoked");
  });

  it("is written soon after other keys are known, and otherwise once a minute", async () => {
    const { clock, open } = setUp();
    const keys = {
      changes: vi.fn<() => number>(() => 0),
      confirmedKeys: vi.fn<Authenticator["confirmedKeys"]>(async () => [keyOf("one", clock.now())]),
    };
    const file = open();
    const stop = file.keep(keys, FACTS);
    await clock.pass(2_000);
    await expect.poll(() => [file.ageMs, clock.pending]).toEqual([0, 1]);
    for (let step = 0; step < 10; step++) await clock.pass(2_000);
    expect(keys.confirmedKeys).toHaveBeenCalledTimes(1);
    keys.changes.mockReturnValue(1);
    await clock.pass(2_000);
    await expect.poll(() => [keys.confirmedKeys.mock.calls.length, clock.pending]).toEqual([2, 1]);
    for (let step = 0; step < 31; step++) await clock.pass(2_000);
    await expect.poll(() => keys.confirmedKeys.mock.calls.length).toBe(3);
    await stop();
    expect(clock.pending).toBe(0);
  });

  it("that cannot be written is logged once, and is as old as the process", async () => {
    const { dataDir, clock, log, open, write } = setUp();
    writeFileSync(dataDir, "a file");
    const file = open();
    await clock.pass(5_000);
    await write(file, [keyOf("one", clock.now())]);
    expect(log.error).toHaveBeenCalledOnce();
    expect(file.ageMs).toBe(5_000);
  });
});
