/** Characters of a header's name and value (RFC 9110, 5.1 and 5.5). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const PATH = /^[\x21-\x7e]+$/;

type Headers = Readonly<Record<string, string>>;

/** Writes request heads for one base URL, without `content-length`. */
export class RequestHeads {
  readonly #prefix: string;
  readonly #host: string;
  /** Cache of the last headers and their text: nearly every request of a provider has the same ones. */
  #headers: Headers = {};
  #text = "";

  constructor({ pathname, host }: URL) {
    this.#prefix = pathname.replace(/\/+$/, "");
    this.#host = host;
  }

  /** The text ends with CRLF. Throws a TypeError for characters that HTTP forbids; it names the header, never its value. */
  write(path: string, headers: Headers, accept: string): string {
    if (!PATH.test(path)) throw new TypeError("the path contains a character that a URL cannot contain");
    if (this.#headers !== headers) {
      this.#text = toLines(headers);
      this.#headers = headers;
    }
    return `POST ${this.#prefix}${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\naccept: ${accept}\r\n${this.#text}`;
  }
}

function toLines(headers: Headers): string {
  let lines = "";
  for (const [name, value] of Object.entries(headers)) {
    if (!NAME.test(name)) throw new TypeError(`a header name contains a forbidden character: ${JSON.stringify(name)}`);
    if (!VALUE.test(value)) throw new TypeError(`the header ${name} contains a forbidden character`);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}
