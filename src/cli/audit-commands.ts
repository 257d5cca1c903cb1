import { ACTOR_KINDS, type AuditEntry, formatLink, OBJECT_KINDS, parseLink } from "../access/audit-entry.ts";
import { AUDIT_ACTIONS } from "../access/audit-log.ts";
import { exportAudit, type ExportFormat, toAuditJson } from "../access/audit-export.ts";
import type { AuditFilter } from "../access/audit-store.ts";
import { verifyChain } from "../access/audit-verification.ts";
import { systemClock } from "../core/clock.ts";
import { nearest } from "../encoding/nearest.ts";
import type { Store } from "../store/store.ts";
import { type Command, CONFIG_FLAG, EXIT, type Invocation, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { readMoment } from "./moments.ts";
import { formatTable } from "./output.ts";
import { findAccountByIdOrEmail, withStore } from "./with-store.ts";

const FILTER_FLAGS = {
  since: { value: "WHEN", help: "a date in UTC such as 2026-11-01, or an age such as 24h (default: all that is kept)" },
  until: { value: "WHEN", help: "end, in the same form, exclusive (default: now)" },
  action: { value: "NAME", help: "only this action, such as key_revoked or sign_in_failed" },
  account: { value: "A", help: "only what concerns this account, by its ID or e-mail address" },
  actor: {
    value: "WHO",
    help: `only by this account (ID or e-mail address), or by this kind of actor: ${ACTOR_KINDS.join(", ")}`,
  },
  object: { value: "ID", help: `only about this object, or about this kind: ${OBJECT_KINDS.join(", ")}` },
  failed: { help: "only what has failed" },
} as const;

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

export const auditList: Command = {
  name: "audit list",
  summary: "list the latest entries of the audit log: changes and sign-ins, with who made them",
  positionals: [],
  flags: {
    ...FILTER_FLAGS,
    limit: {
      value: "N",
      help: `entries, at most ${MAX_LIMIT} (default: ${DEFAULT_LIMIT}); parley audit export has all`,
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store) => {
      const limit = readLimit(invocation.flags["limit"]);
      const entries = await store.audit.list({ ...(await readFilter(invocation, store)), limit });
      if (invocation.switches.has("json")) return writeJson(context.stdout, entries.map(toAuditJson));
      context.stdout.write(`${formatTable([HEADING, ...entries.map(toRow)])}\n`);
      if (entries.length === limit) context.stderr.write(`Only the latest ${limit} entries are listed (--limit).\n`);
    }),
};

export const auditExport: Command = {
  name: "audit export",
  summary: "print all entries of the audit log, newest first, as JSON lines or CSV",
  positionals: [],
  flags: {
    ...FILTER_FLAGS,
    format: { value: "jsonl|csv", help: "JSON lines, or CSV with a heading (default: jsonl)" },
    ...CONFIG_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store) => {
      const format = readFormat(invocation.flags["format"] ?? "jsonl");
      const filter = await readFilter(invocation, store);
      for await (const text of exportAudit(store.audit, filter, { format })) context.stdout.write(text);
    }),
};

