import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import type { OmissionReason, Report } from "../../gen/parley/v1/report_pb.js";
import type { Call } from "./call.ts";

/** Facts of a completion that are only shown with it. Nothing filters by them or sums them. */
export interface EntryDetails {
  /** As `Call.format`. */
  readonly format?: string | undefined;
  /** As `Call.client`. */
  readonly client?: string | undefined;
  /** 32 hexadecimal digits; undefined for a completion that is not traced. */
  readonly traceId?: string | undefined;
  /** Finish reason of the first choice. */
  readonly finishReason?: FinishReason | undefined;
  /** Request fields that were not honoured, the first MAX_FIELDS. */
  readonly omitted?: readonly { readonly field: string; readonly reason: OmissionReason }[] | undefined;
  /** Number of all omitted fields; undefined when `omitted` has them all. */
  readonly omittedCount?: number | undefined;
  /** Request fields with another value than the request's, the first MAX_FIELDS. */
  readonly clamped?: readonly ClampedField[] | undefined;
}

/** A request field whose value was replaced by one that the provider supports. */
interface ClampedField {
  readonly field: string;
  readonly requested: JsonValue;
  readonly sent: JsonValue;
}

const MAX_FIELDS = 20;
const MAX_FIELD_CHARS = 200;

/** The details of a completion, from its call and its report. Undefined without any. */
export function toEntryDetails(
  { format, client, trace }: Pick<Call, "format" | "client" | "trace">,
  report: Pick<Report, "omitted" | "clamped"> | undefined,
  finishReason: FinishReason,
): EntryDetails | undefined {
  const { omitted = [], clamped = [] } = report ?? {};
  const details: EntryDetails = {
    ...(format !== undefined && { format }),
    ...(client !== undefined && { client }),
    ...(trace !== undefined && { traceId: trace.context.traceId }),
    ...(finishReason !== FinishReason.UNSPECIFIED && { finishReason }),
    ...(omitted.length > 0 && {
      omitted: omitted.slice(0, MAX_FIELDS).map(({ field, reason }) => ({ field: shorten(field), reason })),
    }),
    ...(omitted.length > MAX_FIELDS && { omittedCount: omitted.length }),
    ...(clamped.length > 0 && {
      clamped: clamped.slice(0, MAX_FIELDS).map(({ field, requested, sent }) => ({
        field: shorten(field),
        requested: requested === undefined ? null : toJson(ValueSchema, requested),
        sent: sent === undefined ? null : toJson(ValueSchema, sent),
      })),
    }),
  };
  return Object.keys(details).length === 0 ? undefined : details;
}

function shorten(field: string): string {
  return field.length <= MAX_FIELD_CHARS ? field : `${field.slice(0, MAX_FIELD_CHARS)}…`;
}
