import { describe, expect, it } from "vitest";
import { readTraceContext, traceHeaders } from "../../src/core/trace.ts";

const IDS = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

describe("the caller's trace", () => {
  it.each([
    [`00-${IDS}-01`, true],
    [`00-${IDS}-00`, false],
    [`00-${IDS}-03`, true],
    // A later version may have more.
    [`cc-${IDS}-01-what-the-future-holds`, true],
  ])("is read of %s", (traceparent, isSampled) => {
    const [traceId, spanId] = IDS.split("-");
    expect(readTraceContext(traceparent, undefined)).toEqual({ traceId, spanId, isSampled, state: undefined });
  });

  it.each([
    undefined,
    "",
    `ff-${IDS}-01`,
    `00-${IDS}-01-more`,
    `00-${IDS}-01.`,
    `00-${IDS.toUpperCase()}-01`,
    `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
    `00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01`,
    `00-${IDS}-01, 00-${IDS}-01`,
    `cc-${IDS}-01-${"x".repeat(300)}`,
  ])("is none for %s", (traceparent) => {
    expect(readTraceContext(traceparent, "a=b")).toBeUndefined();
  });

  it.each([
    ["a=b", "a=b"],
    ["a=b , ,tenant@vendor=x:y/z ", "a=b,tenant@vendor=x:y/z"],
    ["", undefined],
    ["a", undefined],
    ["A=b", undefined],
    ["a=b\r\nx: y", undefined],
    ["a=b,a=c", undefined],
    [`a=${"x".repeat(600)}`, undefined],
    [Array.from({ length: 33 }, (_, index) => `k${index}=v`).join(), undefined],
  ])("has of the state %j what is valid: %j", (given, state) => {
    expect(readTraceContext(`00-${IDS}-01`, given)?.state).toBe(state);
  });

  it("is written as it was read", () => {
    const headers = traceHeaders(readTraceContext(`00-${IDS}-01`, "a=b")!);
    expect(headers).toEqual([
      ["traceparent", `00-${IDS}-01`],
      ["tracestate", "a=b"],
    ]);
  });
});
