import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionSchema, CompletionStartSchema } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { newCompletionId, requestIdFrom } from "../../src/inbound/calls.ts";
import { bearerToken } from "../../src/inbound/current-key.ts";
import { routingOfCompletion, routingOfFailure, routingOfStart } from "../../src/inbound/headers.ts";
import { toAttemptMessage, toDuration } from "../../src/core/attempt.ts";
import { attemptOf } from "../support/attempt.ts";

describe("a credential", () => {
  it.each([
    ["Bearer sk_parley_x", "sk_parley_x"],
    ["bearer sk_parley_x", "sk_parley_x"],
    ["BEARER   sk_parley_x  ", "sk_parley_x"],
    ["Bearer", undefined],
    ["Bearer ", undefined],
    ["Bearersk_parley_x", undefined],
    ["sk_parley_x", undefined],
    ["Basic c2s6", undefined],
    ["Bearer one two", undefined],
    [" Bearer x", undefined],
    ["Bearer x, Bearer y", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("in the header %j is %j", (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe("IDs", () => {
  it("of completions are chatcmpl- and 24 letters or digits, never the same", () => {
    const ids = Array.from({ length: 5_000 }, newCompletionId);
    expect(new Set(ids).size).toBe(5_000);
    for (const id of ids) expect(id).toMatch(/^chatcmpl-[0-9A-Za-z]{24}$/);
    expect(new Set(ids.join("").replaceAll("chatcmpl-", "")).size).toBe(62);
  });

  it.each(["a", "req-1", "~".repeat(128), '!"#$%&()*+,/:;<=>?@[]^_`{|}'])(
    "of requests may be the caller's own: %s",
    (id) => {
      expect(requestIdFrom(id)).toBe(id);
    },
  );

  it.each([undefined, "", "with space", "x".repeat(129), "line\nbreak", "nul\0", "ümlaut", "tab\t"])(
    "of requests are new when the caller's cannot be repeated: %j",
    (id) => {
      expect(requestIdFrom(id)).toMatch(/^req_[0-9A-Za-z]{24}$/);
    },
  );
});

describe("routing facts", () => {
  const attempts = [
    attemptOf({ model: "a", outcome: "upstream_timeout" }),
    attemptOf({ model: "a", outcome: "skipped" }),
    attemptOf({ model: "b" }),
  ];
  const messages = attempts.map(toAttemptMessage);

  it("of a whole completion count what was tried, not what was skipped, and take the upstream's time off", () => {
    const completion = create(CompletionSchema, {
      model: "b",
      report: { attempts: messages, upstreamDuration: toDuration(90.25) },
    });
    expect(routingOfCompletion(completion, "a", 100.5)).toEqual([
      ["parley-requested-model", "a"],
      ["parley-served-model", "b"],
      ["parley-attempts", "2"],
      ["parley-overhead-ms", "10.3"],
    ]);
  });

  it("of a stream count the attempt that is still in flight", () => {
    const start = create(CompletionStartSchema, {
      model: "b",
      attempts: messages.slice(0, 2),
      upstreamDuration: toDuration(10),
    });
    expect(Object.fromEntries(routingOfStart(start, "a", 12))).toMatchObject({
      "parley-served-model": "b",
      "parley-attempts": "2",
      "parley-overhead-ms": "2.0",
    });
  });

  it("never say that the gateway took less than no time", () => {
    const completion = create(CompletionSchema, { model: "b", report: { upstreamDuration: toDuration(90) } });
    expect(Object.fromEntries(routingOfCompletion(completion, "a", 89.9))["parley-overhead-ms"]).toBe("0.0");
  });

  it("of a failure name no model", () => {
    const failure = new Failure("upstream_timeout", "Late.", { attempts: attempts.slice(0, 2) });
    expect(routingOfFailure(failure, "a")).toEqual([
      ["parley-requested-model", "a"],
      ["parley-attempts", "1"],
    ]);
  });

  it("hold nothing that would break out of a header", () => {
    const [[, requested] = []] = routingOfFailure(
      new Failure("model_not_found", "no"),
      `x\r\nset-cookie: ü\0${"y".repeat(999)}`,
    );
    expect(requested).toMatch(/^xset-cookie: y+$/);
    expect(requested!.length).toBeLessThanOrEqual(256);
  });
});
