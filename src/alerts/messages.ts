import type { AlertRecord, MessageKind } from "./alert.ts";

/** Content of a message, without secrets, prompts and answers. */
export interface Message {
  /** ID of the delivery: the same for all sendings of a message. */
  readonly id: string;
  readonly kind: MessageKind;
  /** Undefined for a test. */
  readonly alert: AlertRecord | undefined;
  readonly atMs: number;
  /** Address of the page of alerts; undefined where none is configured. */
  readonly link: string | undefined;
}

/** One line. */
function titleOf({ kind, alert }: Message): string {
  if (alert === undefined) return "Test of alerts";
  return kind === "resolved" ? `Resolved: ${alert.title}` : alert.title;
}

/** Body of a webhook. */
export function toWebhookBody(message: Message): string {
  const { id, kind, alert, atMs, link } = message;
  return JSON.stringify({
    type: kind === "test" ? "test" : `alert.${kind}`,
    id,
    timestamp: new Date(atMs).toISOString(),
    data: {
      title: titleOf(message),
      ...(link !== undefined && { link }),
      ...(alert !== undefined && {
        alert: {
          id: alert.id,
          rule: alert.rule,
          severity: alert.severity,
          subject: alert.subject,
          account_id: alert.accountId ?? null,
          title: alert.title,
          detail: alert.detail,
          opened: new Date(alert.openedAtMs).toISOString(),
          resolved: alert.resolvedAtMs === undefined ? null : new Date(alert.resolvedAtMs).toISOString(),
        },
      }),
    },
  });
}

/** Body of an incoming webhook of Slack. Names cannot mention people or channels. */
export function toSlackBody(message: Message): string {
  const escape = (text: string): string =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const { alert, link } = message;
  const lines = [
    `*${escape(titleOf(message))}*`,
    escape(detailOf(alert)),
    ...(link === undefined ? [] : [`<${link}|Open in Parley>`]),
  ];
  return JSON.stringify({ text: lines.join("\n") });
}

/** Subject and text of an e-mail. */
export function toMail(message: Message): { readonly subject: string; readonly text: string } {
  const { alert, link, kind } = message;
  const opened = alert === undefined ? [] : [`Since ${new Date(alert.openedAtMs).toISOString()}`];
  const parts = [titleOf(message), detailOf(alert), ...opened, ...(link === undefined ? [] : [link])];
  const severity = alert?.severity === "critical" && kind === "opened" ? "Critical: " : "";
  return { subject: `[Parley] ${severity}${titleOf(message)}`, text: `${parts.join("\n\n")}\n` };
}

function detailOf(alert: AlertRecord | undefined): string {
  return alert?.detail ?? "Alerts of this Parley installation arrive here.";
}
