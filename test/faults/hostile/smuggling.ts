import { rawRequest } from "../../product/support/raw-http.ts";
import { CHAT } from "./target.ts";

/** The smuggled request, which a proxy would not see. A response to it shows that smuggling succeeded. */
export const SMUGGLED_PATH = "/smuggled";
const SMUGGLED = `GET ${SMUGGLED_PATH} HTTP/1.1\r\nhost: parley.example\r\n\r\n`;

/** One request that two servers may interpret differently. */
export interface Ambiguity {
  readonly name: string;
  /** `headers` are those of a valid chat request. */
  readonly bytes: (headers: readonly string[]) => string | Buffer;
  /** Valid HTTP with the smuggled request in the body: answered once. All others are refused and closed. */
  readonly valid?: true;
}

const NO_CHUNKS = `0\r\n\r\n${SMUGGLED}`;
const CHUNKED = "transfer-encoding: chunked";

/** A chat request with additional header lines and an unmodified body. */
function chat(body: string, ...lines: readonly string[]): Ambiguity["bytes"] {
  return (headers) => `${CHAT} HTTP/1.1\r\n${[...headers, ...lines].join("\r\n")}\r\n\r\n${body}`;
}

/** Encodings similar to "chunked". A server that accepts one would read on after the last chunk. */
const ENCODINGS = [
  "transfer-encoding: xchunked",
  "transfer-encoding: chunkedx",
  "transfer-encoding : chunked",
  "transfer-encoding\t: chunked",
  " transfer-encoding: chunked",
  "transfer-encoding:\r\n chunked",
  "transfer-encoding: chunked\r\ntransfer-encoding: identity",
  "transfer-encoding: chunked, identity",
  "transfer-encoding: chunked;q=1",
  'transfer-encoding: "chunked"',
  "transfer-encoding: chun ked",
  "transfer-encoding: chunked\x0b",
  "transfer-encoding: chunked\x00",
  "\x00transfer-encoding: chunked",
  "x: x\ntransfer-encoding: chunked",
  "x: x\rtransfer-encoding: chunked",
  "transfer-encoding: \x7f",
] as const;

/** Invalid lengths, before a body of the length they might mean. */
const LENGTHS = [
  "+5",
  "-5",
  "0x5",
  "5 5",
  "5,5",
  "5, 6",
  "5e0",
  "5.0",
  "5\x0b",
  "5\x00",
  "٥",
  "18446744073709551621",
  "99999999999999999999999",
] as const;

/** Invalid chunks. */
const CHUNKS: readonly (readonly [name: string, body: string])[] = [
  ["a size with a sign", `+5\r\nhello\r\n${NO_CHUNKS}`],
  ["a negative size", `-5\r\nhello\r\n${NO_CHUNKS}`],
  ["a size with 0x", `0x5\r\nhello\r\n${NO_CHUNKS}`],
  ["a size with an underscore", `1_0\r\nhello\r\n${NO_CHUNKS}`],
  ["a size that overflows", `ffffffffffffffff5\r\nhello\r\n${NO_CHUNKS}`],
  ["a size that ends in a bare line feed", `5\nhello\r\n${NO_CHUNKS}`],
  ["a size that ends in a bare carriage return", `5\rhello\r\n${NO_CHUNKS}`],
  ["an empty size", `\r\nhello\r\n${NO_CHUNKS}`],
  ["a line feed in its extension", `5;a=\nb\r\nhello\r\n${NO_CHUNKS}`],
  ["a carriage return in its extension", `5;a=\rb\r\nhello\r\n${NO_CHUNKS}`],
  ["more bytes than its size", `5\r\nhello there\r\n${NO_CHUNKS}`],
  ["no line end after its bytes", `5\r\nhello0\r\n\r\n${SMUGGLED}`],
  ["a bare line feed after its bytes", `5\r\nhello\n${NO_CHUNKS}`],
  ["a last chunk with bare line feeds", `5\r\nhello\r\n0\n\n${SMUGGLED}`],
  ["a trailer that is no header", `0\r\n${SMUGGLED}`],
];

/** Ambiguous requests by their defect. */
export const AMBIGUITIES: readonly Ambiguity[] = [
  { name: "a length and an encoding", bytes: chat(NO_CHUNKS, `content-length: ${NO_CHUNKS.length}`, CHUNKED) },
  { name: "an encoding and a length", bytes: chat(NO_CHUNKS, CHUNKED, "content-length: 5") },
  { name: "two lengths", bytes: chat(SMUGGLED, "content-length: 0", `content-length: ${SMUGGLED.length}`) },
  { name: "the same length twice", bytes: chat(`hello${SMUGGLED}`, "content-length: 5", "content-length: 5") },
  { name: "an empty length", bytes: chat(SMUGGLED, "content-length: ") },
  ...ENCODINGS.map((line) => ({ name: `the encoding ${JSON.stringify(line)}`, bytes: chat(NO_CHUNKS, line) })),
  ...LENGTHS.map((length) => ({
    name: `the length ${JSON.stringify(length)}`,
    bytes: chat(`hello${SMUGGLED}`, `content-length: ${length}`),
  })),
  ...CHUNKS.map(([name, body]) => ({ name: `a chunk with ${name}`, bytes: chat(body, CHUNKED) })),
  { name: "a header without a colon", bytes: chat(SMUGGLED, "x-nothing", "content-length: 0") },
  { name: "a header whose name has a space", bytes: chat(SMUGGLED, "x nothing: 1", "content-length: 0") },
  { name: "a NUL in a header", bytes: chat(SMUGGLED, "x-nul: a\x00b", "content-length: 0") },
  { name: "a folded header", bytes: chat(SMUGGLED, "x-folded: a", "\tb", "content-length: 0") },
  { name: "a second Host", bytes: chat(`{}`, "host: other.example", "content-length: 2") },
  { name: "three words after its method", bytes: () => `GET / x HTTP/1.1\r\nhost: a\r\n\r\n${SMUGGLED}` },
  { name: "HTTP/2 in its first line", bytes: () => `GET / HTTP/2.0\r\nhost: a\r\n\r\n${SMUGGLED}` },
  { name: "bare line feeds throughout", bytes: () => `GET / HTTP/1.1\nhost: a\n\n${SMUGGLED}` },
  {
    name: "a body that is refused unread",
    bytes: () => rawRequest(CHAT, ["host: parley.example", "content-length: 10000000"], SMUGGLED),
  },
  {
    name: "a body too large to be read",
    bytes: (headers) => rawRequest(CHAT, [...headers, "content-length: 99999999"], SMUGGLED),
  },
  {
    name: "a GET with a body",
    bytes: () => rawRequest("GET /healthz", ["host: parley.example"], SMUGGLED),
    valid: true,
  },
  { name: "an unknown path with a body", bytes: (headers) => rawRequest("POST /no", headers, SMUGGLED), valid: true },
  { name: "a body of another caller", bytes: () => rawRequest(CHAT, ["host: parley.example"], SMUGGLED), valid: true },
  { name: "an extension of a chunk", bytes: chat(`2;a=b;c="d"\r\n{}\r\n0\r\n\r\n`, CHUNKED), valid: true },
  {
    name: "trailers that would change the request",
    bytes: chat(`2\r\n{}\r\n0\r\ncontent-length: 50\r\nauthorization: Bearer x\r\nhost: b\r\n\r\n`, CHUNKED),
    valid: true,
  },
];
