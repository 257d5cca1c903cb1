import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AlertService } from "../../../gen/parley/console/v1/alert_pb.js";
import type { AlertRecord, ChannelRecord } from "../../alerts/alert.ts";
import {
  changeChannel,
  type ChannelContext,
  createChannel,
  findChannel,
  removeChannel,
} from "../../alerts/channels.ts";
import type { Outcome } from "../../alerts/sender.ts";
import {
  checkThresholds,
  DEFAULT_THRESHOLDS,
  thresholdField,
  type Thresholds,
  type ThresholdsInForce,
} from "../../alerts/thresholds.ts";
import type { AuditFields } from "../../access/audit-entry.ts";
import { differenceOf, toIso } from "../../access/audit-fields.ts";
import { permitsEverywhere } from "../../access/permissions.ts";
import { requireIn } from "../../access/sessions.ts";
import { invalidField } from "../../core/failure.ts";
import {
  fromFilterMessage,
  fromKindMessage,
  fromThresholdsMessage,
  toAlertMessage,
  toChannelMessage,
  toThresholdsMessage,
} from "./alert-messages.ts";
import { accountsInView, actorOf, signedInOf } from "./call.ts";
import { pageSize, readMoment, writeMoment } from "./list-page.ts";

/** Ports of the alert service. */
export interface AlertServicePorts extends ChannelContext {
  readonly test: (channel: ChannelRecord) => Promise<Outcome>;
  readonly thresholds: () => Promise<ThresholdsInForce>;
}

const HOUR_MS = 3_600_000;
const MAX_MUTE_HOURS = 720;
const ID = /^[\w-]{1,64}$/;

/** Alerts, channels and thresholds. */
export function createAlertService(ports: AlertServicePorts): ServiceImpl<typeof AlertService> {
  const { store, clock } = ports;
  const toMessage = async (alerts: readonly AlertRecord[], context: Pick<HandlerContext, "values">) => {
    const isManager = permitsEverywhere(signedInOf(context), "alerts.manage");
    const deliveries = isManager ? await store.deliveries(alerts.map(({ id }) => id)) : [];
    return alerts.map((alert) => toAlertMessage(alert, deliveries, clock.now()));
  };
  const changed = async (...asked: Asked) => {
    const [alert] = await toMessage([await findAlert(ports, ...asked)], asked[1]);
    return { alert: alert! };
  };
  return {
    async list({ resolved, limit, pageToken }, context) {
      const size = pageSize(limit);
      const accountIds = accountsInView(signedInOf(context), "alerts.read");
      const before = readMoment(pageToken, "openedAtMs");
      const alerts = await store.list({ accountIds, isOpen: !resolved, limit: size, before });
      const last = alerts.at(-1);
      return {
        alerts: await toMessage(alerts, context),
        nextPageToken: last === undefined || alerts.length < size ? "" : writeMoment(last.openedAtMs, last.id),
      };
    },

    async getCount(_, context) {
      const accountIds = accountsInView(signedInOf(context), "alerts.read");
      return { active: await store.countActive({ accountIds, nowMs: clock.now() }) };
    },

    async acknowledge({ id }, context) {
      const { subject, accountId } = await findAlert(ports, id, context, "alerts.write");
      if (await store.acknowledge(id, { accountId: signedInOf(context).account.id, atMs: clock.now() }))
        await ports.log.record({
          action: "alert_acknowledged",
          ...actorOf(context),
          accountId,
          object: { kind: "alert", id },
          details: { subject },
        });
      return changed(id, context, "alerts.write");
    },

    async mute({ id, hours }, context) {
      const { subject, accountId, mutedUntilMs } = await findAlert(ports, id, context, "alerts.manage");
      if (hours < 0 || hours > MAX_MUTE_HOURS) throw invalidField("hours", `must be 0 to ${MAX_MUTE_HOURS}`);
      const untilMs = hours === 0 ? undefined : clock.now() + hours * HOUR_MS;
      await store.mute(id, { accountId: signedInOf(context).account.id, untilMs });
      await ports.log.record({
        action: "alert_muted",
        ...actorOf(context),
        accountId,
        object: { kind: "alert", id },
        before: { muted_until: toIso(mutedUntilMs) },
        after: { muted_until: toIso(untilMs) },
        details: { subject },
      });
      return changed(id, context, "alerts.manage");
    },

    async listChannels() {
      return { channels: (await store.channels()).map(toChannelMessage), hasMail: ports.hasMail() };
    },

    async createChannel({ kind, name, url, recipients, ...filter }, context) {
      const receiver = { kind: fromKindMessage(kind), name, url, recipients };
      const made = { ...receiver, ...fromFilterMessage(filter), actor: actorOf(context) };
      const { channel, signingKey = "" } = await createChannel(ports, made);
      return { channel: toChannelMessage(channel), signingKey };
    },

    async updateChannel({ id, name, ...filter }, context) {
      const changes = { id, name, ...fromFilterMessage(filter), actor: actorOf(context) };
      return { channel: toChannelMessage(await changeChannel(ports, changes)) };
    },

    async removeChannel({ id }, context) {
      await removeChannel(ports, id, actorOf(context));
      return {};
    },

    async testChannel({ id }, context) {
      const channel = await findChannel(store, id);
      const object = { kind: "alert_channel", id } as const;
      await ports.log.record({ action: "alert_channel_tested", ...actorOf(context), object });
      const { problem } = await ports.test(channel);
      return { problem };
    },

    async getThresholds() {
      const { values, ofFile } = await ports.thresholds();
      return {
        thresholds: toThresholdsMessage(values),
        ofFile: [...ofFile].map(thresholdField),
        defaults: toThresholdsMessage(DEFAULT_THRESHOLDS),
      };
    },

    async setThresholds({ thresholds }, context) {
      const asked = fromThresholdsMessage(thresholds);
      checkThresholds(asked);
      const before = await ports.thresholds();
      const changes = changesOf(before, asked);
      await store.setThresholds(changes);
      const difference = differenceOf(fieldsOf(before.values), fieldsOf(asked));
      if (Object.keys(changes).length > 0)
        await ports.log.record({ action: "alert_thresholds_changed", ...actorOf(context), ...difference });
      return { thresholds: toThresholdsMessage((await ports.thresholds()).values) };
    },
  };
}

