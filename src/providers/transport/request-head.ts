import type { OutgoingHttpHeaders } from "node:http2";

/** Parts of a request's head. `trace`: headers that change with each request, unlike `headers`. */
export interface RequestParts {
  readonly method: string;
  /** Appended to the base URL's path; begins with a slash. */
  readonly path: string;
  readonly accept: string;
  readonly headers: Headers;
  readonly trace: Headers;
}

export type Headers = Readonly<Record<string, string>>;

/** Writes the heads of requests to one base URL. */
export interface HeadWriter<Head> {
  /** Throws a TypeError for characters that HTTP forbids; it names the header, never its value. */
  write(parts: RequestParts): Head;
}

/** Characters of a header's name and value (RFC 9110, 5.1 and 5.5). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const PATH = /^[\x21-\x7e]+$/;

/** Heads of HTTP/1.1 as text that ends with CRLF, without `content-length`. */
export class Http1Heads implements HeadWriter<string> {
  readonly #prefix: string;
  readonly #host: string;
  /** Cache of the last headers and their text: nearly every request of a provider has the same ones. */
  #headers: Headers = {};
  #text = "";

  constructor(url: URL) {
    this.#prefix = prefixOf(url);
    this.#host = url.host;
  }

  write({ method, path, accept, headers, trace }: RequestParts): string {
    checkPath(path);
    if (this.#headers !== headers) {
      this.#text = toLines(headers);
      this.#headers = headers;
    }
    return `${method} ${this.#prefix}${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\naccept: ${accept}\r\n${this.#text}${toLines(trace)}`;
  }
}

/** Heads of HTTP/2 as fields (RFC 9113, 8.3.1), whose names are in lower case. */
export class Http2Heads implements HeadWriter<OutgoingHttpHeaders> {
  readonly #prefix: string;
  readonly #authority: string;

  constructor(url: URL) {
    this.#prefix = prefixOf(url);
    this.#authority = url.host;
  }

  write({ method, path, accept, headers, trace }: RequestParts): OutgoingHttpHeaders {
    checkPath(path);
    const fields: OutgoingHttpHeaders = {
      ":method": method,
      ":scheme": "https",
      ":authority": this.#authority,
      ":path": this.#prefix + path,
      accept,
    };
    for (const [name, value] of Object.entries({ ...headers, ...trace })) {
      checkHeader(name, value);
      fields[name.toLowerCase()] = value;
    }
    return fields;
  }
}

function prefixOf({ pathname }: URL): string {
  return pathname.replace(/\/+$/, "");
}

function checkPath(path: string): void {
  if (!PATH.test(path)) throw new TypeError("the path contains a character that a URL cannot contain");
}

function checkHeader(name: string, value: string): void {
  if (!NAME.test(name)) throw new TypeError(`a header name contains a forbidden character: ${JSON.stringify(name)}`);
  if (!VALUE.test(value)) throw new TypeError(`the header ${name} contains a forbidden character`);
}

function toLines(headers: Headers): string {
  let lines = "";
  for (const [name, value] of Object.entries(headers)) {
    checkHeader(name, value);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}
