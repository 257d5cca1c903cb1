import { createHook } from "node:async_hooks";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { Webhook } from "standardwebhooks";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { ChannelKind, DeliveryRecord } from "../../src/alerts/alert.ts";
import { createChannel } from "../../src/alerts/channels.ts";
import type { SmtpSettings } from "../../src/alerts/mail.ts";
import { RETRY_MS, sendDue, sendTest, toEnd } from "../../src/alerts/sender.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import { alertPortsOf, senderOf } from "../../src/gateway/alerts.ts";
import type { Store } from "../../src/store/store.ts";
import { findingOf } from "../store/contracts/alert-store.ts";
import { startMailServer } from "../support/mail-server.ts";
import { openTestStore } from "../support/test-store.ts";

let dataDir: string;
let store: Store;
beforeEach(async () => {
  ({ store, dataDir } = await openTestStore());
});

/** What sends, and creates channels, with this configuration. */
function setUp(config: object = { alerts: { allow_private: true } }, smtp?: SmtpSettings) {
  const parsed = parseConfig({ file: "parley.yaml", text: JSON.stringify(config), env: {} });
  const parts = {
    store,
    credentials: credentialCipherOf({ accountCredentials: {}, dataDir, providers: [] }),
    inForce: () => ({ ...parsed, smtp: smtp ?? parsed.smtp }),
  };
  const ports = alertPortsOf(parts, { clock: systemClock, log: { record: async () => undefined } });
  const create = (kind: ChannelKind, url: string, recipients: string[] = []) =>
    createChannel(ports, {
      kind,
      name: "On call",
      url,
      recipients,
      rules: [],
      leastSeverity: "warning",
      actor: { actorId: undefined, network: undefined },
    });
  return { sender: senderOf(parts), create };
}

/** Opens an alert for these receivers, and returns its messages after one sending. */
async function openAndSend(sender: ReturnType<typeof setUp>["sender"], receivers: readonly Partial<DeliveryRecord>[]) {
  const nowMs = await store.alerts.nowMs();
  const all = receivers.map(({ channelId, recipient = "On call" }) => ({ channelId, recipient }));
  const finding = findingOf({ title: "Key “<!channel> & co” fails", detail: "Half of them." });
  await store.alerts.apply({ nowMs, seen: [], resolve: [], open: [{ finding, receivers: all }] });
  await sendDue(sender, new AbortController().signal);
  const [alert] = await store.alerts.open();
  return { alert: alert!, deliveries: await store.alerts.deliveries([alert!.id]), nowMs };
}

interface Received {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server that answers with these statuses, the last one again and again; 0: never. */
async function receiver(...statuses: readonly number[]) {
  const received: Received[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      const status = statuses[Math.min(received.length, statuses.length - 1)]!;
      received.push({ path: request.url!, headers: request.headers, body });
      if (status === 0) return;
      response.writeHead(status, status >= 300 && status < 400 ? { location: "http://127.0.0.1:9/other" } : {});
      response.end();
    });
  });
  const url = `http://127.0.0.1:${await listen(server)}/hook?token=of-the-receiver`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, url };
}

function listen(server: Server | TcpServer): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  return promise;
}

