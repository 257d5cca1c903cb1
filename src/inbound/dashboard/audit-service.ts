import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type AuditEntrySchema,
  AuditExportFormat,
  type AuditFilter as FilterMessage,
  type AuditService,
  type AuditStreamSchema,
} from "../../../gen/parley/console/v1/audit_pb.js";
import { ACTOR_KINDS, type AuditEntry, OBJECT_KINDS } from "../../access/audit-entry.ts";
import { exportAudit, type ExportFormat } from "../../access/audit-export.ts";
import { type AuditFilter, type AuditPosition, type AuditStore, mayContinue } from "../../access/audit-store.ts";
import { permitsEverywhere } from "../../access/permissions.ts";
import type { AuditStreamRecord } from "../../alerts/audit-stream-store.ts";
import { type AuditStreamContext, createStream, removeStream } from "../../alerts/audit-streams.ts";
import type { SignedIn } from "../../access/sessions.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
import { optionalTime } from "./account-messages.ts";
import { accountInView, actorOf, type ConsoleCall, mayStillRead, signedInOf } from "./call.ts";
import { pageSize, readMoment, readTime, writeMoment } from "./list-page.ts";
import type { ReportTurns } from "./report-turns.ts";
import type { Streams } from "./streams.ts";

/** Characters of a condition: IDs, and names of providers. */
const MAX_CONDITION = 256;

/** Exports at once per account: each reads the log for as long as it runs. */
const MAX_EXPORTS = 2;

/** Ports of the audit service. */
export interface AuditServicePorts {
  readonly audit: Pick<AuditStore, "list">;
  readonly streams: Streams;
  readonly reports: ReportTurns;
  readonly auditStreams: AuditStreamPorts;
}

/** Ports of the receivers to which the log is sent. */
export interface AuditStreamPorts extends AuditStreamContext {
  readonly ends: AuditStore["ends"];
}

/** The audit log: what concerns an account in which the caller has the permission, all of it for owners and administrators. */
export function createAuditService({
  audit,
  streams,
  reports,
  auditStreams,
}: AuditServicePorts): ServiceImpl<typeof AuditService> {
  const exports = new ConcurrencyLimit(MAX_EXPORTS);
  return {
    async list({ filter, limit, pageToken }, context) {
      const size = pageSize(limit);
      const viewer = signedInOf(context);
      const entries = await audit.list({
        ...readFilter(filter, context),
        limit: size,
        before: readPosition(pageToken),
      });
      const last = entries.at(-1);
      return {
        entries: entries.map((entry) => toMessage(toShown(entry, viewer))),
        nextPageToken:
          last === undefined || !mayContinue(entries, size) ? "" : writeMoment(last.atMs, String(last.sequence)),
      };
    },

    async *export({ filter, format }, context) {
      const viewer = signedInOf(context);
      const options = { format: readFormat(format), toShown: (entry: AuditEntry) => toShown(entry, viewer) };
      const wanted = readFilter(filter, context);
      const release = exports.take(viewer.account.id);
      if (release === undefined)
        throw new Failure(
          "rate_limited",
          `This account has reached the maximum of ${MAX_EXPORTS} exports of the audit log at once. Wait for one to complete.`,
        );
      try {
        yield* streams.run(
          context,
          (call) => {
            const { signal } = call.open;
            const list: AuditStore["list"] = (page) => reports.run(viewer.account.id, signal, () => audit.list(page));
            return untilEnded(call, exportAudit({ list }, wanted, options));
          },
          mayStillRead("audit.read", wanted.accountId),
        );
      } finally {
        release();
      }
    },

    async listStreams() {
      const { head } = await auditStreams.ends();
      return {
        streams: (await auditStreams.streams.streams()).map((stream) => toStreamMessage(stream, head.sequence)),
      };
    },

    async createStream({ url }, context) {
      const { stream, signingKey } = await createStream(auditStreams, url, actorOf(context));
      return { stream: toStreamMessage(stream, stream.sequence), signingKey };
    },

    async removeStream({ id }, context) {
      await removeStream(auditStreams, id, actorOf(context));
      return {};
    },
  };
}

