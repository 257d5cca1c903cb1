import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { OmissionReason, ReportSchema } from "../../gen/parley/v1/report_pb.js";
import { toEntryDetails } from "../../src/core/entry-details.ts";
import { Trace } from "../../src/core/trace.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";

describe("the details of a ledger entry", () => {
  it("are those of the call, its report and its first choice", () => {
    const trace = new Trace({ traceId: TRACE_ID, spanId: "b7ad6b7169203331", isSampled: true, state: undefined });
    const report = create(ReportSchema, {
      omitted: [{ field: "seed", reason: OmissionReason.UNSUPPORTED }],
      clamped: [{ field: "temperature", requested: { kind: { case: "numberValue", value: 3 } } }],
    });
    const details = toEntryDetails({ format: "gemini", client: "curl/8", trace }, report, FinishReason.LENGTH);
    expect(details).toEqual({
      format: "gemini",
      client: "curl/8",
      traceId: TRACE_ID,
      finishReason: FinishReason.LENGTH,
      omitted: [{ field: "seed", reason: OmissionReason.UNSUPPORTED }],
      clamped: [{ field: "temperature", requested: 3, sent: null }],
    });
  });

  it("are missing where nothing is known", () => {
    expect(toEntryDetails({}, undefined, FinishReason.UNSPECIFIED)).toBeUndefined();
    expect(toEntryDetails({}, create(ReportSchema), FinishReason.UNSPECIFIED)).toBeUndefined();
  });

  it("have at most 20 fields with at most 200 characters, and the number of all", () => {
    const omitted = Array.from({ length: 1_000 }, () => ({ field: "f".repeat(5_000) }));
    const details = toEntryDetails({}, create(ReportSchema, { omitted }), FinishReason.STOP)!;
    expect([details.omitted?.length, details.omittedCount]).toEqual([20, 1_000]);
    expect(JSON.stringify(details).length).toBeLessThan(5_000);
  });
});
