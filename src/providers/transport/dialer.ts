import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";

/** The remote end of the sockets. */
export interface Origin {
  /** Only protocol, host and port are used. */
  readonly url: URL;
  /** Default: the system's resolver. */
  readonly lookup?: LookupFunction;
}

/** TCP keep-alive delay in ms: detects a peer that disappeared without closing. */
const PROBE_AFTER_MS = 60_000;

/** Opens sockets to one origin, with TLS when it is `https:`. */
export class Dialer {
  /** Event after which a socket may be written to: with TLS, once the server's certificate is verified. */
  readonly readyEvent: "connect" | "secureConnect";
  readonly #to: { readonly host: string; readonly port: number; readonly lookup?: LookupFunction };
  /** TLS session of the last handshake, resumed by the next one. */
  #session: Buffer | undefined;

  constructor({ url, lookup }: Origin) {
    const isTls = url.protocol === "https:";
    this.readyEvent = isTls ? "secureConnect" : "connect";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    this.#to = { host, port: Number(url.port || (isTls ? 443 : 80)), ...(lookup && { lookup }) };
  }

  /** Starts connecting. Received bytes go to `onread`. */
  open(onread: OnReadOpts): Socket {
    const socket = this.readyEvent === "connect" ? connect({ ...this.#to, onread }) : this.#openTls(onread);
    return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS);
  }

  #openTls(onread: OnReadOpts): Socket {
    const { host } = this.#to;
    // Node documents `onread` for TLS sockets too; its types lack it.
    const options: ConnectionOptions & { readonly onread: OnReadOpts } = {
      ...this.#to,
      onread,
      ALPNProtocols: ["http/1.1"],
      // SNI takes names, not IP addresses.
      ...(isIP(host) === 0 && { servername: host }),
      ...(this.#session && { session: this.#session }),
    };
    const socket = connectTls(options);
    // An expired session may be the cause of the failure.
    socket.on("session", (session) => (this.#session = session)).on("error", () => (this.#session = undefined));
    return socket;
  }
}
