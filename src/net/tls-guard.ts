import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { OF_CLIENT, TlsAllowance } from "./tls-allowance.ts";

/** Interval of the checks of all connections. */
const LOOK_MS = 250;

/** `ms`: duration of a block. `everyMs`: interval in which the client may still open one connection, because others may share its address. */
const BLOCK = { ms: 60_000, everyMs: 10_000 } as const;

/** Time for which a client is not blocked after one of its callers was authenticated. */
const KNOWN_MS = 60 * 60_000;

/** Limit of remembered clients, and of clients with authenticated callers. */
const MAX_CLIENTS = 10_000;

/**
 * Limits of an ordinary certificate chain. OpenSSL verifies all links even when the authority is unknown, and Node cannot prevent it.
 * A link with an RSA key of a long exponent takes 6 ms instead of 0.1.
 */
const ORDINARY_CHAIN = { certificates: 4, bytes: 8 * 1024, exponent: 0xffff_ffffn } as const;
/** Ordinary key types and curves. Others take longer for the same bytes. */
const ORDINARY_KEYS: ReadonlySet<string | undefined> = new Set(
  "rsa rsa-pss ed25519 ed448 prime256v1 secp384r1 secp521r1".split(" "),
);

/**
 * Bytes of handshakes that do not finish. `free`: not counted for each handshake (a ClientHello with a post-quantum key and a ticket,
 * an alert). `most`: limit of the sum of a client's further bytes in `BLOCK.ms`; as certificates they take 0.3 s of the event loop at
 * most. `answer`: certificates come after a server's answer of at least this size (a HelloRetryRequest has 99 bytes); bytes before
 * it take no time.
 */
const UNFINISHED = { free: 4 * 1024, most: 64 * 1024, answer: 128 } as const;

/** Why a connection is closed, and its client blocked. */
export type TlsAbuse = "COSTLY_CERTIFICATES" | "UNFINISHED_HANDSHAKES" | "RECORDS_WITHOUT_DATA";

export interface TlsGuardOptions {
  /** The client for whom an address counts; undefined for an address of many clients, which is not blocked. */
  readonly clientOf: (address: string) => string | undefined;
  /** Whether clients are asked for certificates. Otherwise unfinished handshakes take no time. */
  readonly asksForCertificates: boolean;
  /** Called when a connection is closed for its abuse of TLS, at most once a minute for a client that is blocked. */
  readonly closed: (reason: TlsAbuse, address: string) => void;
  /** Monotonic time in milliseconds. Default: the system's. */
  readonly nowMs?: () => number;
}

interface Connection {
  /** The TCP socket, with encrypted bytes. */
  readonly socket: Socket;
  readonly address: string;
  readonly client: string | undefined;
  /** Bytes of its unfinished handshake that were charged to its client. */
  charged: number;
  /** The TLS socket, with the client's data, and its allowance; undefined before the handshake is finished. */
  open: { readonly socket: TLSSocket; readonly allowance: TlsAllowance } | undefined;
}

interface Client {
  /** Bytes of unfinished handshakes since `sinceMs`. */
  bytes: number;
  sinceMs: number;
  blockedUntilMs: number;
  /** Time from which it may open one connection although it is blocked. */
  nextMs: number;
}

/**
 * Closes connections whose handshake or TLS records take much time of the event loop, which the guards of HTTP and gRPC cannot see.
 * Blocks their clients for `BLOCK.ms`. A client with authenticated callers is not blocked, because an attacker may share its address.
 */
export class TlsGuard {
  readonly #options: TlsGuardOptions;
  readonly #nowMs: () => number;
  readonly #connections = new Map<Socket, Connection>();
  /** Connections by their TLS sockets. */
  readonly #open = new WeakMap<Socket, Connection>();
  /** Oldest first. */
  readonly #clients = new Map<string, Client>();
  /** Time of the last authentication of a caller, by client. */
  readonly #authenticatedMs = new Map<string, number>();
  #lookedMs: number;
  readonly #looking: NodeJS.Timeout;

  constructor(options: TlsGuardOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#lookedMs = this.#nowMs();
    this.#looking = setInterval(() => this.look(), LOOK_MS).unref();
  }

  /** Guards a connection from before its handshake until it closes. False: its client is blocked, and it was closed. */
  add(socket: Socket): boolean {
    const address = socket.remoteAddress ?? "";
    const client = this.#options.clientOf(address);
    if (client !== undefined && !this.#mayConnect(client)) {
      socket.destroy();
      return false;
    }
    const connection: Connection = { socket, address, client, charged: 0, open: undefined };
    this.#connections.set(socket, connection);
    socket.once("close", () => {
      if (connection.open === undefined) this.#charge(connection);
      this.#connections.delete(socket);
    });
    return true;
  }

