import type { AccessContext } from "../access/context.ts";
import type { AlertStore } from "../alerts/alert-store.ts";
import { sendStreams } from "../alerts/audit-streams.ts";
import type { ChannelCipher, ChannelContext } from "../alerts/channels.ts";
import { Evaluation } from "../alerts/evaluation.ts";
import { findReceivers } from "../alerts/receivers.ts";
import type { UpstreamState } from "../alerts/rules.ts";
import { sendDue, sendTest, type SenderPorts } from "../alerts/sender.ts";
import { type ThresholdsInForce, thresholdsInForce } from "../alerts/thresholds.ts";
import { isMetadata, privateReason } from "../config/addresses.ts";
import type { Config } from "../config/config.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import { isRoute } from "../core/route.ts";
import type { AlertServicePorts } from "../inbound/dashboard/alert-service.ts";
import type { AuditStreamPorts } from "../inbound/dashboard/audit-service.ts";
import type { OwnedRouter } from "../router/router.ts";
import type { HealthRecorder } from "../router/upstream-health.ts";
import type { Store } from "../store/store.ts";
import { type CredentialCipher, sealProblem } from "./account-credentials.ts";
import type { Job } from "./jobs.ts";

const MINUTE_MS = 60_000;
/** Longest time until a message that failed is sent again, beside its waiting time. */
const SEND_EVERY_MS = 10_000;
/** Longest time until a new entry of the audit log is sent to its receivers. */
const STREAM_EVERY_MS = 5_000;
const ALERTS_KEPT_MS = 90 * 24 * 60 * MINUTE_MS;

/** Parts of the gateway that alerts need. */
export interface AlertParts {
  readonly store: Pick<Store, "alerts" | "alertFacts" | "health" | "audit" | "auditStreams" | "nowMs">;
  readonly router: Pick<OwnedRouter, "list" | "openingOf">;
  readonly health: Pick<HealthRecorder, "of">;
  readonly credentials: Pick<CredentialCipher, "sealChannel" | "openChannel">;
  /** The configuration in force, which a reload changes. */
  readonly inForce: () => Config;
}

/**
 * Evaluates rules once a minute, sends messages about the results, and sends the audit log to its receivers. All replicas
 * may run these jobs.
 */
export function alertJobs(parts: AlertParts): Job[] {
  const { store, inForce } = parts;
  const evaluation = new Evaluation({
    store: store.alerts,
    facts: store.alertFacts,
    thresholds: async () => (await thresholdsOf(store.alerts, inForce())).values,
    defaultBudgetMicroUsd: () => inForce().limits.monthlyBudgetMicroUsd,
    upstreams: () => upstreamsOf(parts),
    receivers: (findings) => findReceivers(store.alerts, findings, inForce().smtp !== undefined),
  });
  const sender = senderOf(parts);
  // Sends nothing while the database is unavailable: other jobs already log that once a minute.
  const sends: Job["run"] = async (signal) => (store.health().up ? sendDue(sender, signal) : 0);
  const streamPorts = {
    streams: store.auditStreams,
    audit: store.audit,
    cipher: sender.cipher,
    allowsPrivate: sender.allowsPrivate,
    nowMs: () => store.nowMs(),
  };
  const streams: Job["run"] = async (signal) => (store.health().up ? sendStreams(streamPorts, signal) : 0);
  return [
    { name: "open and resolve alerts", everyMs: MINUTE_MS, run: () => evaluation.run() },
    { name: "send messages about alerts", everyMs: SEND_EVERY_MS, run: sends },
    { name: "send the audit log to its receivers", everyMs: STREAM_EVERY_MS, run: streams },
    {
      name: "remove resolved alerts past their retention",
      everyMs: 10 * MINUTE_MS,
      run: async () => store.alerts.prune((await store.alerts.nowMs()) - ALERTS_KEPT_MS),
    },
  ];
}

/** The alerts of the dashboard's service. */
export function alertPortsOf(
  parts: Pick<AlertParts, "credentials" | "inForce"> & { readonly store: Pick<Store, "alerts"> },
  { clock, log }: Pick<AccessContext, "clock" | "log">,
): AlertServicePorts {
  const sender = senderOf(parts);
  return {
    ...channelContextOf(parts, { clock, log }),
    test: (channel) => sendTest(sender, channel),
    thresholds: () => thresholdsOf(parts.store.alerts, parts.inForce()),
  };
}

/** The receivers of the audit log, of the dashboard's service. */
export function auditStreamPortsOf(
  {
    store,
    ...parts
  }: Pick<AlertParts, "credentials" | "inForce"> & {
    readonly store: Pick<Store, "alerts" | "audit" | "auditStreams">;
  },
  context: Pick<AccessContext, "clock" | "log">,
): AuditStreamPorts {
  const channels = channelContextOf({ store, ...parts }, context);
  return { ...channels, streams: store.auditStreams, ends: () => store.audit.ends() };
}

function channelContextOf(
  { store, credentials, inForce }: Parameters<typeof alertPortsOf>[0],
  { clock, log }: Pick<AccessContext, "clock" | "log">,
): ChannelContext {
  return {
    store: store.alerts,
    cipher: cipherOf(credentials),
    clock,
    log,
    addressProblem: (url) => addressProblem(url, inForce().alerts.allowPrivate),
    hasMail: () => inForce().smtp !== undefined,
    sealProblem: () => sealProblem("channels", inForce()),
  };
}

function addressProblem(url: URL, allowsPrivate: boolean): string | undefined {
  if (isMetadata(url.href)) return "is an address under which a cloud tells a machine its credentials";
  const reason = allowsPrivate ? undefined : privateReason(url);
  return reason === undefined ? undefined : `has ${reason}: that needs alerts.allow_private in the configuration file`;
}

/** Dependencies of the sender of messages. */
export function senderOf({ store, credentials, inForce }: Parameters<typeof alertPortsOf>[0]): SenderPorts {
  return {
    store: store.alerts,
    cipher: cipherOf(credentials),
    smtp: () => inForce().smtp,
    allowsPrivate: () => inForce().alerts.allowPrivate,
    link() {
      const { publicUrl } = inForce().http;
      return publicUrl === undefined ? undefined : `${publicUrl}/alerts`;
    },
  };
}

function cipherOf(credentials: AlertParts["credentials"]): ChannelCipher {
  return {
    seal: (secrets, id) => credentials.sealChannel(JSON.stringify(secrets), id),
    open(sealed, id) {
      const text = credentials.openChannel(sealed, id);
      return text === undefined ? undefined : (JSON.parse(text) as ReturnType<ChannelCipher["open"]>);
    },
  };
}

async function thresholdsOf(
  store: Pick<AlertStore, "thresholds">,
  { alerts }: Pick<Config, "alerts">,
): Promise<ThresholdsInForce> {
  return thresholdsInForce(alerts.thresholds, await store.thresholds());
}

/** The provider models as this process sees them. */
function upstreamsOf({ router, health }: Pick<AlertParts, "router" | "health">): UpstreamState[] {
  const models = router.list().filter((model): model is Model => !isRoute(model));
  const upstreams = new Map(models.map((model) => [upstreamKey(model), model]));
  return [...upstreams.values()].map((model) => ({
    provider: model.providerName,
    isOpen: router.openingOf(model) !== undefined,
    isUsed: health.of(model).attempts > 0,
  }));
}
