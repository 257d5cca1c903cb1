import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";

/** Where sockets lead. */
export interface Origin {
  /** Only its protocol, host and port. */
  readonly url: URL;
  /** Default: the system's. */
  readonly lookup?: LookupFunction;
}

/** A connection that carries nothing is probed after so long, so that one whose other end has vanished is found out. */
const PROBE_AFTER_MS = 60_000;

/** Makes the sockets to one origin, with TLS when it is `https:`. */
export class Dialer {
  /** When a socket may be written to: with TLS, when the server's certificate was found to be good. */
  readonly readyEvent: "connect" | "secureConnect";
  readonly #to: { readonly host: string; readonly port: number; readonly lookup?: LookupFunction };
  /** What the last handshake left, to shorten the next one. */
  #session: Buffer | undefined;

  constructor({ url, lookup }: Origin) {
    const isTls = url.protocol === "https:";
    this.readyEvent = isTls ? "secureConnect" : "connect";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    this.#to = { host, port: Number(url.port || (isTls ? 443 : 80)), ...(lookup && { lookup }) };
  }

  /** Begins to connect; what arrives goes to `onread`. */
  open(onread: OnReadOpts): Socket {
    const socket = this.readyEvent === "connect" ? connect({ ...this.#to, onread }) : this.#openTls(onread);
    return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS);
  }

  #openTls(onread: OnReadOpts): Socket {
    const { host } = this.#to;
    // Node documents `onread` here as for plain sockets, its types do not know it.
    const options: ConnectionOptions & { readonly onread: OnReadOpts } = {
      ...this.#to,
      onread,
      ALPNProtocols: ["http/1.1"],
      // An address is no name that a server could be asked for.
      ...(isIP(host) === 0 && { servername: host }),
      ...(this.#session && { session: this.#session }),
    };
    const socket = connectTls(options);
    // A session that its server has forgotten may be what made this fail.
    socket.on("session", (session) => (this.#session = session)).on("error", () => (this.#session = undefined));
    return socket;
  }
}
