import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AlertRule, AlertSeverity, ChannelKind } from "../../../gen/parley/console/v1/alert_pb.js";
import { AuditExportFormat } from "../../../gen/parley/console/v1/audit_pb.js";
import { parseConfig } from "../../../src/config/parse.ts";
import { credentialCipherOf } from "../../../src/gateway/account-credentials.ts";
import { alertPortsOf } from "../../../src/gateway/alerts.ts";
import { findingOf } from "../../store/contracts/alert-store.ts";
import { errorOf, fieldOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import { openTestStore } from "../../support/test-store.ts";

let site: ConsoleUnderTest;
beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
});
afterEach(() => site.close());

type ExportRequest = Parameters<Browser["audit"]["export"]>[0];

async function exported(browser: Browser, request: ExportRequest): Promise<string> {
  let text = "";
  for await (const piece of browser.audit.export(request)) text += piece.text;
  return text;
}

describe("an entry of the audit log", () => {
  it("has the actor, its network and program, and the changed fields before and after", async () => {
    const ada = await site.signedUp("ada");
    const { key } = await ada.key.create({ name: "old" });
    await ada.key.update({ id: key!.id, name: "new", limits: { requestsPerMinute: 7n } });
    const { entries } = await ada.audit.list({ filter: { action: "key_updated" } });
    expect(entries).toMatchObject([
      {
        action: "key_updated",
        actor: { kind: "account", id: ada.id },
        object: { kind: "key", id: key!.id },
        accountId: ada.id,
        network: "127.0.0.0/24",
        failed: false,
        beforeJson: '{"name":"old","requests_per_minute":null,"limited_by_administrator":false}',
        afterJson: '{"name":"new","requests_per_minute":7,"limited_by_administrator":true}',
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  it("has changes of channels, thresholds and muted alerts, without addresses", async () => {
    const { store, dataDir } = await openTestStore();
    const credentials = credentialCipherOf({ accountCredentials: {}, dataDir, providers: [] });
    const config = parseConfig({ file: undefined, text: "", env: {} });
    const alerts = (access: ConsoleUnderTest["access"]) =>
      alertPortsOf({ store, credentials, inForce: () => config }, access);
    const withAlerts = await startConsole({ alerts });
    onTestFinished(() => withAlerts.close());
    const ada = await withAlerts.signedUp("ada");
    const open = [{ finding: findingOf(), receivers: [] }];
    await store.alerts.apply({ nowMs: withAlerts.access.clock.now(), seen: [], open, resolve: [] });
    const [alert] = await store.alerts.open();
    const url = "https://example.com/secret-path";
    const { channel } = await ada.alert.createChannel({ kind: ChannelKind.WEBHOOK, name: "On call", url });
    const critical = { id: channel!.id, name: "On call", leastSeverity: AlertSeverity.CRITICAL };
    const { channel: changed } = await ada.alert.updateChannel({ ...critical, rules: [AlertRule.LATENCY] });
    expect(changed).toMatchObject({ rules: [AlertRule.LATENCY], leastSeverity: AlertSeverity.CRITICAL });
    expect((await ada.alert.listChannels({})).channels).toEqual([changed]);
    const without = await errorOf(ada.alert.updateChannel({ ...critical, rules: [AlertRule.UNSPECIFIED] }));
    expect(without.message).toContain("must have at least one rule");
    await ada.alert.removeChannel({ id: channel!.id });
    const { thresholds } = await ada.alert.getThresholds({});
    await ada.alert.setThresholds({ thresholds: { ...thresholds!, errorPercent: 7 } });
    await ada.alert.mute({ id: alert!.id, hours: 1 });
    await ada.alert.mute({ id: alert!.id, hours: 0 });
    for (let time = 0; time < 2; time += 1) await ada.alert.acknowledge({ id: alert!.id });
    const object = { kind: "alert_channel", id: channel!.id };
    const fields = (rules: unknown, severity: string) =>
      JSON.stringify({ kind: "webhook", name: "On call", rules, least_severity: severity });
    const mutedUntil = new Date(withAlerts.access.clock.now() + 3_600_000).toISOString();
    expect((await ada.audit.list({})).entries.slice(0, 7)).toMatchObject([
      { action: "alert_acknowledged", object: { kind: "alert", id: alert!.id }, actor: { id: ada.id } },
      {
        action: "alert_muted",
        beforeJson: JSON.stringify({ muted_until: mutedUntil }),
        afterJson: '{"muted_until":null}',
      },
      {
        action: "alert_muted",
        object: { kind: "alert", id: alert!.id },
        afterJson: JSON.stringify({ muted_until: mutedUntil }),
      },
      {
        action: "alert_thresholds_changed",
        beforeJson: '{"error_percent":20}',
        afterJson: '{"error_percent":7}',
      },
      { action: "alert_channel_removed", object, beforeJson: fields(["latency"], "critical") },
      {
        action: "alert_channel_updated",
        object,
        beforeJson: '{"rules":"all","least_severity":"warning"}',
        afterJson: '{"rules":["latency"],"least_severity":"critical"}',
      },
      { action: "alert_channel_created", object, afterJson: fields("all", "warning") },
    ]);
    expect(JSON.stringify(withAlerts.access.stores.entries())).not.toContain("example.com");
  });
});

/** Holds reads of the log until `release`; `read` has the accounts in the order of their reads. */
function holdLists(): { readonly read: (string | undefined)[]; readonly release: () => void } {
  const { audit } = site.access;
  const list = audit.list.bind(audit);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const read: (string | undefined)[] = [];
  audit.list = async (query) => {
    read.push(query.accountId);
    await promise;
    return list(query);
  };
  return { read, release };
}

describe("reads of the audit log", () => {
  it("have the turns of reports, so that one account does not keep reports from others", async () => {
    const [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
    const held = holdLists();
    const reads = [bob.audit.list({}), bob.audit.list({}), exported(bob, {}), ada.audit.list({})];
    await expect.poll(() => site.calls.active).toBe(4);
    await expect.poll(() => held.read).toHaveLength(1);
    held.release();
    await Promise.all(reads);
    expect(held.read).toHaveLength(4);
  });
});

describe("an export of the audit log", () => {
  it("has all entries for an administrator, as JSON lines or CSV", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    await bob.key.create({ name: "ci" });
    const lines = (await exported(ada, {})).trimEnd().split("\n");
    const actions = lines.map((line) => (JSON.parse(line) as { action: string }).action);
    expect(actions).toEqual(["key_created", "signed_up", "signed_up"]);
    const csv = await exported(ada, { filter: { action: "key_created" }, format: AuditExportFormat.CSV });
    expect(csv.split("\r\n")).toEqual([
      expect.stringMatching(/^sequence,time,action,/),
      expect.stringMatching(/^3,.*,key_created,account,acct_\w+,127\.0\.0\.0\/24,/),
      "",
    ]);
  });

  it("has what concerns a member's own account, without the network of others", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    await ada.key.create({ name: "ada's" });
    await ada.account.update({ id: bob.id, limits: { requestsPerMinute: 5n } });
    const lines = (await exported(bob, {})).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { action: "limits_changed", actor: { id: ada.id }, network: null, client: null },
      { action: "signed_up", network: "127.0.0.0/24" },
    ]);
    expect((await errorOf(exported(bob, { filter: { accountId: ada.id } }))).code).toBe(Code.PermissionDenied);
  });

  it("is in pieces, of which an account has those of two exports at once", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    for (let index = 0; index < 600; index += 1)
      await site.access.log.record({ action: "key_created", accountId: ada.id, after: { name: "x".repeat(1_000) } });
    const sizes: number[] = [];
    for await (const { text } of ada.audit.export({})) sizes.push(text.split("\n").length - 1);
    expect(sizes).toEqual([100, 100, 100, 100, 100, 100, 2]);
    const held = holdLists();
    const open = Array.from({ length: 3 }, () => exported(ada, {}));
    const ended = Promise.allSettled(open);
    expect((await Promise.race(open.map((one) => errorOf(one)))).rawMessage).toBe(
      "This account has reached the maximum of 2 exports of the audit log at once. Wait for one to complete.",
    );
    held.release();
    expect((await exported(bob, {})).trimEnd().split("\n")).toHaveLength(1);
    const texts = (await ended).flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    for (const text of [...texts, await exported(ada, {})]) expect(text.trimEnd().split("\n")).toHaveLength(602);
    expect(texts).toHaveLength(2);
  });

  it("needs a session", async () => {
    expect((await errorOf(exported(site.browser(), {}))).code).toBe(Code.Unauthenticated);
  });
});

describe("a filter of the audit log that cannot be", () => {
  it.each([
    [{ filter: { actorKind: "somebody" } }, "filter.actor_kind"],
    [{ filter: { objectKind: "thing" } }, "filter.object_kind"],
    [{ filter: { action: "x".repeat(257) } }, "filter.action"],
    [{ filter: { objectId: "a\0b" } }, "filter.object_id"],
    [{ filter: { accountId: "not an ID" } }, "account_id"],
    [{ filter: { since: { seconds: -5n } } }, "filter.since"],
    [{ pageToken: Buffer.from("1 key_1").toString("base64url") }, "page_token"],
  ])("is refused: %o", async (request, field) => {
    const ada = await site.signedUp("ada");
    expect(await fieldOf(ada.audit.list(request))).toBe(field);
  });

  it("is a format that there is not", async () => {
    const ada = await site.signedUp("ada");
    expect(await fieldOf(exported(ada, { format: 9 as AuditExportFormat }))).toBe("format");
  });
});