export const auditVerify: Command = {
  name: "audit verify",
  summary: "verify that no entry of the audit log was changed, removed, inserted or reordered",
  positionals: [],
  flags: {
    head: {
      value: "SEQUENCE:HASH",
      help: "a head that an earlier run printed and that was kept elsewhere; without it a cut end can go unnoticed",
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  async run(invocation, context) {
    const text = invocation.flags["head"];
    const kept = text === undefined ? undefined : parseLink(text);
    if (text !== undefined && kept === undefined)
      throw new UsageError(
        "--head is what parley audit verify prints as the head: a number, a colon and 64 hexadecimal digits",
      );
    let isIntact = false;
    const code = await withStore(invocation, context, async ({ audit }) => {
      const { entries, anchor, head, problem } = await verifyChain(audit, kept, systemClock.now());
      isIntact = problem === undefined;
      if (invocation.switches.has("json"))
        return writeJson(context.stdout, {
          intact: isIntact,
          entries,
          pruned: anchor.sequence,
          anchor: formatLink(anchor),
          head: formatLink(head),
          problem: problem ?? null,
        });
      if (problem !== undefined) return void context.stderr.write(`parley: the audit log is not intact: ${problem}\n`);
      const pruned = anchor.sequence === 0 ? "" : `; ${anchor.sequence} earlier ones are pruned`;
      context.stdout.write(`The audit log is intact: ${entries} ${entries === 1 ? "entry" : "entries"}${pruned}.\n`);
      if (anchor.sequence > 0) context.stdout.write(`Anchor: ${formatLink(anchor)}\n`);
      context.stdout.write(`Head: ${formatLink(head)}\n`);
    });
    return code === EXIT.ok && !isIntact ? EXIT.failed : code;
  },
};

const HEADING = ["SEQUENCE", "TIME", "ACTION", "ACTOR", "OBJECT", "NETWORK", "CHANGE"];
const MAX_CHANGE_CHARS = 120;

function toRow({ sequence, atMs, action, actor, object, network = "", ...entry }: AuditEntry): string[] {
  return [
    String(sequence),
    new Date(atMs).toISOString(),
    action,
    actor.kind === "account" ? (actor.id ?? "") : [actor.kind.replace("_", " "), actor.id].filter(Boolean).join(" "),
    object === undefined ? "" : `${object.kind} ${object.id}`,
    network,
    describeChange(entry),
  ];
}

function describeChange({ before, after, details }: Pick<AuditEntry, "before" | "after" | "details">): string {
  const change = before === undefined ? after : `${before} -> ${after ?? "{}"}`;
  const text = [change, details].filter((part) => part !== undefined).join(" ");
  return text.length <= MAX_CHANGE_CHARS ? text : `${text.slice(0, MAX_CHANGE_CHARS).toWellFormed()}…`;
}

async function readFilter({ flags, switches }: Invocation, { accounts }: Store): Promise<AuditFilter> {
  const nowMs = systemClock.now();
  const momentOf = (flag: "since" | "until"): number | undefined =>
    flags[flag] === undefined ? undefined : readMoment(flags[flag], `--${flag}`, nowMs);
  const { account, actor, object } = flags;
  const actorKind = ACTOR_KINDS.find((kind) => kind === actor);
  const objectKind = OBJECT_KINDS.find((kind) => kind === object);
  return {
    sinceMs: momentOf("since"),
    untilMs: momentOf("until"),
    action: flags["action"] && readAction(flags["action"]),
    accountId: account && (await findAccountByIdOrEmail(accounts, account)).id,
    actorKind,
    actorId: actorKind === undefined && actor !== undefined ? await readActor(actor, accounts) : undefined,
    objectKind,
    objectId: objectKind === undefined ? object : undefined,
    result: switches.has("failed") ? "failed" : undefined,
  };
}

/** Throws UsageError for an unknown action, which would look like an empty log. */
function readAction(text: string): string {
  if (AUDIT_ACTIONS.some((action) => action === text)) return text;
  const meant = nearest(text, AUDIT_ACTIONS);
  const remedy = meant === undefined ? `actions are ${AUDIT_ACTIONS.join(", ")}` : `did you mean ${meant}?`;
  throw new UsageError(`--action: there is no action "${text}"; ${remedy}`);
}

/** The ID of an actor. Throws UsageError for a text that is no account. */
async function readActor(text: string, accounts: Store["accounts"]): Promise<string> {
  const meant = nearest(text, ACTOR_KINDS);
  if (meant !== undefined) throw new UsageError(`--actor: there is no kind of actor "${text}"; did you mean ${meant}?`);
  return (await findAccountByIdOrEmail(accounts, text)).id;
}

function readLimit(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new UsageError(`--limit is a number of entries, 1 to ${MAX_LIMIT}`);
}

function readFormat(text: string): ExportFormat {
  if (text === "jsonl") return "json-lines";
  if (text === "csv") return text;
  throw new UsageError("--format is jsonl or csv");
}
