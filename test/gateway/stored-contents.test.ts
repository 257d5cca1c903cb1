import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { parseConfig } from "../../src/config/parse.ts";
import type { CompletionContent } from "../../src/core/content.ts";
import { jobsOf } from "../../src/gateway/jobs.ts";
import { type StoredContents, storedContentsOf } from "../../src/gateway/stored-contents.ts";
import type { SealedRows } from "../../src/store/sealed-rows.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { requestTo } from "../core/requests.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MAY_MOUNT, mountDisk } from "../support/small-disk.ts";
import { openTestStore } from "../support/test-store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const KEY = "Qk1l0m1bQ4p4wqjK8F3O1l1H0z8Jw2oY1s3l5m7n9p0=";
const OTHER_KEY = "ab".repeat(32);
const ID = "chatcmpl-1";
const WAIT = { timeout: 20_000 };

let dataDir: string;
let store: Store;
let clock: FakeClock;

beforeEach(async () => {
  ({ store, dataDir } = await openTestStore());
  clock = new FakeClock();
});

const configOf = (content: object): ReturnType<typeof parseConfig> =>
  parseConfig({ file: "parley.yaml", text: JSON.stringify({ content }), env: {} });

function open(content: object, inStore: SealedRows = store.contents, databaseUrl?: string): StoredContents | undefined {
  const config = { ...configOf(content), dataDir, databaseUrl };
  return storedContentsOf(config, { store: inStore, clock, log: createLogger("silent") });
}

function contentOf(completionId = ID, more: Partial<CompletionContent> = {}): CompletionContent {
  const facts = { accountId: DEFAULT_ACCOUNT_ID, completionId, request: requestTo(), choices: [], bytes: 1_000 };
  return { ...facts, isRequestCut: true, isAnswerCut: false, ...more };
}

async function storeOne(contents: StoredContents): Promise<void> {
  const { stored } = contents.counts();
  contents.store(contentOf());
  await vi.waitFor(() => expect(contents.counts().stored).toBe(stored + 1), WAIT);
}

