import { grpcMessage } from "../../../bench/load/http2-frames.ts";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { readScenarios } from "../../product/support/fixtures.ts";
import { rawRequest } from "../../product/support/raw-http.ts";
import { damage } from "./damage.ts";
import { mutateJson, restateJson } from "./json-mutations.ts";
import { type JsonTree, toTree, writeTree } from "./json-tree.ts";
import { PLANTED_PROMPT } from "./product-under-test.ts";
import { messageBytes } from "./protobuf-bytes.ts";
import type { Random } from "./random.ts";
import { schemaBody } from "./schema-bodies.ts";

/** The bytes to send, and how. */
export interface HttpInput {
  readonly bytes: Buffer;
  /**
   * Whether it is one well-framed request with its right length: then the connection is reused, and a response is
   * required. Otherwise it has a connection of its own, which is half-closed afterwards so that an incomplete request
   * ends.
   */
  readonly isWellFramed: boolean;
}

/** Placeholder for the key in the corpus. */
export const KEY = "{{key}}";

const CHAT = "POST /v1/chat/completions";
const EDIT = "POST /v1/images/edits";
const CONNECT = "POST /parley.v1.CompletionService/Create";
const CONNECT_STREAM = "POST /parley.v1.CompletionService/Stream";
const HOST = "host: parley.example";
const MODELS = ["local/test", "local/test", "local/test", "alpha-haiku-4.5", "beta-3-flash"];

const auth = (key: string): string => `authorization: Bearer ${key}`;
const jsonHeaders = (key: string): string[] => [HOST, "content-type: application/json", auth(key)];

const formHeaders = (key: string): string[] => [HOST, "content-type: multipart/form-data; boundary=b", auth(key)];

/** An edit of a picture. */
const FORM = Buffer.from(
  [
    'model"\r\n\r\nlocal/test',
    'prompt"\r\n\r\nhi',
    'n"\r\n\r\n1',
    'stream"\r\n\r\ntrue',
    'image[]"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n\x89PNG\r\n\x1a\n',
  ]
    .map((field) => `--b\r\ncontent-disposition: form-data; name="${field}\r\n`)
    .join("") + "--b--\r\n",
  "latin1",
);

/** Requests of the recorded fixtures. */
const recorded = readScenarios().flatMap(({ clientRequest }) => (clientRequest === undefined ? [] : [clientRequest]));

/** The same request in the contract's JSON. */
const CONTRACT = toTree({
  model: "local/test",
  messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }],
  maxOutputTokens: 100,
  temperature: 0.5,
  stopSequences: ["a"],
  logprobs: { topCount: 2 },
  reasoning: { effort: "REASONING_EFFORT_LOW" },
  tools: [{ function: { name: "f", parametersJson: "{}" } }],
  metadata: { a: "b" },
  seed: "7",
  logitBias: { "1": 2 },
});

/** Draws one request for the HTTP entrance: an unusual body or head, or damaged bytes. */
export function httpInput(key: string, random: Random): HttpInput {
  const kind = random.below(100);
  if (kind < 60) return { bytes: rawRequest(CHAT, jsonHeaders(key), chatBody(random)), isWellFramed: true };
  if (kind < 65) return { bytes: rawRequest(EDIT, formHeaders(key), damage(FORM, random)), isWellFramed: true };
  if (kind < 75) return { bytes: connectRequest(key, random), isWellFramed: true };
  if (kind < 87) return { bytes: strangeRequest(key, random), isWellFramed: true };
  return { bytes: damage(random.pick(validRequests(key)), random), isWellFramed: false };
}

/** The same port with the Connect protocol: JSON or binary, unary or streaming. */
function connectRequest(key: string, random: Random): Buffer {
  const isStream = random.percent(30);
  const isJson = random.percent(70);
  const message = isJson
    ? Buffer.from(writeTree(mutateJson(CONTRACT, random)))
    : messageBytes(CompletionRequestSchema, random);
  // With gRPC's envelope.
  const body = isStream && random.percent(90) ? grpcMessage(message) : message;
  const type = `content-type: application/${isStream ? "connect+" : ""}${isJson ? "json" : "proto"}`;
  const headers = [HOST, auth(key), type];
  if (random.percent(10)) headers.push(random.pick(CONNECT_HEADERS));
  return rawRequest(isStream ? CONNECT_STREAM : CONNECT, headers, body);
}

function chatBody(random: Random): string | Buffer {
  const model = random.pick(MODELS);
  const kind = random.below(100);
  if (kind < 40) return writeTree(schemaBody(model, PLANTED_PROMPT, random));
  // A moved value may become a model's name, which the log may contain.
  if (kind < 50) return writeTree(mutateJson(schemaBody(model, "hi", random), random));
  const tree: JsonTree = toTree({ ...random.pick(recorded), model });
  if (kind < 65) return writeTree(restateJson(tree, random));
  if (kind < 90) return writeTree(mutateJson(tree, random));
  return damage(Buffer.from(writeTree(tree)), random);
}

const METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "TRACE", "SEARCH"];
const PATHS = [
  "/v1/chat/completions",
  "/v1/chat/completions?a=%00",
  "/v1/route",
  "/v1/models",
  "/v1/models/local%2Ftest",
  "/v1/models/local/test",
  "/v1/models/%E0%A4%A",
  "/v1/models/%00",
  "/v1/models/..%2f..%2fetc%2fpasswd",
  "/v1/../v1/models",
  "/v1/models/__proto__",
  "/v1/models/constructor",
  "/V1/MODELS",
  "//",
  "/%",
  "/healthz",
  "/readyz",
  "/openapi.json",
  "/proto/",
  "/proto/../../package.json",
  "/proto/%2e%2e/package.json",
  "/parley.v1.CompletionService/Create",
  "/parley.v1.CompletionService/Stream",
  "/parley.v1.ModelService/List",
  "/parley.v1.KeyService/GetCurrent",
  "/parley.v1.Nothing/At_all",
  "/parley.console.v1.SessionService/GetCurrent",
  "/parley.console.v1.KeyService/List",
  "/v1/models?" + "a=b&".repeat(500),
  "http://parley.example/v1/models",
  "http://other.example/v1/models",
  "*",
];
const HEADERS = [
  "content-type: application/json; charset=utf-16",
  "content-type: text/plain",
  "content-type: application/jsonx",
  "content-type: application/connect+json",
  "content-type: application/connect+proto",
  "content-type: application/proto",
  "content-type: multipart/form-data; boundary=x",
  "content-type: ",
  "content-encoding: gzip",
  "content-encoding: identity",
  "accept: text/html",
  "accept-encoding: gzip, br;q=0",
  "x-request-id: \x7f\x01",
  "x-request-id: mine",
  `x-request-id: ${"a".repeat(129)}`,
  "x-request-timeout-ms: 1",
  "x-request-timeout-ms: 1e400",
  "x-request-timeout-ms: -1",
  "x-request-timeout-ms: NaN",
  "x-request-timeout-ms: 99999999999999999999",
  "x-stainless-timeout: 1e-9",
  "x-stainless-timeout: abc",
  "connect-timeout-ms: 1",
  "connect-timeout-ms: 99999999999",
  "connect-content-encoding: gzip",
  "connect-protocol-version: 7",
  "authorization: Basic YTpi",
  "authorization: Bearer",
  "authorization: Bearer  ",
  "authorization: Bearer sk_parley_",
  `authorization: Bearer ${"a".repeat(8000)}`,
  "authorization: Bearer \xe9\xff",
  "cookie: __Host-parley_session=a; a=b; ;=;",
  "origin: null",
  "origin: https://evil.example",
  "access-control-request-method: POST",
  "x-forwarded-for: 127.0.0.1, ::1, unknown",
  'forwarded: for="[::1]";host=evil',
  "host: other.example",
  "host: [::1",
  "host: a b",
  "range: bytes=0-",
  "if-none-match: *",
  "te: trailers",
  "upgrade: h2c",
  "expect: 100-continue",
  "expect: 200-ok",
  "x-\u00e9: 1",
  `x-long: ${"a".repeat(17_000)}`,
  "__proto__: a",
  "constructor: a",
];

/** Headers that the HTTP library interprets. */
const CONNECT_HEADERS = HEADERS.filter((header) => /^(connect|content-encoding|accept-encoding)/.test(header));

/** Draws a well-framed request with any method, path and headers. */
function strangeRequest(key: string, random: Random): Buffer {
  const headers = random.percent(90) ? jsonHeaders(key) : [HOST];
  for (let more = random.below(4); more > 0; more--) {
    const added = random.pick(HEADERS);
    // Another value, or a repeated header.
    const name = added.slice(0, added.indexOf(":"));
    const at = headers.findIndex((header) => header.startsWith(`${name}:`));
    if (at >= 0 && random.percent(70)) headers[at] = added;
    else headers.push(added);
  }
  const isChat = random.percent(40);
  const line = isChat ? CHAT : `${random.pick(METHODS)} ${random.pick(PATHS)}`;
  const body = isChat || random.percent(50) ? chatBody(random) : "";
  if (body.length === 0 || random.percent(70)) return rawRequest(line, headers, body);
  return rawRequest(line, [...headers, "transfer-encoding: chunked"], inChunks(Buffer.from(body), random));
}

function inChunks(body: Buffer, random: Random): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + random.below(200));
    const extension = random.percent(5) ? ";a=b" : "";
    pieces.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from("\r\n"));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from(random.percent(5) ? "0\r\nx-trailer: a\r\n\r\n" : "0\r\n\r\n")]);
}

/** Valid requests of each kind. */
function validRequests(key: string): Buffer[] {
  const body = { model: "local/test", messages: [{ role: "user", content: "hi" }] };
  const headers = [...jsonHeaders(key), "connection: close"];
  const list = [HOST, auth(key), "connection: close"];
  return [
    rawRequest(CHAT, headers, JSON.stringify(body)),
    rawRequest(CHAT, headers, JSON.stringify({ ...body, stream: true, stop: ["a"], temperature: 1 })),
    rawRequest(CHAT, [...headers, "transfer-encoding: chunked"], `5\r\n{"mod\r\n0\r\n\r\n`),
    rawRequest("GET /v1/models/local%2Ftest", list),
    rawRequest(CONNECT, headers, JSON.stringify({ model: "local/test" })),
    Buffer.concat([
      rawRequest("GET /v1/models", [HOST, auth(key)]),
      rawRequest("GET /healthz", [HOST, "connection: close"]),
    ]),
  ];
}
