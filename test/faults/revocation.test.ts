import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { beginStream, localModel, startUpstream, textEvent, type Upstream } from "../product/support/upstream.ts";
import { openGrpcCalls, openHttpCalls, openPlayground, type WaitingCall } from "../support/open-calls.ts";
import { type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { ConsoleCaller } from "./support/console.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

/** Documented time until a change of a key takes effect. */
const PROMISED_MS = 5_000;
/** Simultaneous calls of each entrance. */
const TIMES = scale(4, 40);
const PLAYGROUNDS = 4;
/** Interval between two chunks of an endless answer. */
const DRIP_MS = 200;
const MODEL = "local/test";
const PICTURES = "local/pictures";

let upstream: Upstream;
let product: Product;
let front: Product;
let store: Store;
let administrator: ConsoleCaller;

beforeAll(async () => {
  // Whole answers never arrive, streams never end.
  upstream = await startUpstream(({ body, response }) => {
    if ((JSON.parse(body) as { stream?: boolean }).stream !== true) return;
    beginStream(response);
    const drip = setInterval(() => response.write(textEvent("word ")), DRIP_MS);
    response.write(textEvent("word "));
    response.once("close", () => clearInterval(drip));
  });
  const { providers, models } = localModel(upstream.url) as { providers: object; models: Record<string, object> };
  const pictures = { ...models[MODEL], modalities: { input: ["text"], output: ["text", "image"] } };
  const config = {
    workers: 2,
    log: { level: "warn" },
    limits: UNLIMITED,
    sign_up: "open",
    providers,
    models: { ...models, [PICTURES]: pictures, "local/other": models[MODEL] },
  };
  product = await startProduct({ config });
  const flags = ["--role", "front", "--core", `127.0.0.1:${product.grpcPort}`];
  front = await startProduct({ config: { log: { level: "warn" } }, flags });
  store = await openStore({ dataDir: join(product.home, "data"), databaseUrl: undefined });
  administrator = new ConsoleCaller(product);
  await administrator.signUp("ada@example.com");
}, 60_000);
afterAll(async () => {
  await store?.close();
  await front?.stop();
  await product?.stop();
  await upstream?.close();
});

let members = 0;

/** A member with a session and a key. */
async function makeMember(lifetimeMs?: number) {
  const member = new ConsoleCaller(product);
  await member.signUp(`member${++members}@example.com`);
  const { session } = (await member.call("SessionService/GetSession")) as {
    session: { account: { id: string } };
  };
  const accountId = session.account.id;
  const context = { store: store.keys, clock: systemClock };
  const { secret, record } = await createKey(context, { name: "in use", accountId, lifetimeMs });
  return { accountId, cookie: member.cookie, key: secret, keyId: record.id };
}

type Member = Awaited<ReturnType<typeof makeMember>>;

/** Opens calls of this member on every entrance, all in the middle of their answer. */
async function openCalls(
  { key, cookie, keyId }: Member,
  { times, image = false }: { times: number; image?: boolean | undefined },
) {
  const before = upstream.exchanges.length;
  const model = image ? PICTURES : MODEL;
  const asked = { key, model, image };
  const calls: WaitingCall[] = [];
  for (let time = 0; time < times; time++) {
    calls.push(...openHttpCalls(product, asked), ...openGrpcCalls(product, asked));
    for (const call of openHttpCalls(front, asked)) calls.push({ ...call, entrance: `front, ${call.entrance}` });
    if (time < PLAYGROUNDS) calls.push(openPlayground(product, { cookie, keyId, model, image }));
  }
  const early: string[] = [];
  for (const { entrance, ended } of calls)
    void ended.then(({ code, message }) => early.push(`${entrance}: ${code} ${message}`));
  const arrived = () => [upstream.exchanges.length - before, ...early];
  await expect.poll(arrived, { timeout: 20_000 }).toEqual([calls.length]);
  await Promise.all(calls.filter(({ entrance }) => !entrance.endsWith("whole")).map(({ begun }) => begun));
  return { calls, exchanges: upstream.exchanges.slice(before) };
}

interface Change {
  readonly name: string;
  readonly code: "unauthenticated" | "permission_denied";
  readonly image?: boolean;
  readonly lifetimeMs?: number;
  /** Makes the change, and resolves when it is stored or in force. */
  readonly make: (member: Member) => Promise<unknown>;
}

const CHANGES: readonly Change[] = [
  {
    name: "revoked in the dashboard",
    code: "unauthenticated",
    make: ({ keyId }) => administrator.call("KeyService/Revoke", { id: keyId }),
  },
  {
    // Another process on the same database, as the command line: there is no notification.
    name: "revoked on the command line",
    code: "unauthenticated",
    make: ({ keyId }) => revokeKey({ store: store.keys, clock: systemClock }, keyId),
  },
  {
    name: "whose account was disabled",
    code: "unauthenticated",
    make: ({ accountId }) => administrator.call("AccountService/Update", { id: accountId, disabled: true }),
  },
  {
    name: "that has lost the model",
    code: "permission_denied",
    make: ({ keyId }) => administrator.call("KeyService/Update", { id: keyId, models: { ids: ["local/other"] } }),
  },
  {
    name: "that has lost the capability",
    code: "permission_denied",
    image: true,
    make: ({ keyId }) =>
      administrator.call("KeyService/Update", {
        id: keyId,
        capabilities: { capabilities: ["KEY_CAPABILITY_CHAT"] },
      }),
  },
  {
    name: "rotated without a grace",
    code: "unauthenticated",
    make: ({ keyId }) => administrator.call("KeyService/Rotate", { id: keyId, grace: "ROTATION_GRACE_NONE" }),
  },
  {
    name: "that has expired",
    code: "unauthenticated",
    lifetimeMs: 20_000,
    make: async ({ keyId }) => {
      const { expiresAtMs } = (await store.keys.find(keyId))!;
      await new Promise((resolve) => setTimeout(resolve, expiresAtMs! - Date.now()));
    },
  },
];

describe("the calls in flight of a key", () => {
  it.each(CHANGES)(
    "$name end within five seconds on every entrance, and no other calls do",
    async ({ name, code, image, lifetimeMs, make }) => {
      const member = await makeMember(lifetimeMs);
      const neighbour = await makeMember();
      const { calls, exchanges } = await openCalls(member, { times: TIMES, image: image ?? false });
      const others = await openCalls(neighbour, { times: 1, image: image ?? false });
      await make(member);
      const changedMs = performance.now();
      const open = new Set(calls);
      for (const call of calls) void call.ended.then(() => open.delete(call));
      await expect.poll(() => [...open].map(({ entrance }) => entrance), { timeout: 4 * PROMISED_MS }).toEqual([]);
      const endings = await Promise.all(calls.map(({ ended }) => ended));
      const told = new Set(calls.map(({ entrance }, index) => `${entrance}: ${endings[index]!.code}`));
      expect([...told].filter((text) => !text.endsWith(`: ${code}`))).toEqual([]);
      // The provider's connection stays open for `timeouts.settle_ms` to receive the token counts.
      await expect.poll(() => exchanges.filter(({ closed }) => !closed).length, { timeout: 5_000 }).toBe(0);
      expect(others.exchanges.filter(({ closed }) => closed)).toEqual([]);
      const latestMs = Math.max(...endings.map(({ atMs }) => atMs)) - changedMs;
      figure({ name: `calls in flight of a key ${name}`, value: calls.length, unit: "", atLeast: 10 * TIMES });
      figure({ name: "the last of them ended after", value: Math.round(latestMs), unit: "ms", atMost: PROMISED_MS });
      const playgrounds = Math.min(TIMES, PLAYGROUNDS);
      const expected = [
        ...Array<string>(playgrounds).fill("playground"),
        ...Array<string>(calls.length - playgrounds).fill(code),
      ];
      const outcomes = async (): Promise<string[]> => {
        const { entries } = await store.ledger.list({ keyId: member.keyId, limit: 1_000 });
        return entries.map(({ entrance, outcome }) => (entrance === "console" ? "playground" : outcome)).toSorted();
      };
      await expect.poll(outcomes, { timeout: 5_000 }).toEqual(expected.toSorted());
      await administrator.call("AccountService/Update", { id: neighbour.accountId, disabled: true });
      await Promise.all(others.calls.map(({ ended }) => ended));
    },
    timeLimit(60, 120),
  );
});
