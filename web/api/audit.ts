import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { AuditExportFormat, type AuditFilterSchema, AuditService } from "../../gen/parley/console/v1/audit_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const audit = createClient(AuditService, transport);

const RECEIVERS_REFRESH_MS = 5_000;

/** Receivers to which the log is sent. */
export const receiversQuery = queryOptions({
  queryKey: ["audit-receivers"],
  queryFn: async ({ signal }) => (await audit.listStreams({}, { signal })).streams,
  refetchInterval: RECEIVERS_REFRESH_MS,
});

/** Refetches the receivers after a change. */
export function refreshReceivers(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: receiversQuery.queryKey });
}

export type AuditFilter = MessageInitShape<typeof AuditFilterSchema>;

/** Entries of the audit log, newest first, with pagination. `key` distinguishes filters. */
export function entriesQuery(filter: AuditFilter, key: string) {
  return infiniteQueryOptions({
    queryKey: ["audit", key],
    queryFn: ({ signal, pageParam }) => audit.list({ filter, pageToken: pageParam }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
}

export const EXPORT_FORMATS = { csv: AuditExportFormat.CSV, jsonl: AuditExportFormat.JSON_LINES } as const;

/** Maximum number of characters of an export, to bound the memory of the page. */
const MAX_CHARS = 100_000_000;

/** Returns the text of an export in pieces, and whether it was truncated at MAX_CHARS. */
export async function exportEntries(
  filter: AuditFilter,
  format: keyof typeof EXPORT_FORMATS,
): Promise<{ readonly pieces: string[]; readonly isPart: boolean }> {
  const pieces: string[] = [];
  let chars = 0;
  for await (const { text } of audit.export({ filter, format: EXPORT_FORMATS[format] })) {
    if (chars >= MAX_CHARS) return { pieces, isPart: true };
    pieces.push(text);
    chars += text.length;
  }
  return { pieces, isPart: false };
}
