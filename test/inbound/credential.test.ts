import { describe, expect, it } from "vitest";
import { authorizationOf, bearerToken } from "../../src/inbound/current-key.ts";

describe("the credential of a request", () => {
  it.each([
    [{ authorization: "Bearer a" }, "a"],
    [{ "x-api-key": "a" }, "a"],
    [{ authorization: "Bearer a", "x-api-key": "b" }, "a"],
    [{ "x-api-key": "" }, undefined],
    [{}, undefined],
  ])("of %j is %s", (headers, key) => {
    expect(bearerToken(authorizationOf(headers))).toBe(key);
  });
});
