import type { AlertRecord, ChannelRecord } from "../alerts/alert.ts";
import { sendTest } from "../alerts/sender.ts";
import { credentialCipherOf } from "../gateway/account-credentials.ts";
import { senderOf } from "../gateway/alerts.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";
import { withStore } from "./with-store.ts";

const DEFAULT_ROWS = 100;
const MAX_ROWS = 1_000;

export const alertsList: Command = {
  name: "alerts list",
  summary: "list open alerts, or those that are resolved",
  positionals: [],
  flags: {
    resolved: { help: "resolved alerts instead; they are kept for 90 days" },
    limit: { value: "N", help: `alerts, latest first, at most ${MAX_ROWS} (default: ${DEFAULT_ROWS})` },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async ({ alerts }) => {
      const { flags, switches } = invocation;
      const limit = Number(flags["limit"] ?? DEFAULT_ROWS);
      if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ROWS)
        throw new UsageError(`--limit is a number of alerts, 1 to ${MAX_ROWS}`);
      const isOpen = !switches.has("resolved");
      const found = await alerts.list({ accountIds: undefined, isOpen, limit, before: undefined });
      if (switches.has("json")) writeJson(context.stdout, found.map(toJson));
      else {
        const rows = found.map((alert) => [formatTime(alert.openedAtMs), alert.severity, stateOf(alert), alert.title]);
        context.stdout.write(`${formatTable([["OPENED", "SEVERITY", "STATE", "ALERT"], ...rows])}\n`);
      }
    }),
};

export const alertsChannels: Command = {
  name: "alerts channels",
  summary: "list where alerts are sent to",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async ({ alerts }) => {
      const channels = await alerts.channels();
      if (invocation.switches.has("json")) writeJson(context.stdout, channels.map(toChannelJson));
      else {
        const rows = channels.map((channel) => [
          channel.id,
          channel.kind,
          channel.name,
          channel.target,
          alertsOf(channel),
        ]);
        context.stdout.write(`${formatTable([["ID", "KIND", "NAME", "TARGET", "ALERTS"], ...rows])}\n`);
      }
    }),
};

export const alertsTest: Command = {
  name: "alerts test",
  summary: "send a test to a channel",
  positionals: ["ID|NAME"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async (store, config) => {
      const [asked = ""] = invocation.positionals;
      const found = (await store.alerts.channels()).filter(({ id, name }) => id === asked || name === asked);
      const [channel] = found;
      if (channel === undefined)
        throw new UsageError(`there is no channel ${asked}; parley alerts channels lists them`);
      if (found.length > 1) throw new UsageError(`${found.length} channels have the name ${asked}; give the ID of one`);
      const sender = senderOf({
        store,
        credentials: credentialCipherOf({ ...config, providers: [] }),
        inForce: () => config,
      });
      const { problem } = await sendTest(sender, channel);
      if (problem !== "") throw new Error(`${channel.name}: ${problem}`);
      if (invocation.switches.has("json")) writeJson(context.stdout, { channel: channel.id, sent: true });
      else context.stdout.write(`The test was sent to ${channel.name} (${channel.target}).\n`);
    }),
};

function formatTime(atMs: number): string {
  return new Date(atMs).toISOString();
}

function stateOf({ resolvedAtMs, acknowledgedAtMs, mutedUntilMs }: AlertRecord): string {
  if (resolvedAtMs !== undefined) return `resolved ${formatTime(resolvedAtMs)}`;
  if ((mutedUntilMs ?? 0) > Date.now()) return `muted until ${formatTime(mutedUntilMs!)}`;
  return acknowledgedAtMs === undefined ? "open" : "acknowledged";
}

function toJson(alert: AlertRecord): object {
  const time = (atMs: number | undefined): string | null => (atMs === undefined ? null : formatTime(atMs));
  return {
    id: alert.id,
    rule: alert.rule,
    severity: alert.severity,
    subject: alert.subject,
    account: alert.accountId ?? null,
    title: alert.title,
    detail: alert.detail,
    opened: formatTime(alert.openedAtMs),
    resolved: time(alert.resolvedAtMs),
    acknowledged: time(alert.acknowledgedAtMs),
    acknowledged_by: alert.acknowledgedBy ?? null,
    muted_until: time(alert.mutedUntilMs),
    muted_by: alert.mutedBy ?? null,
  };
}

/** Which alerts a channel gets. */
function alertsOf({ rules, leastSeverity }: ChannelRecord): string {
  const names = rules.length === 0 ? "all" : rules.join(",");
  return leastSeverity === "warning" ? names : `${names} (${leastSeverity})`;
}

function toChannelJson({ id, kind, name, target, rules, leastSeverity, ...made }: ChannelRecord): object {
  const filter = { rules: rules.length === 0 ? "all" : rules, least_severity: leastSeverity };
  return {
    id,
    kind,
    name,
    target,
    ...filter,
    created: formatTime(made.createdAtMs),
    created_by: made.createdBy ?? null,
  };
}
