import { connect, type Socket } from "node:net";

/** One answer, read by hand. */
export interface RawResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A bare connection to a server that speaks HTTP/1.1. */
export class RawConnection {
  readonly #socket: Socket;
  /** What has arrived and was not yet taken by `response`. */
  #arrived: Buffer = Buffer.alloc(0);
  #closed = false;
  #wake: () => void = () => undefined;

  /** `to`: a port of this machine, or a connection, such as one with TLS. */
  constructor(to: number | Socket) {
    this.#socket = typeof to === "number" ? connect(to, "127.0.0.1") : to;
    const wake = (): void => this.#wake();
    this.#socket.on("data", (piece: Buffer) => {
      this.#arrived = Buffer.concat([this.#arrived, piece]);
      wake();
    });
    this.#socket.once("close", () => {
      this.#closed = true;
      wake();
    });
    // A reset is a way of closing: "close" follows.
    this.#socket.on("error", wake);
  }

  /** Whether the server has closed the connection. */
  get closed(): boolean {
    return this.#closed;
  }

  write(bytes: string | Buffer): this {
    this.#socket.write(bytes);
    return this;
  }

  /** The next answer. Rejects when the connection ends before it is complete. */
  async response(): Promise<RawResponse> {
    for (;;) {
      const taken = takeResponse(this.#arrived);
      if (taken !== undefined) {
        this.#arrived = taken.rest;
        return taken.response;
      }
      if (this.#closed) throw new Error(`the connection ended after: ${this.#arrived.toString("latin1", 0, 200)}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Says that nothing more comes, and gives the status (0 without one) and text of all that arrives until the end. */
  async finish(): Promise<{ status: number; text: string }> {
    this.#socket.end();
    while (!this.#closed) await new Promise<void>((resolve) => (this.#wake = resolve));
    const text = this.#arrived.toString("latin1");
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The first answer among these bytes, with its body out of its chunks, and what follows it; undefined while it is not complete. */
export function takeResponse(bytes: Buffer): { response: RawResponse; rest: Buffer } | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const status = Number(first.split(" ")[1]);
  if (headers["transfer-encoding"] === "chunked") {
    const taken = takeChunks(bytes, headEnd + 4);
    return taken && { response: { status, headers, body: taken.body }, rest: bytes.subarray(taken.end) };
  }
  const end = headEnd + 4 + Number(headers["content-length"] ?? 0);
  if (bytes.length < end) return undefined;
  const body = bytes.toString("utf8", headEnd + 4, end);
  return { response: { status, headers, body }, rest: bytes.subarray(end) };
}

/** The body that begins at `from`, and where it ends; undefined while its last chunk is missing. */
function takeChunks(bytes: Buffer, from: number): { body: string; end: number } | undefined {
  const pieces: Buffer[] = [];
  for (let at = from; ;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (bytes.length < end) return undefined;
    if (size === 0) return { body: Buffer.concat(pieces).toString(), end };
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = end;
  }
}

/** A request as bytes; `content-length` is filled in for a body unless the headers say how it ends. */
export function rawRequest(line: string, headers: readonly string[], body: string | Buffer = ""): Buffer {
  const bytes = Buffer.from(body);
  const framed = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header)) || bytes.length === 0;
  const all = framed ? headers : [...headers, `content-length: ${bytes.length}`];
  return Buffer.concat([
    Buffer.from(`${line} HTTP/1.1\r\n${all.map((header) => `${header}\r\n`).join("")}\r\n`),
    bytes,
  ]);
}
