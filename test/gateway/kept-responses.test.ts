import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { type KeptResponses, MAX_KEPT_BYTES } from "../../src/core/kept-responses.ts";
import type { Limiter } from "../../src/core/limiter.ts";
import { jobsOf } from "../../src/gateway/jobs.ts";
import { keptResponsesOf } from "../../src/gateway/kept-responses.ts";
import { keyOfDirectory } from "../../src/store/cipher.ts";
import type { ResponseStore } from "../../src/store/responses/response-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openTestStore } from "../support/test-store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const KEY = "Qk1l0m1bQ4p4wqjK8F3O1l1H0z8Jw2oY1s3l5m7n9p0=";
const OTHER_KEY = "ab".repeat(32);
const ID = "resp_1";
const CONTENT = Buffer.from("the content");

let dataDir: string;
let store: Store;
let clock: FakeClock;

beforeEach(async () => {
  ({ store, dataDir } = await openTestStore());
  clock = new FakeClock();
});

const configOf = (responses: object): ReturnType<typeof parseConfig> =>
  parseConfig({ file: "parley.yaml", text: JSON.stringify({ responses }), env: {} });

function open(
  responses: object,
  inStore: ResponseStore = store.responses,
  databaseUrl?: string,
): KeptResponses | undefined {
  const config = { ...configOf(responses), dataDir, databaseUrl };
  const limiter = undefined as unknown as Limiter;
  return keptResponsesOf(config, { store: inStore, limiter, clock, log: createLogger("silent") });
}

const keep = (responses: KeptResponses | undefined, content = CONTENT): Promise<boolean | undefined> =>
  Promise.resolve(responses?.keep(DEFAULT_ACCOUNT_ID, { id: ID, content }));

