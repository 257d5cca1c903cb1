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

  it("that was changed by another program is not used", async () => {
    const { dataDir, clock, open, write } = setUp();
    await write(open(), [keyOf("one", clock.now())]);
    const path = join(dataDir, "known-keys-0.sealed");
    const bytes = Buffer.from(readFileSync(path, "utf8"), "base64");
    bytes[40]! ^= 1;
    writeFileSync(path, bytes.toString("base64"));
    expect(await open().read()).toBeUndefined();
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

  it("that cannot be written is told once, and is as old as the process", async () => {
    const { dataDir, clock, log, open, write } = setUp();
    writeFileSync(dataDir, "a file");
    const file = open();
    await clock.pass(5_000);
    await write(file, [keyOf("one", clock.now())]);
    expect(log.error).toHaveBeenCalledOnce();
    expect(file.ageMs).toBe(5_000);
  });
});
