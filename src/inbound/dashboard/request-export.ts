import { setImmediate as nextTurn } from "node:timers/promises";
import { ExportFormat } from "../../../gen/parley/console/v1/request_pb.js";
import { OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import { toCsv } from "../../encoding/csv.ts";
import type { LedgerStore, LogPosition } from "../../ledger/ledger-store.ts";
import type { EndedRequest } from "./request-feed.ts";
import type { LogFilter } from "./request-filter.ts";
import { type AccountView, listRequests, type RequestListPorts } from "./request-list.ts";
import { type Sort, sortRequests } from "./request-sort.ts";

/** Largest number of requests in a file. */
const MAX_EXPORTED = 50_000;
/** Requests per piece: few enough that writing a piece does not noticeably delay other work. */
const PIECE = 250;
/** Requests per page of a sorted export: each page sorts again. */
const SORTED_PAGE = 1_000;
/** Largest number of pages that are searched, for filters that hardly any request matches. */
const MAX_PAGES = 1_000;

interface ExportPorts extends RequestListPorts {
  readonly ledger: Pick<LedgerStore, "list" | "listSorted">;
}

interface Export {
  readonly filter: LogFilter;
  readonly view: AccountView;
  /** Default: the latest end first. */
  readonly sort?: Sort | undefined;
  readonly format: ExportFormat;
  readonly signal: AbortSignal;
  /** Runs the reading of a page when the caller's account has its turn. May reject when the signal aborts. */
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>;
  /** Default: MAX_EXPORTED. */
  readonly most?: number;
}

/** A piece of the file. */
interface ExportPiece {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly count: number;
  readonly isCut: boolean;
}

/** The next requests, up to the limit of one page. */
type Read = (limit: number) => Promise<{
  readonly requests: readonly EndedRequest[];
  readonly isLast: boolean;
  /** Whether earlier requests are left out. */
  readonly isCut: boolean;
}>;

/** Writes the requests of the log in pieces: only one page of them is in memory. Throws `invalid_request`. */
export async function* exportRequests(
  ports: ExportPorts,
  { filter, view, sort, format, signal, inTurn, most = MAX_EXPORTED }: Export,
): AsyncGenerator<ExportPiece> {
  const write = WRITERS.get(format);
  if (write === undefined) throw invalidField("format", "is not known to this version");
  if (format === ExportFormat.CSV) yield pieceOf(toCsv([COLUMNS.map(([name]) => name)]), 0);
  const read = sort === undefined ? readLatest(ports, filter, view) : readSorted(ports, { ...filter, ...sort }, view);
  let left = most;
  for (let pages = 0; pages < MAX_PAGES && left > 0; pages += 1) {
    const { requests, isLast, isCut } = await inTurn(() => read(left));
    left -= requests.length;
    for (let from = 0; from === 0 || from < requests.length; from += PIECE) {
      if (signal.aborted) return;
      const part = requests.slice(from, from + PIECE);
      yield pieceOf(write(part), part.length);
      await nextTurn();
    }
    if (isLast && !isCut) return;
    if (isLast) break;
  }
  yield { ...pieceOf("", 0), isCut: true };
}

function readLatest(ports: ExportPorts, filter: LogFilter, view: AccountView): Read {
  let after: LogPosition | undefined;
  return async (limit) => {
    const { requests, next } = await listRequests(ports, { ...filter, limit: Math.min(PIECE, limit), after }, view);
    after = next;
    return { requests, isLast: next === undefined, isCut: false };
  };
}

function readSorted(ports: ExportPorts, query: LogFilter & Sort, view: AccountView): Read {
  let pageToken = "";
  return async (limit) => {
    const page = await sortRequests(ports, { ...query, limit: Math.min(SORTED_PAGE, limit), pageToken }, view);
    pageToken = page.nextPageToken;
    return { requests: page.requests, isLast: pageToken === "", isCut: page.sortedSinceMs !== undefined };
  };
}

function pieceOf(text: string, count: number): ExportPiece {
  return { data: new TextEncoder().encode(text), count, isCut: false };
}

type Cell = string | number | boolean | undefined;

/** Columns of the table, and fields of the objects. Empty cells and null: not known, or none. */
const COLUMNS: readonly (readonly [name: string, read: (request: EndedRequest) => Cell])[] = [
  ["id", ({ entry }) => entry.completionId],
  ["request_id", ({ entry }) => entry.requestId],
  ["start_time", ({ entry }) => new Date(entry.startedAtMs).toISOString()],
  ["end_time", ({ entry }) => new Date(entry.endedAtMs).toISOString()],
  ["status", ({ entry }) => entry.outcome],
  ["refused", ({ refused }) => refused],
  ["requested_model", ({ entry }) => entry.requestedModel],
  ["served_model", ({ entry }) => entry.servedModel],
  ["account_id", ({ entry }) => entry.accountId],
  ["key_id", ({ entry }) => entry.keyId],
  ["key_name", ({ keyName }) => keyName],
  ["endpoint", ({ entry }) => entry.entrance],
  ["format", ({ entry }) => entry.details?.format],
  ["streamed", ({ entry }) => entry.streamed],
  ["client", ({ entry }) => entry.details?.client],
  ["end_user", ({ entry }) => entry.attribution?.endUser],
  ["session", ({ entry }) => entry.attribution?.session],
  ["agent", ({ entry }) => entry.attribution?.agent],
  ["tags", ({ entry }) => entry.attribution?.tags?.join(", ")],
  ["prompt_tokens", ({ entry }) => entry.tokens.prompt],
  ["cached_tokens", ({ entry }) => entry.tokens.cached],
  ["completion_tokens", ({ entry }) => entry.tokens.completion],
  ["reasoning_tokens", ({ entry }) => entry.tokens.reasoning],
  ["estimated", ({ entry }) => entry.estimated],
  ["cost_usd", ({ entry }) => entry.costMicroUsd / 1e6],
  ["duration_ms", ({ entry }) => Math.round(entry.durationMs)],
  ["first_content_ms", ({ entry: { firstContentMs } }) => firstContentMs && Math.round(firstContentMs)],
  ["finish_reason", ({ entry }) => wordOf(FinishReason, entry.details?.finishReason)],
  ["partial", ({ entry }) => entry.partial],
  ["attempts", ({ entry }) => entry.attempts.length],
  ["trace_id", ({ entry }) => entry.details?.traceId],
  ["message", ({ message }) => message || undefined],
];

const WRITERS: ReadonlyMap<ExportFormat, (requests: readonly EndedRequest[]) => string> = new Map([
  [
    ExportFormat.UNSPECIFIED,
    (requests) => requests.map((request) => `${JSON.stringify(toObject(request))}\n`).join(""),
  ],
  [
    ExportFormat.CSV,
    (requests) =>
      toCsv(
        requests.map((request) =>
          COLUMNS.map(([, read]) => {
            const cell = read(request);
            return typeof cell === "boolean" ? String(cell) : cell;
          }),
        ),
      ),
  ],
]);

function toObject(request: EndedRequest): object {
  const { attempts, details } = request.entry;
  return {
    ...Object.fromEntries(COLUMNS.map(([name, read]) => [name, read(request) ?? null])),
    attempts: attempts.map(
      ({ model, outcome, upstreamStatus, startMs, sentMs, headMs, firstContentMs, durationMs }) => {
        return {
          model,
          status: outcome,
          http_status_code: upstreamStatus,
          start_ms: startMs,
          sent_ms: sentMs,
          head_ms: headMs,
          first_content_ms: firstContentMs,
          duration_ms: durationMs,
        };
      },
    ),
    omitted: details?.omitted?.map(({ field, reason }) => ({ field, reason: wordOf(OmissionReason, reason) })) ?? [],
    clamped: details?.clamped ?? [],
  };
}

/** A value of an enum in lower case. */
function wordOf(of: Readonly<Record<number, string>>, value: number | undefined): string | undefined {
  return value === undefined ? undefined : of[value]?.toLowerCase();
}
