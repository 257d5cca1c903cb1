import { setImmediate as nextTurn } from "node:timers/promises";
import { toCsv } from "../encoding/csv.ts";
import type { AuditEntry } from "./audit-entry.ts";
import { type AuditFilter, type AuditPosition, type AuditStore, mayContinue } from "./audit-store.ts";

export type ExportFormat = "json-lines" | "csv";

/** Entries per query and per piece of an export: few enough that writing a piece does not noticeably delay other work. */
const PAGE = 100;

/** All entries that match, newest first, page by page: only one of them is in memory. */
async function* pagesOfAudit(
  store: Pick<AuditStore, "list">,
  filter: AuditFilter,
): AsyncGenerator<readonly AuditEntry[]> {
  for (let before: AuditPosition | undefined; ;) {
    const entries = await store.list({ ...filter, limit: PAGE, before });
    if (entries.length > 0) yield entries;
    if (!mayContinue(entries, PAGE)) return;
    before = entries.at(-1);
    await nextTurn();
  }
}

/** The text of an export in pieces of whole lines, each of a page of the store. `toShown` may leave fields of an entry out. */
export async function* exportAudit(
  store: Pick<AuditStore, "list">,
  filter: AuditFilter,
  {
    format,
    toShown = (entry) => entry,
  }: { readonly format: ExportFormat; readonly toShown?: (entry: AuditEntry) => AuditEntry },
): AsyncGenerator<string> {
  if (format === "csv") yield toCsv([Object.keys(CELLS)]);
  const toText = format === "csv" ? toCsvLine : (entry: AuditEntry) => `${JSON.stringify(toAuditJson(entry))}\n`;
  for await (const entries of pagesOfAudit(store, filter))
    yield entries.map((entry) => toText(toShown(entry))).join("");
}

/** An entry as JSON, as commands and exports write it. */
export function toAuditJson(entry: AuditEntry): object {
  const { sequence, atMs, action, actor, network, client, object, accountId, result, before, after, details } = entry;
  return {
    sequence,
    time: new Date(atMs).toISOString(),
    action,
    actor: { kind: actor.kind, id: actor.id ?? null },
    network: network ?? null,
    client: client ?? null,
    object: object ?? null,
    account: accountId ?? null,
    result,
    before: parse(before),
    after: parse(after),
    details: parse(details),
    hash: entry.hash,
  };
}

function parse(text: string | undefined): unknown {
  return text === undefined ? null : (JSON.parse(text) as unknown);
}

/** The columns of CSV. */
const CELLS: Readonly<Record<string, (entry: AuditEntry) => string | undefined>> = {
  sequence: ({ sequence }) => String(sequence),
  time: ({ atMs }) => new Date(atMs).toISOString(),
  action: ({ action }) => action,
  actor_kind: ({ actor }) => actor.kind,
  actor_id: ({ actor }) => actor.id,
  network: ({ network }) => network,
  client: ({ client }) => client,
  object_kind: ({ object }) => object?.kind,
  object_id: ({ object }) => object?.id,
  account: ({ accountId }) => accountId,
  result: ({ result }) => result,
  before: ({ before }) => before,
  after: ({ after }) => after,
  details: ({ details }) => details,
  hash: ({ hash }) => hash,
};

function toCsvLine(entry: AuditEntry): string {
  return toCsv([Object.values(CELLS).map((cell) => cell(entry) ?? "")]);
}
