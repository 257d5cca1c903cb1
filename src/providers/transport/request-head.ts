/** What a header's name and value may consist of (RFC 9110, 5.1 and 5.5). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const PATH = /^[\x21-\x7e]+$/;

type Headers = Readonly<Record<string, string>>;

/** Writes the heads of the requests to one base URL: all but the body's length. */
export class RequestHeads {
  readonly #prefix: string;
  readonly #host: string;
  /** A provider sends the same headers with nearly every request: those of the last one, and their text. */
  #headers: Headers = {};
  #text = "";

  constructor({ pathname, host }: URL) {
    this.#prefix = pathname.replace(/\/+$/, "");
    this.#host = host;
  }

  /** Ends with a line's end. Throws a TypeError for what HTTP has no place for, naming it but not its value. */
  write(path: string, headers: Headers, accept: string): string {
    if (!PATH.test(path)) throw new TypeError("the path has a character that no address has");
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
    if (!NAME.test(name))
      throw new TypeError(`a header's name has a character that no name has: ${JSON.stringify(name)}`);
    if (!VALUE.test(value)) throw new TypeError(`the header ${name} has a character that no header has`);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}