function toStreamMessage(stream: AuditStreamRecord, headSequence: number): MessageInitShape<typeof AuditStreamSchema> {
  const { id, target, sequence, createdAtMs, sentAtMs, failures, nextAtMs, problem } = stream;
  return {
    id,
    target,
    createTime: timestampFromMs(createdAtMs),
    sequence: BigInt(sequence),
    waiting: BigInt(Math.max(headSequence - sequence, 0)),
    ...optionalTime("sendTime", sentAtMs),
    problem,
    ...optionalTime("nextTime", failures > 0 ? nextAtMs : undefined),
  };
}

async function* untilEnded({ open }: ConsoleCall, texts: AsyncIterable<string>): AsyncGenerator<{ text: string }> {
  for await (const text of texts) {
    if (open.signal.aborted) return;
    yield { text };
  }
}

/** An entry for its account: only owners and administrators see the network and the program of other actors. */
function toShown(entry: AuditEntry, viewer: SignedIn): AuditEntry {
  const { actor } = entry;
  const isOwn = (actor.kind !== "account" && actor.kind !== "admin_key") || actor.id === viewer.account.id;
  const isShown = isOwn || permitsEverywhere(viewer, "audit.read");
  return isShown ? entry : { ...entry, network: undefined, client: undefined };
}

function toMessage(entry: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  const { sequence, atMs, action, actor, network = "", client = "", object, accountId = "", result, hash } = entry;
  const { before = "", after = "", details = "" } = entry;
  return {
    sequence: BigInt(sequence),
    time: timestampFromMs(atMs),
    action,
    actor: { kind: actor.kind, id: actor.id ?? "" },
    network,
    client,
    ...(object && { object }),
    accountId,
    failed: result === "failed",
    beforeJson: before,
    afterJson: after,
    detailsJson: details,
    hash,
  };
}

function readFilter(message: FilterMessage | undefined, context: Pick<HandlerContext, "values">): AuditFilter {
  const accountId = accountInView(signedInOf(context), "audit.read", message?.accountId ?? "");
  if (message === undefined) return { accountId };
  const { action, actorKind, actorId, objectKind, objectId, failed, since, until } = message;
  return {
    accountId,
    action: readText("filter.action", action),
    actorKind: readKind("filter.actor_kind", actorKind, ACTOR_KINDS),
    actorId: readText("filter.actor_id", actorId),
    objectKind: readKind("filter.object_kind", objectKind, OBJECT_KINDS),
    objectId: readText("filter.object_id", objectId),
    result: failed ? "failed" : undefined,
    sinceMs: since && readTime("filter.since", since),
    untilMs: until && readTime("filter.until", until),
  };
}

function readText(field: string, text: string): string | undefined {
  if (text.length > MAX_CONDITION || text.includes("\0"))
    throw invalidField(field, `must have at most ${MAX_CONDITION} characters`);
  return text === "" ? undefined : text;
}

function readKind<K extends string>(field: string, text: string, known: readonly K[]): K | undefined {
  const found = known.find((kind) => kind === text);
  if (found === undefined && text !== "") throw invalidField(field, `must be one of ${known.join(", ")}`);
  return found;
}

function readPosition(token: string): AuditPosition | undefined {
  const moment = readMoment(token, "atMs");
  if (moment === undefined) return undefined;
  if (!/^\d{1,15}$/.test(moment.id)) throw invalidField("page_token", "is not a valid page token");
  return { atMs: moment.atMs, sequence: Number(moment.id) };
}

const FORMATS: Readonly<Record<AuditExportFormat, ExportFormat>> = {
  [AuditExportFormat.UNSPECIFIED]: "json-lines",
  [AuditExportFormat.JSON_LINES]: "json-lines",
  [AuditExportFormat.CSV]: "csv",
};

/** Throws `invalid_request` for an unknown format. */
function readFormat(format: AuditExportFormat): ExportFormat {
  // Unknown enum values arrive as numbers.
  const known: Readonly<Record<number, ExportFormat>> = FORMATS;
  const found = known[format];
  if (found === undefined) throw invalidField("format", "is not one of AuditExportFormat");
  return found;
}
