import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { createAuditLog } from "../../src/access/audit-log.ts";
import { createStream, removeStream, sendStreams, type StreamSenderPorts } from "../../src/alerts/audit-streams.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import { auditStreamPortsOf } from "../../src/gateway/alerts.ts";
import { parseConfig } from "../../src/config/parse.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openTestStore } from "../support/test-store.ts";

const ADMIN = { actorId: "acct_default", network: "192.0.2.0/24" };

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver that answers with the status that it is given, once `answering` is done. */
async function startReceiver() {
  const received: Received[] = [];
  const state = { status: 204, answering: async () => undefined as void };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      void state.answering().then(() => response.writeHead(state.status).end());
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => void server.close());
  return { received, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit` };
}

let store: Store;
let clock: FakeClock;
let ports: StreamSenderPorts;
let context: Parameters<typeof createStream>[0];
let receiver: Awaited<ReturnType<typeof startReceiver>>;
beforeEach(async () => {
  const { dataDir, store: opened } = await openTestStore();
  store = opened;
  clock = new FakeClock();
  receiver = await startReceiver();
  const actor = { kind: "nobody", id: undefined } as const;
  const log = createAuditLog({ store: store.audit, clock, actor, listener: () => undefined });
  const credentials = credentialCipherOf({ accountCredentials: {}, dataDir, providers: [] });
  const config = parseConfig({ file: "parley.yaml", text: "alerts: { allow_private: true }", env: {} });
  context = auditStreamPortsOf({ store, credentials, inForce: () => config }, { clock, log });
  ports = {
    streams: store.auditStreams,
    audit: store.audit,
    cipher: context.cipher,
    allowsPrivate: () => true,
    nowMs: async () => clock.now(),
  };
});

const send = () => sendStreams(ports, new AbortController().signal);
const change = (details: Readonly<Record<string, string>>) =>
  context.log.record({ action: "key_revoked", ...ADMIN, accountId: "acct_default", details });

/** Writes an entry of a version whose entries had more text. */
const appendLarge = () =>
  store.audit.append({
    atMs: clock.now(),
    action: "aliases_changed",
    actor: { kind: "account", id: "acct_default" },
    network: undefined,
    client: undefined,
    object: undefined,
    accountId: "acct_default",
    result: "done",
    before: undefined,
    after: undefined,
    details: JSON.stringify({ aliases: "x".repeat(15_700) }),
  });

interface Message {
  readonly type: string;
  readonly id: string;
  readonly data: { readonly entries: readonly { readonly sequence: number; readonly action: string }[] };
}
const messages = (): Message[] => receiver.received.map(({ body }) => JSON.parse(body) as Message);
const sequences = (): number[] => messages().flatMap(({ data }) => data.entries.map(({ sequence }) => sequence));

it("sends each entry from the addition of its receiver on, in order, signed as Standard Webhooks say", async () => {
  await change({ n: "before" });
  const { stream, signingKey } = await createStream(context, receiver.url, ADMIN);
  expect(stream).toMatchObject({ target: new URL(receiver.url).origin, sequence: 1 });
  await change({ n: "after" });
  expect(await send()).toBe(2);
  expect(await send()).toBe(0);
  const [{ headers, body }] = receiver.received as [Received];
  // The clock of the test is not that of the library.
  const webhook = new Webhook(signingKey);
  const sentAt = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  expect(sentAt.getTime()).toBeLessThanOrEqual(clock.now());
  expect(webhook.sign(headers["webhook-id"] as string, sentAt, body)).toBe(headers["webhook-signature"]);
  expect(JSON.parse(body)).toMatchObject({
    type: "audit.entries",
    id: `${stream.id}_2_3`,
    data: {
      entries: [
        { sequence: 2, action: "audit_stream_created", actor: { kind: "account", id: "acct_default" } },
        { sequence: 3, action: "key_revoked", details: { n: "after" }, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
    },
  });
  expect(await store.auditStreams.streams()).toMatchObject([{ sequence: 3, sentAtMs: clock.now(), problem: "" }]);
});

it("loses nothing while its receiver is unavailable for an hour, and sends it soon after its return", async () => {
  await createStream(context, receiver.url, ADMIN);
  receiver.state.status = 410;
  for (let minute = 0; minute < 60; minute++) {
    await change({ minute: String(minute) });
    for (let round = 0; round < 12; round++) {
      await send();
      clock.advance(5_000);
    }
  }
  const attempts = receiver.received.length;
  expect(attempts).toBeGreaterThan(10);
  expect(attempts).toBeLessThan(30);
  expect(await store.auditStreams.streams()).toMatchObject([
    { sequence: 0, failures: attempts, problem: "The receiver answered with status 410." },
  ]);
  receiver.received.length = 0;
  receiver.state.status = 200;
  clock.advance(5 * 60_000);
  expect(await send()).toBe(61);
  expect(sequences()).toEqual(Array.from({ length: 61 }, (_, index) => index + 1));
  expect(await store.auditStreams.streams()).toMatchObject([{ sequence: 61, failures: 0, problem: "" }]);
});

it("sends many entries in messages of at most 100 entries and half a million characters", async () => {
  await createStream(context, receiver.url, ADMIN);
  await send();
  receiver.received.length = 0;
  for (let index = 0; index < 150; index++) await change({ index: String(index) });
  for (let index = 0; index < 60; index++) await appendLarge();
  expect(await send()).toBe(210);
  expect(messages().map(({ data }) => data.entries.length)).toEqual([100, 80, 30]);
  for (const { body } of receiver.received) expect(body.length).toBeLessThan(510_000);
  expect(sequences()).toEqual(Array.from({ length: 210 }, (_, index) => index + 2));
});

it("is continued by another process when one has died, which may send its last message again", async () => {
  await createStream(context, receiver.url, ADMIN);
  // It has claimed the receiver, and sends nothing more.
  await store.auditStreams.claimStreams({ nowMs: clock.now(), untilMs: clock.now() + 60_000, by: "dead" });
  expect(await send()).toBe(0);
  clock.advance(60_000);
  expect(await send()).toBe(1);
  expect(sequences()).toEqual([1]);
});

it("does not wait for an unavailable receiver to send to another one", async () => {
  const other = await startReceiver();
  await createStream(context, "http://127.0.0.1:1/", ADMIN);
  await createStream(context, other.url, ADMIN);
  await send();
  expect(other.received).toHaveLength(1);
  expect((await store.auditStreams.streams()).map(({ problem }) => problem).toSorted()).toEqual([
    "",
    "It could not be reached (ECONNREFUSED).",
  ]);
});

it("does not wait for a receiver that takes nine seconds for each message while entries are added", async () => {
  await createStream(context, receiver.url, ADMIN);
  receiver.state.answering = async () => {
    clock.advance(9_000);
    if (receiver.received.length < 10) await change({ n: String(receiver.received.length) });
  };
  expect(await send()).toBe(2);
  // The next round continues.
  expect(await send()).toBe(2);
  expect(sequences()).toEqual([1, 2, 3, 4]);
});

it("has at most five receivers, with addresses that may be used, which can be removed", async () => {
  for (const url of ["nonsense", "ftp://example.com", "http://169.254.169.254/latest"])
    await expect(createStream(context, url, ADMIN)).rejects.toThrow(/^url/);
  const made = await Promise.all(Array.from({ length: 5 }, () => createStream(context, receiver.url, ADMIN)));
  await expect(createStream(context, receiver.url, ADMIN)).rejects.toThrow("5 receivers already");
  for (const { stream } of made) await removeStream(context, stream.id, ADMIN);
  await expect(removeStream(context, made[0]!.stream.id, ADMIN)).rejects.toThrow("there is no receiver");
  expect(await send()).toBe(0);
});