/** Thresholds in the audit log, by their names in the configuration file. */
function fieldsOf(thresholds: Thresholds): AuditFields {
  return Object.fromEntries(
    Object.entries(thresholds).map(([name, value]) => [thresholdField(name as keyof Thresholds), value]),
  );
}

/**
 * The thresholds to store; undefined for values that are the default again. Throws `invalid_request` for thresholds that the
 * file sets.
 */
function changesOf(
  { values, ofFile }: ThresholdsInForce,
  asked: Thresholds,
): { readonly [K in keyof Thresholds]?: Thresholds[K] | undefined } {
  const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
  const names = (Object.keys(asked) as (keyof Thresholds)[]).filter((name) => !isSame(asked[name], values[name]));
  for (const name of names)
    if (ofFile.has(name))
      throw invalidField(
        `thresholds.${thresholdField(name)}`,
        `is set in the configuration file (alerts.${thresholdField(name)}); change it there`,
      );
  return Object.fromEntries(
    names.map((name) => [name, isSame(asked[name], DEFAULT_THRESHOLDS[name]) ? undefined : asked[name]]),
  );
}

/** An alert that the caller may see. Throws `invalid_request` for others, and `permission_denied` without the permission in its account. */
async function findAlert(
  { store }: Pick<AlertServicePorts, "store">,
  ...[id, context, permission]: Asked
): Promise<AlertRecord> {
  const signedIn = signedInOf(context);
  const visible = accountsInView(signedIn, "alerts.read");
  const found = ID.test(id) ? await store.find(id) : undefined;
  if (found === undefined || visible?.includes(found.accountId ?? "") === false)
    throw invalidField("id", "there is no such alert");
  // One of the installation needs the permission everywhere.
  requireIn(signedIn, permission, found.accountId ?? "");
  return found;
}

/** The alert's ID, and what the caller needs to change it. */
type Asked = readonly [
  id: string,
  context: Pick<HandlerContext, "values">,
  permission: "alerts.write" | "alerts.manage",
];
