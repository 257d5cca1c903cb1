import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KeySchema } from "../../gen/parley/v1/key_pb.js";
import type { Principal } from "../../src/core/principal.ts";
import { toGrant, toKey } from "../../src/inbound/current-key.ts";
import { somebody } from "../support/core-ports.ts";

function crossed(principal: Principal): ReturnType<typeof toGrant> {
  return toGrant(fromBinary(KeySchema, toBinary(KeySchema, toKey(principal))));
}

describe("a key as its holder reads it", () => {
  it("has the same grant after it was read", () => {
    const limits = {
      requestsPerMinute: 60,
      tokensPerMinute: undefined,
      concurrentRequests: 4,
      monthlyBudgetMicroUsd: 5_000_000_000,
    };
    const accountLimits = { ...limits, requestsPerMinute: undefined, tokensPerMinute: 100_000 };
    const models = new Set(["a", "b/c"]);
    const principal = { ...somebody, models, capabilities: new Set(["chat"] as const), limits, accountLimits };
    expect(crossed({ ...principal, expiresAtMs: 1_800_000_000_000 })).toEqual({
      record: {
        keyFamilyId: somebody.keyId,
        id: somebody.keyId,
        name: somebody.keyName,
        accountId: somebody.accountId,
        models: ["a", "b/c"],
        capabilities: ["chat"],
        limits,
        options: "default",
        // A front leaves these to its core.
        requiredLabels: {},
        tags: [],
        storesContent: false,
        expiresAtMs: 1_800_000_000_000,
        revokedAtMs: undefined,
      },
      accountLimits,
      accountDisabled: false,
    });
  });

  it("says nothing of what is not limited", () => {
    const { record, accountLimits } = crossed(somebody);
    expect(record).toMatchObject({ models: "all", expiresAtMs: undefined, limits: somebody.limits });
    expect(accountLimits).toEqual(somebody.accountLimits);
  });

  it("ends at the same millisecond", () => {
    expect(crossed({ ...somebody, expiresAtMs: 1_800_000_000_001 }).record.expiresAtMs).toBe(1_800_000_000_001);
  });
});