  /** Call it when the handshake of a connection is finished. */
  finish(socket: Socket, tls: TLSSocket): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const client = connection.client === undefined ? undefined : this.#clients.get(connection.client);
    if (client !== undefined) client.bytes = Math.max(0, client.bytes - connection.charged);
    const allowance = new TlsAllowance(OF_CLIENT, { encrypted: socket.bytesRead, data: tls.bytesRead });
    connection.open = { socket: tls, allowance };
    this.#open.set(tls, connection);
  }

  /** Call it when a caller on a connection with a finished handshake was authenticated. */
  authenticated(tls: Socket): void {
    const client = this.#open.get(tls)?.client;
    if (client !== undefined) remember(this.#authenticatedMs, client, this.#nowMs());
  }

  /** Call it when the certificate of a connection's client is not accepted. */
  refuse(socket: Socket, certificate: X509Certificate): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined && isCostly(certificate)) this.#end(connection, "COSTLY_CERTIFICATES");
  }

  /** Ends the checks. */
  close(): void {
    clearInterval(this.#looking);
  }

  /** Checks all connections. */
  look(): void {
    const nowMs = this.#nowMs();
    const elapsedMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    for (const connection of this.#connections.values()) {
      if (connection.open === undefined) this.#charge(connection);
      else if (isFlood(connection, elapsedMs)) this.#end(connection, "RECORDS_WITHOUT_DATA");
    }
  }

  /** Whether a caller of a client was authenticated in the last KNOWN_MS. */
  #isKnown(client: string): boolean {
    return this.#nowMs() < (this.#authenticatedMs.get(client) ?? -Infinity) + KNOWN_MS;
  }

  /** Whether a client may open a connection now. */
  #mayConnect(name: string): boolean {
    const nowMs = this.#nowMs();
    const client = this.#clients.get(name);
    if (client === undefined || nowMs >= client.blockedUntilMs || this.#isKnown(name)) return true;
    if (nowMs < client.nextMs) return false;
    client.nextMs = nowMs + BLOCK.everyMs;
    return true;
  }

  /** Charges the bytes of an unfinished handshake that may be certificates to its client. */
  #charge(connection: Connection): void {
    const { socket, client: name } = connection;
    if (name === undefined || !this.#options.asksForCertificates || socket.bytesWritten < UNFINISHED.answer) return;
    const more = socket.bytesRead - UNFINISHED.free - connection.charged;
    if (more <= 0) return;
    connection.charged += more;
    const client = this.#clientOf(name);
    client.bytes += more;
    if (client.bytes > UNFINISHED.most) this.#end(connection, "UNFINISHED_HANDSHAKES");
  }

  #clientOf(name: string): Client {
    const nowMs = this.#nowMs();
    const known = this.#clients.get(name);
    if (known !== undefined && nowMs < Math.max(known.sinceMs + BLOCK.ms, known.blockedUntilMs)) return known;
    const client = { bytes: 0, sinceMs: nowMs, blockedUntilMs: -Infinity, nextMs: -Infinity };
    remember(this.#clients, name, client);
    return client;
  }

  /** Closes a connection. Unless its client is known, blocks it and closes its unfinished handshakes. */
  #end({ socket, open, address, client }: Connection, reason: TlsAbuse): void {
    // Node crashes (segmentation fault) when the TCP socket is destroyed in the turn that finishes the handshake.
    (open?.socket ?? socket).destroy();
    if (client !== undefined && !this.#isKnown(client)) {
      const nowMs = this.#nowMs();
      const blocked = this.#clientOf(client);
      if (nowMs < blocked.blockedUntilMs) return;
      blocked.blockedUntilMs = nowMs + BLOCK.ms;
      blocked.nextMs = nowMs + BLOCK.everyMs;
      for (const other of this.#connections.values())
        if (other.client === client && other.open === undefined) other.socket.destroy();
    }
    this.#options.closed(reason, address);
  }
}

/** Sets an entry as the newest, and evicts the oldest beyond MAX_CLIENTS. */
function remember<T>(clients: Map<string, T>, name: string, value: T): void {
  clients.delete(name);
  if (clients.size >= MAX_CLIENTS) clients.delete(clients.keys().next().value!);
  clients.set(name, value);
}

/** Whether a connection exceeds the allowance for bytes without data since the last check. */
function isFlood({ socket, open }: Connection, elapsedMs: number): boolean {
  if (open === undefined) return false;
  return open.allowance.isExceeded({ encrypted: socket.bytesRead, data: open.socket.bytesRead }, elapsedMs);
}

/** Whether the verification of these certificates may have taken milliseconds. */
function isCostly(leaf: X509Certificate): boolean {
  let [certificates, bytes] = [0, 0];
  for (let one: X509Certificate | undefined = leaf; one !== undefined; one = one.issuerCertificate) {
    certificates += 1;
    bytes += one.raw.length;
    if (certificates > ORDINARY_CHAIN.certificates || bytes > ORDINARY_CHAIN.bytes || !hasOrdinaryKey(one)) return true;
  }
  return false;
}

function hasOrdinaryKey(certificate: X509Certificate): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails: { namedCurve, publicExponent = 0n } = {} } = certificate.publicKey;
    const kind = asymmetricKeyType === "ec" ? namedCurve : asymmetricKeyType;
    return ORDINARY_KEYS.has(kind) && publicExponent <= ORDINARY_CHAIN.exponent;
  } catch {
    // OpenSSL cannot read it.
    return false;
  }
}
