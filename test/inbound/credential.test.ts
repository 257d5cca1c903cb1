import { describe, expect, it } from "vitest";
import { authorizationOf, bearerToken } from "../../src/inbound/current-key.ts";

const NO_QUERY = new URLSearchParams();

describe("the credential of a request", () => {
  it.each([
    [{ authorization: "Bearer a" }, "a"],
    [{ "x-api-key": "a" }, "a"],
    [{ "x-goog-api-key": "a" }, "a"],
    [{ authorization: "Bearer a", "x-goog-api-key": "a" }, "a"],
    [{ authorization: "Basic b", "x-api-key": "a" }, "a"],
    [{ "x-api-key": "" }, undefined],
    [{}, undefined],
  ])("of %j is %s", (headers, key) => {
    expect(bearerToken(authorizationOf(headers, NO_QUERY))).toBe(key);
  });

  it("may be the parameter key of the query", () => {
    expect(authorizationOf({}, new URLSearchParams("key=a&alt=sse"))).toBe("Bearer a");
  });

  it.each([
    [{ authorization: "Bearer a", "x-api-key": "b" }, ""],
    [{ "x-api-key": "a", "x-goog-api-key": "b" }, ""],
    [{ authorization: "Bearer a" }, "key=b"],
  ])("is refused when there are two: %j, %j", (headers, query) => {
    expect(() => authorizationOf(headers, new URLSearchParams(query))).toThrow("two different API keys");
  });
});
