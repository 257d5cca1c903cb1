import { type AlertRecord, type ChannelRecord, RULES, SEVERITIES } from "../alerts/alert.ts";
import { createChannel, removeChannel } from "../alerts/channels.ts";
import { sendTest } from "../alerts/sender.ts";
import { credentialCipherOf } from "../gateway/account-credentials.ts";
import { alertPortsOf, senderOf } from "../gateway/alerts.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import type { Store } from "../store/store.ts";
import { ACTOR } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, readSecret, UsageError, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";
import { commandLog, type DatabaseContext, withStore } from "./with-store.ts";

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
  summary: "list the channels to which alerts are sent",
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

const KINDS = ["webhook", "slack", "email"] as const;

export const alertsAdd: Command = {
  name: "alerts add",
  summary: "add a channel, to which alerts are sent, and print the key of a webhook's signatures once",
  positionals: ["NAME"],
  flags: {
    kind: { value: KINDS.join("|"), help: "kind of the channel (default: webhook)" },
    "url-stdin": { help: "read the address of a webhook or of Slack from standard input" },
    recipients: { value: "LIST", help: "addresses of e-mail, with commas" },
    rules: { value: "LIST", help: `rules whose alerts are sent, with commas (default: all): ${RULES.join(", ")}` },
    severity: { value: SEVERITIES.join("|"), help: "least severity (default: warning)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store, config) => {
      const { flags, switches } = invocation;
      const kind = oneOf(KINDS, "--kind", flags["kind"] ?? "webhook");
      const isMail = kind === "email";
      if (isMail === switches.has("url-stdin") || isMail !== (flags["recipients"] !== undefined))
        throw new UsageError(isMail ? "--kind email needs --recipients LIST" : `--kind ${kind} needs --url-stdin`);
      const { channel, signingKey } = await createChannel(channelsOf({ store, config }, context), {
        kind,
        name: invocation.positionals[0] ?? "",
        url: isMail ? "" : await readSecret(context, "--url-stdin"),
        recipients: listOf(flags["recipients"]),
        rules: listOf(flags["rules"]).map((rule) => oneOf(RULES, "--rules", rule)),
        leastSeverity: oneOf(SEVERITIES, "--severity", flags["severity"] ?? "warning"),
        actor: ACTOR,
      });
      if (switches.has("json"))
        return writeJson(context.stdout, { ...toChannelJson(channel), signing_key: signingKey ?? null });
      context.stderr.write(`Added ${channel.id} (${channel.name}).\n`);
      if (signingKey === undefined) return;
      context.stderr.write("The key of its signatures is shown only now:\n");
      context.stdout.write(`${signingKey}\n`);
    }),
};

export const alertsRemove: Command = {
  name: "alerts remove",
  summary: "remove a channel; messages that wait for it are not sent",
  positionals: ["ID|NAME"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async (store, config) => {
      const channel = await findChannel(store, invocation.positionals[0] ?? "");
      await removeChannel(channelsOf({ store, config }, context), channel.id, ACTOR);
      if (invocation.switches.has("json")) writeJson(context.stdout, toChannelJson(channel));
      else context.stdout.write(`Removed ${channel.id} (${channel.name}).\n`);
    }),
};

export const alertsTest: Command = {
  name: "alerts test",
  summary: "send a test to a channel",
  positionals: ["ID|NAME"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async (store, config) => {
      const channel = await findChannel(store, invocation.positionals[0] ?? "");
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

/** The context of channels, as for the dashboard's service. */
function channelsOf({ store, config }: { readonly store: Store; readonly config: Config }, context: DatabaseContext) {
  const credentials = credentialCipherOf({ ...config, providers: [] });
  const log = commandLog(store.audit, context);
  return alertPortsOf({ store, credentials, inForce: () => config }, { clock: systemClock, log });
}

/** The channel with this ID or name. Throws UsageError. */
async function findChannel({ alerts }: Pick<Store, "alerts">, asked: string): Promise<ChannelRecord> {
  const found = (await alerts.channels()).filter(({ id, name }) => id === asked || name === asked);
  const [channel] = found;
  if (channel === undefined) throw new UsageError(`there is no channel ${asked}; parley alerts channels lists them`);
  if (found.length > 1) throw new UsageError(`${found.length} channels have the name ${asked}; give the ID of one`);
  return channel;
}

function listOf(text = ""): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

function oneOf<T extends string>(known: readonly T[], flag: string, word: string): T {
  const found = known.find((each) => each === word);
  if (found === undefined) throw new UsageError(`${flag} is one of ${known.join(", ")}`);
  return found;
}

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

/** Describes the alerts that a channel gets. */
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