describe("stored responses", () => {
  it("are off by default, without a key", () => {
    expect(open({})).toBeUndefined();
    expect(readdirSync(dataDir)).not.toContain("responses.key");
  });

  it("are kept for their days, and removed by the job", async () => {
    const responses = open({ store_days: 2 })!;
    expect(await keep(responses)).toBe(true);
    clock.advance(2 * DAY_MS - 1);
    expect((await responses.find(DEFAULT_ACCOUNT_ID, ID))?.open()).toEqual(CONTENT);
    clock.advance(1);
    expect(await responses.find(DEFAULT_ACCOUNT_ID, ID)).toBeUndefined();
    expect(await responses.remove(DEFAULT_ACCOUNT_ID, ID)).toBe(false);
    const byClock = { ...store, nowMs: async () => clock.now() };
    const jobs = jobsOf(configOf({ store_days: 2 }), { store: byClock, clock });
    const job = jobs.find(({ name }) => name.includes("stored"))!;
    expect(await job.run(new AbortController().signal)).toBe(1);
    expect(await store.responses.find(DEFAULT_ACCOUNT_ID, ID, 0)).toBeUndefined();
  });

  it("are not readable with another key, as another response or for another account", async () => {
    const responses = open({ store_days: 1, encryption_key: KEY })!;
    await keep(responses);
    const opened = async (by: KeptResponses, accountId = DEFAULT_ACCOUNT_ID, id = ID): Promise<Buffer | undefined> =>
      (await by.find(accountId, id))!.open();
    expect(await opened(open({ store_days: 1, encryption_key: OTHER_KEY })!)).toBeUndefined();
    expect(await opened(open({ store_days: 1 })!)).toBeUndefined();
    const content = (await store.responses.find(DEFAULT_ACCOUNT_ID, ID, 0))!;
    const moved = { ...store.responses, find: () => Promise.resolve(content) };
    const from = open({ store_days: 1, encryption_key: KEY }, moved)!;
    expect(await opened(from)).toEqual(CONTENT);
    expect(await opened(from, DEFAULT_ACCOUNT_ID, "resp_2")).toBeUndefined();
    expect(await opened(from, "acct_other")).toBeUndefined();
  });

  it("are not kept when they are too large, and when the database fails", async () => {
    expect(await keep(open({ store_days: 1 }), Buffer.alloc(MAX_KEPT_BYTES + 1))).toBe(false);
    const failing = { ...store.responses, insert: () => Promise.reject(new Error("no disk")) };
    expect(await keep(open({ store_days: 1 }, failing))).toBe(false);
  });

  it("are not kept when the database takes too long, also not later", async () => {
    const slow = Promise.withResolvers<void>();
    const removed: string[] = [];
    const hanging: ResponseStore = {
      ...store.responses,
      insert: () => slow.promise,
      remove: (_account, id) => Promise.resolve(removed.push(id) > 0),
    };
    const kept = keep(open({ store_days: 1 }, hanging));
    clock.advance(2_000);
    expect(await kept).toBe(false);
    slow.resolve();
    await expect.poll(() => removed).toEqual([ID]);
  });

  it("are read and written one at a time, for the accounts in turn", async () => {
    const running: (() => void)[] = [];
    const began: string[] = [];
    const gated = <T>(name: string, value: T): Promise<T> => {
      began.push(name);
      return new Promise((resolve) => running.push(() => resolve(value)));
    };
    const responses = open(
      { store_days: 1 },
      {
        ...store.responses,
        insert: ({ account_id: account }) => gated(`${account} insert`, undefined),
        find: (account) => gated(`${account} find`, undefined),
        remove: (account) => gated(`${account} remove`, true),
      },
    )!;
    const all = Promise.all([
      responses.keep("a", { id: "1", content: CONTENT }),
      responses.keep("a", { id: "2", content: CONTENT }),
      responses.find("a", "1"),
      responses.remove("b", "1"),
    ]);
    for (let at = 1; at <= 4; at++) {
      await expect.poll(() => running.length).toBe(1);
      expect(began).toHaveLength(at);
      running.pop()!();
    }
    expect(await all).toEqual([true, true, undefined, true]);
    expect(began).toEqual(["a insert", "a insert", "b remove", "a find"]);
  });

  it("are read four at a time with PostgreSQL, so that other statements keep connections", async () => {
    const running: (() => void)[] = [];
    const began: string[] = [];
    const gated: ResponseStore = {
      ...store.responses,
      find(_account, id) {
        began.push(id);
        return new Promise((resolve) => running.push(() => resolve(undefined)));
      },
    };
    const responses = open({ store_days: 1, encryption_key: KEY }, gated, "postgres://localhost/parley")!;
    const all = Promise.all(["1", "2", "3", "4", "5"].map((id) => responses.find("a", id)));
    await expect.poll(() => began).toEqual(["1", "2", "3", "4"]);
    running.shift()!();
    await expect.poll(() => began.length).toBe(5);
    for (const end of running) end();
    expect(await all).toHaveLength(5);
  });

  it("are unavailable when their turn does not come, and not kept", async () => {
    const inserted: string[] = [];
    const hanging: ResponseStore = {
      ...store.responses,
      insert: ({ id }) => new Promise<void>(() => inserted.push(id)),
    };
    const responses = open({ store_days: 1 }, hanging)!;
    const kept = Promise.all(["1", "2"].map((id) => responses.keep("a", { id, content: CONTENT })));
    const found = responses.find("a", "1");
    await expect.poll(() => inserted).toEqual(["1"]);
    clock.advance(10_000);
    expect(await kept).toEqual([false, false]);
    await expect(found).rejects.toMatchObject({ code: "overloaded" });
    expect(inserted).toEqual(["1"]);
    expect(clock.pending).toBe(0);
  });

  it("are deleted with their account", async () => {
    const database = new DatabaseSync(join(dataDir, "parley.db"));
    onTestFinished(() => database.close());
    await keep(open({ store_days: 1 }));
    database.exec("pragma foreign_keys = on");
    database.prepare("delete from accounts where id = ?").run(DEFAULT_ACCOUNT_ID);
    expect(database.prepare("select * from kept_responses").all()).toEqual([]);
  });

  it("are unavailable with the database", async () => {
    const find = (): Promise<never> => Promise.reject(new Error("away"));
    const responses = open({ store_days: 1 }, { ...store.responses, find, remove: find })!;
    await expect(responses.find(DEFAULT_ACCOUNT_ID, ID)).rejects.toMatchObject({ code: "overloaded" });
    await expect(responses.remove(DEFAULT_ACCOUNT_ID, ID)).rejects.toMatchObject({ code: "overloaded" });
  });
});

describe("the key of the data directory", () => {
  it("is made once, for its owner only", () => {
    const key = keyOfDirectory(dataDir, "responses.key");
    expect(key).toHaveLength(32);
    expect(keyOfDirectory(dataDir, "responses.key")).toEqual(key);
    expect(statSync(join(dataDir, "responses.key")).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir).filter((name) => name.startsWith("responses"))).toEqual(["responses.key"]);
  });

  it("is refused when it is damaged", () => {
    writeFileSync(join(dataDir, "responses.key"), "short");
    expect(() => keyOfDirectory(dataDir, "responses.key")).toThrow("is not a key of 32 bytes");
  });
});

describe("the configured key", () => {
  it("is required with PostgreSQL", () => {
    const parse = (responses: object) =>
      parseConfig({
        file: "parley.yaml",
        text: JSON.stringify({ database: { url: "postgres://localhost/parley" }, responses }),
        env: {},
      });
    expect(() => parse({ store_days: 1 })).toThrow("responses.encryption_key: is required with database.url");
    expect(parse({ store_days: 1, encryption_key: KEY }).responses.encryptionKey).toBe(KEY);
    expect(() => parse({ store_days: 1, encryption_key: "secret" })).toThrow("must be 32 random bytes");
  });
});
