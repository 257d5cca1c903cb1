import type { Expected, KeyName, Scenario } from "./scenario.ts";

const unauthenticated: Expected = { failure: "unauthenticated", refused: true };
/** A body that is no JSON, and bytes that are no message. */
const unreadable = { http: { body: '{"model": nope' }, grpcBytes: Buffer.from([0xff, 0xff, 0xff]) };
const mib = 1024 * 1024;

/** Requests that are refused before anybody looks at what they mean. */
export const REFUSING: readonly Scenario[] = [
  ...(["none", "misshapen", "another scheme", "unknown", "expired", "revoked"] as const satisfies KeyName[]).map(
    (key): Scenario => ({ name: `refuses a call with this key: ${key}`, key, expected: unauthenticated }),
  ),
  {
    name: "asks for a key before it says that a body cannot be read",
    key: "none",
    ...unreadable,
    expected: unauthenticated,
  },
  {
    name: "says where a body stops being JSON",
    at: "http",
    ...unreadable,
    expected: { failure: "invalid_request", refused: true, message: /^The request body is not valid JSON/ },
  },
  {
    name: "says that bytes are not a message",
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
  ...(
    [
      ["temperature", { temperature: "hot" }],
      ["max_tokens", { max_tokens: 1.5 }],
      ["max_tokens", { max_tokens: 3_000_000_000 }],
      ["stream", { stream: "yes" }],
      ["messages", { messages: "hello" }],
      ["messages[0].role", { messages: [{ role: "robot", content: "hello" }] }],
      ["messages[0].content[0].type", { messages: [{ role: "user", content: [{ type: "smell" }] }] }],
      ["fallback_models", { fallback_models: "beta" }],
      ["modalities[0]", { modalities: ["smell"] }],
      ["model", { model: undefined }],
      ["model", { model: 7, temperature: "hot" }],
    ] as const
  ).map(([param, fields]): Scenario => ({
    name: `names the field when its type is wrong: ${JSON.stringify(fields)}`,
    at: "http",
    http: { fields },
    expected: { failure: "invalid_request", refused: true, param },
  })),
  {
    name: "says that a type is wrong before it says that a model is unknown",
    at: "http",
    ask: { model: "nobody" },
    http: { fields: { temperature: "hot" } },
    expected: { failure: "invalid_request", refused: true, param: "temperature" },
  },
  {
    name: "takes a body only for what it says it is",
    at: "http",
    http: { headers: { "content-type": "text/plain" } },
    expected: { failure: "invalid_request", refused: true, message: /content-type/ },
  },
  {
    name: "takes no compressed body",
    at: "http",
    http: { headers: { "content-encoding": "gzip" } },
    expected: { failure: "invalid_request", refused: true, message: /content-encoding/ },
  },
  {
    name: "refuses a deadline that is no time",
    at: "http",
    http: { headers: { "x-request-timeout-ms": "soon" } },
    expected: { failure: "invalid_request", refused: true, param: "x-request-timeout-ms" },
  },
  {
    name: "refuses a body that is announced to be larger than 32 MiB, without reading it",
    at: "http",
    http: { headers: { "content-length": String(33 * mib) } },
    expected: { failure: "request_too_large", refused: true, message: /32 MiB/, closesConnection: true },
  },
  {
    name: "refuses a body that turns out to be larger than 32 MiB",
    at: "http",
    mode: "whole",
    http: { body: Buffer.alloc(33 * mib, " "), headers: { "transfer-encoding": "chunked" } },
    expected: { failure: "request_too_large", refused: true, message: /32 MiB/, closesConnection: true },
  },
  {
    name: "has nothing at a path that does not exist, and needs no key to say so",
    at: "http",
    key: "none",
    path: "/v1/chat/complete",
    expected: { failure: "not_found", refused: true, message: /\/v1\/chat\/complete/ },
  },
  {
    name: "has nothing at a method that does not exist",
    at: "grpc",
    path: "/parley.v1.CompletionService/Complete",
    expected: { failure: "not_found", byLibrary: true },
  },
  {
    name: "refuses a message that is larger than the configured size",
    at: "grpc",
    grpcBytes: Buffer.alloc(mib + 1),
    expected: { failure: "request_too_large", byLibrary: true },
  },
  {
    name: "forgets a caller who leaves while its request is sent",
    at: "http",
    http: { headers: { "content-length": "100000" } },
    leaves: "while sending",
    expected: { failure: "cancelled", refused: true },
  },
];
