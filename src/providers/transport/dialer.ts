import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type SecureContext, type TLSSocket } from "node:tls";
import { openTunnel, PROBE_AFTER_MS } from "./tunnel.ts";

/** The route to a provider, if it is not direct. */
export interface Egress {
  /** HTTP proxy that opens a tunnel to the host. Only for `https:`. Default: none. */
  readonly proxy?: URL | undefined;
  /** Address that is connected to in place of the host's; with TLS the certificate is still that of the host. Default: none. */
  readonly address?: string | undefined;
  /** Trusted certificate authorities, and Parley's client certificate. Default: Node's authorities, and no certificate. */
  readonly secureContext?: SecureContext | undefined;
}

/** The remote end of the sockets. */
export interface Origin extends Egress {
  /** Only protocol, host and port are used. */
  readonly url: URL;
  /** Finds the address of the host. */
  readonly lookup: LookupFunction;
  /** Whether a proxy is given the address that `lookup` finds, in place of the host's name. Default: no. */
  readonly proxyGetsAddress?: boolean;
}

/** Opens sockets to one origin, with TLS when it is `https:`. */
export class Dialer {
  /** Event after which a socket may be written to: with TLS, once the server's certificate is verified. */
  readonly readyEvent: "connect" | "secureConnect";
  readonly #protocol: "http/1.1" | "h2";
  readonly #host: string;
  readonly #to: { readonly host: string; readonly port: number; readonly lookup: LookupFunction };
  readonly #proxy: URL | undefined;
  readonly #proxyGetsAddress: boolean;
  readonly #secureContext: SecureContext | undefined;
  /** TLS session of the last handshake, resumed by the next one. */
  #session: Buffer | undefined;

  constructor(
    { url, lookup, proxyGetsAddress = false, proxy, address, secureContext }: Origin,
    protocol: "http/1.1" | "h2" = "http/1.1",
  ) {
    this.#protocol = protocol;
    const isTls = url.protocol === "https:";
    this.readyEvent = isTls ? "secureConnect" : "connect";
    this.#host = url.hostname.replace(/^\[|\]$/g, "");
    this.#to = { host: address ?? this.#host, port: Number(url.port || (isTls ? 443 : 80)), lookup };
    this.#proxy = proxy;
    this.#proxyGetsAddress = proxyGetsAddress;
    this.#secureContext = secureContext;
  }

  /** Starts connecting. Received bytes go to `onread`; without one the socket is read as a stream. */
  open(onread?: OnReadOpts): Socket {
    const socket =
      this.readyEvent === "connect" ? connect({ ...this.#to, ...(onread && { onread }) }) : this.#openTls(onread);
    return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS);
  }

  #openTls(onread: OnReadOpts | undefined): Socket {
    const options: ConnectionOptions = {
      ALPNProtocols: [this.#protocol],
      // SNI takes names, not IP addresses.
      ...(isIP(this.#host) === 0 && { servername: this.#host }),
      ...(this.#session && { session: this.#session }),
      ...(this.#secureContext && { secureContext: this.#secureContext }),
    };
    const socket =
      this.#proxy === undefined ? this.#openDirectly(options, onread) : this.#openInTunnel(options, onread);
    // An expired session may be the cause of the failure.
    socket.on("session", (session) => (this.#session = session)).on("error", () => (this.#session = undefined));
    return socket;
  }

  #openDirectly(options: ConnectionOptions, onread: OnReadOpts | undefined): TLSSocket {
    // Node documents `onread` for TLS sockets too; its types lack it.
    const withReader: ConnectionOptions & { readonly onread?: OnReadOpts } = {
      ...options,
      ...this.#to,
      ...(onread && { onread }),
    };
    return connectTls(withReader);
  }

  #openInTunnel(options: ConnectionOptions, onread: OnReadOpts | undefined): TLSSocket {
    const { host, port, lookup } = this.#to;
    const tunnel = openTunnel(this.#proxy!, { host, port, ...(this.#proxyGetsAddress && { lookup }) });
    const socket = connectTls({ ...options, host: this.#host, socket: tunnel });
    tunnel.on("error", (error) => socket.destroy(error));
    if (onread === undefined) return socket;
    // Node ignores `onread` for a socket over another one.
    return socket.on("data", (bytes: Buffer) => {
      const into = onread.buffer as Buffer;
      for (let start = 0; start < bytes.length; start += into.length) {
        const size = bytes.copy(into, 0, start);
        if (!onread.callback(size, into)) socket.pause();
      }
    });
  }
}