describe("stored prompts and answers", () => {
  it("are off by default, without a key", () => {
    expect(open({})).toBeUndefined();
    expect(readdirSync(dataDir)).not.toContain("content.key");
  });

  it("are read as they were, and encrypted in the file of the database", async () => {
    const contents = open({ store_days: 1 })!;
    await storeOne(contents);
    const read = await contents.read(DEFAULT_ACCOUNT_ID, ID);
    expect(read).toMatchObject({ request: requestTo(), choices: [], requestCut: true, answerCut: false });
    expect(statSync(join(dataDir, "content.key")).mode & 0o777).toBe(0o600);
    const [row] = new DatabaseSync(join(dataDir, "parley.db")).prepare("select * from completion_contents").all();
    expect(row).toMatchObject({ account_id: DEFAULT_ACCOUNT_ID, id: ID });
    await store.close();
    const files = readdirSync(dataDir).filter((name) => name.startsWith("parley.db"));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dataDir, name))));
    const stored = Buffer.from(String(row!["content"]), "base64");
    expect(bytes.includes(String(row!["content"]).slice(0, 100))).toBe(true);
    for (const place of [bytes, stored]) expect(place.includes("Say hi.")).toBe(false);
    store = await openStore({ dataDir, databaseUrl: undefined });
    onTestFinished(() => store.close());
  });

  it.runIf(MAY_MOUNT)("leave the last of the disk to the ledger", async () => {
    const small = join(dataDir, "small");
    const disk = mountDisk(small, 16 * 1024 * 1024);
    onTestFinished(() => disk.unmount());
    const config = { ...configOf({ store_days: 1 }), dataDir: small, databaseUrl: undefined };
    const contents = storedContentsOf(config, { store: store.contents, clock, log: createLogger("silent") })!;
    await storeOne(contents);
    disk.fill();
    contents.store(contentOf("chatcmpl-2"));
    await vi.waitFor(() => expect(contents.counts()).toEqual({ stored: 1, dropped: 0, failed: 1 }), WAIT);
    expect(await contents.read(DEFAULT_ACCOUNT_ID, "chatcmpl-2")).toBeUndefined();
    disk.free();
    contents.store(contentOf("chatcmpl-3"));
    await vi.waitFor(() => expect(contents.counts().stored).toBe(2), WAIT);
  });

  it("are kept for their days, and removed by the job", async () => {
    const contents = open({ store_days: 2 })!;
    await storeOne(contents);
    clock.advance(2 * DAY_MS - 1);
    expect(await contents.read(DEFAULT_ACCOUNT_ID, ID)).toBeDefined();
    clock.advance(1);
    expect(await contents.read(DEFAULT_ACCOUNT_ID, ID)).toBeUndefined();
    const byClock = { ...store, nowMs: async () => clock.now() };
    const job = jobsOf(configOf({ store_days: 2 }), { store: byClock, clock }).find(({ name }) =>
      name.includes("prompts"),
    )!;
    expect(await job.run(new AbortController().signal)).toBe(1);
    expect(await store.contents.find(DEFAULT_ACCOUNT_ID, ID, 0)).toBeUndefined();
  });

  it("are removed by the job at once when none are kept any more", async () => {
    await storeOne(open({ store_days: 2 })!);
    clock.advance(1);
    const byClock = { ...store, nowMs: async () => clock.now() };
    const job = jobsOf(configOf({}), { store: byClock, clock }).find(({ name }) => name.includes("prompts"))!;
    expect(await job.run(new AbortController().signal)).toBe(1);
  });

  it("are not readable with another key, as another completion or for another account", async () => {
    await storeOne(open({ store_days: 1, encryption_key: KEY })!);
    const sealed = (await store.contents.find(DEFAULT_ACCOUNT_ID, ID, 0))!;
    const moved = { ...store.contents, find: () => Promise.resolve(sealed) };
    const refusal = { code: "invalid_request", message: expect.stringContaining("another key") as unknown };
    await expect(
      open({ store_days: 1, encryption_key: OTHER_KEY })!.read(DEFAULT_ACCOUNT_ID, ID),
    ).rejects.toMatchObject(refusal);
    const from = open({ store_days: 1, encryption_key: KEY }, moved)!;
    expect(await from.read(DEFAULT_ACCOUNT_ID, ID)).toBeDefined();
    await expect(from.read(DEFAULT_ACCOUNT_ID, "chatcmpl-2")).rejects.toMatchObject(refusal);
    await expect(from.read("acct_other", ID)).rejects.toMatchObject(refusal);
  });

  it("are counted when the database fails, and when too many wait for it", async () => {
    const failing = { ...store.contents, insert: () => Promise.reject(new Error("no disk")) };
    const contents = open({ store_days: 1 }, failing)!;
    contents.store(contentOf());
    await vi.waitFor(() => expect(contents.counts()).toEqual({ stored: 0, dropped: 0, failed: 1 }), WAIT);
    const hanging = Promise.withResolvers<void>();
    const slow = open({ store_days: 1 }, { ...store.contents, insert: () => hanging.promise })!;
    const large = { bytes: 10 * 1024 * 1024 };
    for (let at = 0; at < 5; at++) slow.store(contentOf(`chatcmpl-${at}`, large));
    expect(slow.counts()).toEqual({ stored: 0, dropped: 2, failed: 0 });
    hanging.resolve();
    await vi.waitFor(() => expect(slow.counts()).toEqual({ stored: 3, dropped: 2, failed: 0 }), WAIT);
    slow.store(contentOf("chatcmpl-6", large));
    await vi.waitFor(() => expect(slow.counts().stored).toBe(4), WAIT);
  });

  it("are written before the process ends, which waits five seconds at most", async () => {
    const contents = open({ store_days: 1 })!;
    for (let at = 0; at < 20; at++) contents.store(contentOf(`chatcmpl-${at}`));
    await contents.close();
    expect(contents.counts()).toEqual({ stored: 20, dropped: 0, failed: 0 });
    contents.store(contentOf("chatcmpl-late"));
    expect(contents.counts().dropped).toBe(1);

    const hanging = open({ store_days: 1 }, { ...store.contents, insert: () => new Promise(() => undefined) })!;
    for (let at = 0; at < 3; at++) hanging.store(contentOf(`chatcmpl-${at}`));
    const closed = hanging.close();
    clock.advance(5_000);
    await closed;
    await vi.waitFor(() => expect(hanging.counts().dropped).toBe(2), WAIT);
  });

  it("need a configured key with a database that processes share", () => {
    const database = { url: "postgres://localhost/parley" };
    const parse = (content: object) => () =>
      parseConfig({ file: "parley.yaml", text: JSON.stringify({ database, content }), env: {} });
    expect(parse({ store_days: 1 })).toThrow("content.encryption_key: is required");
    expect(parse({ store_days: 1, encryption_key: KEY })).not.toThrow();
    expect(parse({})).not.toThrow();
    expect(parse({ store_days: 91, encryption_key: KEY })).toThrow("content.store_days");
  });
});
