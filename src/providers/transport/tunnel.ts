import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { lookupHost } from "../../net/host-lookup.ts";

/** A proxy that did not open a tunnel; `status` is undefined for an answer that is not HTTP. */
export class ProxyError extends Error {
  readonly code = "ERR_PROXY_REFUSED";
  readonly status: number | undefined;

  constructor(status: number | undefined) {
    super(status === undefined ? "the proxy's answer is not HTTP" : `the proxy answered ${status}`);
    this.status = status;
  }
}

/** TCP keep-alive delay in ms: detects a peer that disappeared without closing. */
export const PROBE_AFTER_MS = 60_000;

/** Longest head of a proxy's answer, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024;

const END_OF_HEAD = "\r\n\r\n";

/**
 * Connects to a host through an HTTP proxy, by CONNECT (RFC 9110, 9.3.6). Bytes that are written before the tunnel is open wait. Fails
 * with a ProxyError when the proxy refuses, and with the error of `lookup`. `proxy`: `http:` or `https:`, with user and password if needed.
 */
export function openTunnel(proxy: URL, target: TunnelTarget): Duplex {
  const writeHead = ({ host, port }: Pick<TunnelTarget, "host" | "port">): string => {
    const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
    return `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${authorizationOf(proxy)}\r\n`;
  };
  return new Tunnel(connectTo(proxy), proxy.protocol === "https:" ? "secureConnect" : "connect", { target, writeHead });
}

/** The far end of a tunnel. */
interface TunnelTarget {
  /** A name, or an IP address. */
  readonly host: string;
  readonly port: number;
  /** Finds the address of a name, which is sent to the proxy. Default: the name is sent. */
  readonly lookup?: LookupFunction;
}

interface TunnelParts {
  readonly target: TunnelTarget;
  readonly writeHead: (found: Pick<TunnelTarget, "host" | "port">) => string;
}

function connectTo({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[|\]$/g, "");
  const lookup = lookupHost;
  if (protocol !== "https:") return connect({ host, port: Number(port || 80), lookup });
  return connectTls({ host, port: Number(port || 443), lookup, servername: host, ALPNProtocols: ["http/1.1"] });
}

function authorizationOf({ username, password }: URL): string {
  if (username === "") return "";
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `proxy-authorization: Basic ${Buffer.from(credentials).toString("base64")}\r\n`;
}

class Tunnel extends Duplex {
  readonly #socket: Socket;
  #isOpen = false;
  /** Whether the far end has closed. Bytes that it has sent are still read. */
  #hasEnded = false;
  #head = Buffer.alloc(0);
  /** The write that waits for the tunnel. A stream has one write at a time. */
  #waiting: (() => void) | undefined;

  constructor(socket: Socket, readyEvent: string, { target, writeHead }: TunnelParts) {
    super();
    this.#socket = socket;
    socket
      .setNoDelay(true)
      .setKeepAlive(true, PROBE_AFTER_MS)
      .once(readyEvent, () => this.#find(target, (host) => socket.write(writeHead({ ...target, host }))))
      .on("data", (bytes: Buffer) => this.#onData(bytes))
      .on("end", () => this.#onEnd())
      .on("error", (error) => this.destroy(error))
      .on("close", () => this.#hasEnded || this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    const write = (): void => void this.#socket.write(bytes, done);
    if (this.#isOpen) write();
    else this.#waiting = write;
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #find({ host, lookup }: TunnelTarget, found: (host: string) => void): void {
    if (lookup === undefined || isIP(host) !== 0) return found(host);
    lookup(host, { all: true }, (error, addresses) => {
      if (this.destroyed) return;
      if (error !== null) return void this.destroy(error);
      found(typeof addresses === "string" ? addresses : addresses[0]!.address);
    });
  }

  #onEnd(): void {
    if (!this.#isOpen) return void this.destroy(new ProxyError(undefined));
    this.#hasEnded = true;
    this.push(null);
  }

  #onData(bytes: Buffer): void {
    if (!this.#isOpen) this.#readHead(bytes);
    else if (!this.push(bytes)) this.#socket.pause();
  }

  #readHead(bytes: Buffer): void {
    this.#head = Buffer.concat([this.#head, bytes]);
    const end = this.#head.indexOf(END_OF_HEAD);
    if (end < 0) {
      if (this.#head.length > MAX_HEAD_BYTES) this.destroy(new ProxyError(undefined));
      return;
    }
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(this.#head.toString("latin1", 0, end)) ?? [];
    // The provider does not speak first: bytes after the head are not its own.
    const isAlone = end + END_OF_HEAD.length === this.#head.length;
    if (!status?.startsWith("2") || !isAlone)
      return void this.destroy(new ProxyError(status === undefined ? undefined : Number(status)));
    this.#isOpen = true;
    this.#waiting?.();
    this.#waiting = undefined;
  }
}