describe("a webhook", () => {
  it("is signed so that the library of Standard Webhooks verifies it, and refuses every change", async () => {
    const { received, url } = await receiver(204);
    const { sender, create } = setUp();
    const { channel, signingKey } = await create("webhook", url);
    const { alert, deliveries } = await openAndSend(sender, [{ channelId: channel.id }]);
    expect(deliveries).toMatchObject([{ attempts: 1, nextAtMs: undefined, problem: "", sentAtMs: expect.any(Number) }]);
    const [{ headers, body }] = received as [Received];
    const verifier = new Webhook(signingKey!);
    expect(verifier.verify(body, headers as Record<string, string>)).toMatchObject({
      type: "alert.opened",
      id: deliveries[0]!.id,
      data: { alert: { id: alert.id, rule: "error_rate", detail: "Half of them.", resolved: null } },
    });
    const verify = (text: string, changes: Record<string, string>) => () =>
      verifier.verify(text, { ...(headers as Record<string, string>), ...changes });
    expect(verify(`${body} `, {})).toThrow("No matching signature");
    expect(verify(body, { "webhook-id": "another" })).toThrow("No matching signature");
    expect(verify(body, { "webhook-timestamp": String(Math.floor(Date.now() / 1000) - 600) })).toThrow("too old");
    expect(headers).toMatchObject({ "webhook-id": deliveries[0]!.id, "content-type": "application/json" });
  });

  it.each([
    [500, "The receiver answered with status 500.", true],
    [429, "The receiver answered with status 429.", true],
    [404, "The receiver answered with status 404.", false],
    [302, "The receiver redirects (status 302), which is not followed.", false],
  ])("that is answered with %d is kept with its reason", async (status, problem, isRetried) => {
    const { received, url } = await receiver(status);
    const { sender, create } = setUp();
    const { channel } = await create("webhook", url);
    const { deliveries, nowMs } = await openAndSend(sender, [{ channelId: channel.id }]);
    expect(deliveries).toMatchObject([{ attempts: 1, problem, sentAtMs: undefined }]);
    expect(received).toHaveLength(1);
    const waitMs = (deliveries[0]!.nextAtMs ?? 0) - nowMs;
    expect(waitMs >= RETRY_MS[0]!).toBe(isRetried);
  });

  it("is sent again with the same ID until it is accepted", async () => {
    const { received, url } = await receiver(503, 200);
    const { sender, create } = setUp();
    const { channel } = await create("webhook", url);
    const { alert, deliveries } = await openAndSend(sender, [{ channelId: channel.id }]);
    await store.alerts.endDelivery(deliveries[0]!.id, { nextAtMs: 1, sentAtMs: undefined, problem: "" });
    expect(await sendDue(sender, new AbortController().signal)).toBe(1);
    expect(await store.alerts.deliveries([alert.id])).toMatchObject([{ attempts: 2, nextAtMs: undefined }]);
    const [first, second] = received;
    expect(first!.headers["webhook-id"]).toBe(second!.headers["webhook-id"]);
  });

  it("that sends informational answers without an end is ended", async () => {
    const flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000);
    const server = createTcpServer((socket) => {
      const timer = setInterval(() => socket.write(flood), 1);
      socket.on("error", () => undefined).on("close", () => clearInterval(timer));
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    onTestFinished(() => void server.close());
    const { sender, create } = setUp();
    const { channel } = await create("webhook", url);
    const outcome = await sendTest(sender, channel);
    expect(outcome).toEqual({ problem: "There are more than 16 informational answers.", mayRetry: true });
  });

  it("that does not answer delays no other channel, gets one message at a time, and is ended after ten seconds", async () => {
    const [silent, good] = [await receiver(0), await receiver(200)];
    const { sender, create } = setUp();
    const channels = [await create("webhook", silent.url), await create("webhook", good.url)];
    const nowMs = await store.alerts.nowMs();
    const receivers = channels.map(({ channel: { id } }) => ({ channelId: id, recipient: "On call" }));
    // Messages to the silent one are first.
    for (const [index, each] of receivers.entries())
      for (let count = 0; count < 12; count += 1) {
        const finding = findingOf({ subject: `model:${index}-${count}` });
        const open = [{ finding, receivers: [each] }];
        await store.alerts.apply({ nowMs: nowMs - 100 + index, seen: [], resolve: [], open });
      }
    const sending = sendDue(sender, new AbortController().signal);
    await expect.poll(() => good.received.length, { timeout: 5_000 }).toBe(12);
    expect(await sending).toBe(12);
    expect(silent.received).toHaveLength(1);
    const all = await store.alerts.deliveries((await store.alerts.open()).map(({ id }) => id));
    expect(all.filter(({ problem }) => problem !== "")).toMatchObject([
      { problem: "There was no answer in 10 s.", nextAtMs: expect.any(Number), sentAtMs: undefined },
    ]);
  });

  it("has its name looked up once for all messages that wait for it", async () => {
    const { received, url } = await receiver(200);
    const { sender, create } = setUp();
    const { channel } = await create("webhook", url.replace("127.0.0.1", "localhost"));
    let lookups = 0;
    const hook = createHook({ init: (_, type) => void (lookups += Number(type === "GETADDRINFOREQWRAP")) }).enable();
    await Promise.all(Array.from({ length: 5 }, () => sendTest(sender, channel)));
    hook.disable();
    expect([received.length, lookups]).toEqual([5, 1]);
  });

  it("to a private address is refused when it is created, and again when it is sent", async () => {
    const { received, url } = await receiver(200);
    const { create } = setUp();
    const { channel } = await create("webhook", url);
    const named = await create("webhook", url.replace("127.0.0.1", "localhost"));
    const strict = setUp({});
    await expect(strict.create("webhook", url)).rejects.toThrow("alerts.allow_private");
    await expect(strict.create("webhook", "https://10.0.0.1/")).rejects.toThrow("a private address");
    await expect(create("webhook", "https://169.254.169.254/")).rejects.toThrow("credentials");
    await expect(create("webhook", "https://user:password@example.com/")).rejects.toThrow("user name");
    for (const one of [channel, named.channel]) {
      const { problem } = await sendTest(strict.sender, one);
      expect(problem).toContain("Its address is private");
    }
    expect(received).toEqual([]);
  });

  it("that cannot be reached says why, without its address", async () => {
    const { sender, create } = setUp();
    const gone = createTcpServer();
    const port = await listen(gone);
    gone.close();
    const { channel } = await create("webhook", `http://127.0.0.1:${port}/secret`);
    expect(await sendTest(sender, channel)).toEqual({
      problem: "It could not be reached (ECONNREFUSED).",
      mayRetry: true,
    });
    expect(JSON.stringify(await store.alerts.channels())).not.toContain("secret");
  });
});

describe("Slack", () => {
  it("gets a text in which names mention nobody", async () => {
    const { received, url } = await receiver(200);
    const { sender, create } = setUp({
      alerts: { allow_private: true },
      http: { public_url: "https://parley.example.com" },
    });
    const { channel, signingKey } = await create("slack", url);
    expect(signingKey).toBeUndefined();
    await openAndSend(sender, [{ channelId: channel.id }]);
    expect(JSON.parse(received[0]!.body)).toEqual({
      text: "*Key “&lt;!channel&gt; &amp; co” fails*\nHalf of them.\n<https://parley.example.com/alerts|Open in Parley>",
    });
    expect(received[0]!.headers).not.toHaveProperty("webhook-signature");
  });
});

describe("e-mail", () => {
  it("is accepted by a real server, for a channel and for a person", async () => {
    const { mails, smtp } = await startMailServer();
    const { sender, create } = setUp({}, { ...smtp, user: "parley", password: "secret of the server" });
    const { channel } = await create("email", "", ["Ops@example.com", "sre@example.com"]);
    expect(channel.target).toBe("ops@example.com, sre@example.com");
    const { deliveries } = await openAndSend(sender, [{ channelId: channel.id }, { recipient: "bob@example.com" }]);
    expect(deliveries.map(({ problem }) => problem)).toEqual(["", ""]);
    expect(mails.map(({ to }) => to.join(" ")).toSorted()).toEqual([
      "bob@example.com",
      "ops@example.com sre@example.com",
    ]);
    expect(mails[0]!.from).toBe("parley@example.com");
    expect(mails[0]!.text).toMatch(/^Subject: =\?UTF-8\?/m);
    expect(mails[0]!.text).toMatch(/Half of them/);
  });

  it("says that the password is wrong, and is not sent again", async () => {
    const { smtp } = await startMailServer();
    const { sender } = setUp({}, { ...smtp, user: "parley", password: "another" });
    const { deliveries } = await openAndSend(sender, [{ recipient: "bob@example.com" }]);
    expect(deliveries).toMatchObject([{ problem: "The server for e-mail: EAUTH (535).", nextAtMs: undefined }]);
  });

  it("is sent again after a temporary refusal", async () => {
    const later = Object.assign(new Error("try later"), { responseCode: 451 });
    const { smtp } = await startMailServer({ onRcptTo: (_, __, done) => done(later) });
    const { sender } = setUp({}, smtp);
    const { deliveries } = await openAndSend(sender, [{ recipient: "bob@example.com" }]);
    expect(deliveries).toMatchObject([{ problem: expect.stringContaining("EENVELOPE"), nextAtMs: expect.any(Number) }]);
  });

  it("is not sent unencrypted where encryption is demanded", async () => {
    const { mails, smtp } = await startMailServer();
    const { sender } = setUp({}, { ...smtp, security: "starttls" });
    const { deliveries } = await openAndSend(sender, [{ recipient: "bob@example.com" }]);
    expect(deliveries[0]!.problem).toMatch(/ETLS|STARTTLS/);
    expect(mails).toEqual([]);
  });

  it("needs a server, and addresses", async () => {
    const { smtp } = await startMailServer();
    await expect(setUp().create("email", "", ["a@example.com"])).rejects.toThrow("smtp");
    await expect(setUp({}, smtp).create("email", "", [])).rejects.toThrow("recipients");
  });
});

describe("a message that fails", () => {
  it("is repeated after growing times, and then never again", () => {
    const outcome = { problem: "no", mayRetry: true };
    const waits = Array.from(
      { length: 9 },
      (_, index) => toEnd({ kind: "opened", attempts: index + 1 }, outcome, 0).nextAtMs,
    );
    expect(waits).toEqual([...RETRY_MS, undefined, undefined]);
    expect(RETRY_MS.reduce((sum, wait) => sum + wait, 0)).toBeLessThan(6 * 60 * 60_000);
    expect(toEnd({ kind: "test", attempts: 1 }, outcome, 0).nextAtMs).toBeUndefined();
  });

  it("about a channel of another encryption key says so", async () => {
    const { url } = await receiver(200);
    const { sender, create } = setUp();
    const { channel } = await create("webhook", url);
    const moved = { ...channel, id: "chan_other" };
    expect((await sendTest(sender, moved)).problem).toBe(
      "The channel cannot be decrypted: its encryption key has changed.",
    );
  });
});
