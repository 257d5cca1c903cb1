import type { Expected, KeyName, Scenario } from "./scenario.ts";

const unauthenticated: Expected = { failure: "unauthenticated", refused: true };
/** A body that is not JSON, and bytes that are not a message. */
const unreadable = { http: { body: '{"model": nope' }, grpcBytes: Buffer.from([0xff, 0xff, 0xff]) };
const mib = 1024 * 1024;

/** Requests that are refused before validation. */
export const REFUSING: readonly Scenario[] = [
  ...(["none", "misshapen", "another scheme", "unknown", "expired", "revoked"] as const satisfies KeyName[]).map(
    (key): Scenario => ({ name: `refuses a call with this key: ${key}`, key, expected: unauthenticated }),
  ),
  {
    name: "authenticates before it parses a body",
    key: "none",
    ...unreadable,
    expected: unauthenticated,
  },
  {
    name: "reports the position of a JSON syntax error",
    at: "http",
    ...unreadable,
    expected: { failure: "invalid_request", refused: true, message: /^The request body is not valid JSON/ },
  },
  {
    name: "reports that bytes are not a message",
    at: "grpc",
    ...unreadable,
    expected: { failure: "invalid_request", refused: true, param: "request", message: /parley\.v1\.CompletionRequest/ },
  },
  ...(
    [
      ["is empty", "", /is empty/],
      ["is an array", "[]", /must be a JSON object/],
      ["is null", "null", /must be a JSON object/],
      ["is not UTF-8", Buffer.from('{"model":"\xe9"}', "latin1"), /is not valid UTF-8/],
      ["is nested deeper than 64 levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, /deeper than 64 levels/],
      ["is megabytes of brackets", "[".repeat(4 * mib), /deeper than 64 levels/],
    ] as const
  ).map(([what, body, message]): Scenario => ({
    name: `refuses a body that ${what}`,
    at: "http",
    http: { body },
    expected: { failure: "invalid_request", refused: true, message },
  })),
  {
    name: "refuses other content types",
    at: "http",
    http: { headers: { "content-type": "text/plain" } },
    expected: { failure: "invalid_request", refused: true, message: /content-type/ },
  },
  {
    name: "refuses compressed bodies",
    at: "http",
    http: { headers: { "content-encoding": "gzip" } },
    expected: { failure: "invalid_request", refused: true, message: /content-encoding/ },
  },
  {
    name: "refuses an invalid deadline",
    at: "http",
    http: { headers: { "x-request-timeout-ms": "soon" } },
    expected: { failure: "invalid_request", refused: true, param: "x-request-timeout-ms" },
  },
  {
    name: "refuses a body with a content-length of more than 32 MiB, without reading it",
    at: "http",
    http: { headers: { "content-length": String(33 * mib) } },
    expected: { failure: "request_too_large", refused: true, message: /32 MiB/, closesConnection: true },
  },
  {
    name: "refuses a chunked body of more than 32 MiB",
    at: "http",
    mode: "whole",
    http: { body: Buffer.alloc(33 * mib, " "), headers: { "transfer-encoding": "chunked" } },
    expected: { failure: "request_too_large", refused: true, message: /32 MiB/, closesConnection: true },
  },
  {
    name: "responds with not found at an unknown path, without a key",
    at: "http",
    key: "none",
    isUnknownPath: true,
    expected: { failure: "not_found", refused: true, message: /\/v1\S+complete/ },
  },
  {
    name: "responds with unimplemented at an unknown method",
    at: "grpc",
    isUnknownPath: true,
    expected: { failure: "not_found", byLibrary: true },
  },
  {
    name: "refuses a message larger than the configured size",
    at: "grpc",
    grpcBytes: Buffer.alloc(mib + 1),
    expected: { failure: "request_too_large", refused: true },
  },
  {
    name: "removes a call whose caller cancels while sending the request",
    at: "http",
    http: { headers: { "content-length": "100000" } },
    leaves: "while sending",
    expected: { failure: "cancelled", refused: true },
  },
];
