import type { Metadata } from "@grpc/grpc-js";
import { Failure } from "../../core/failure.ts";
import { toRefusal } from "./status.ts";

/** Common part of the call types. */
interface StreamCall {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: "cancelled", listener: () => void): unknown;
  emit(event: "error", error: Error): unknown;
}

/** Limit of streams per connection. Clients have one or two; a proxy for several clients has more. */
const PER_CONNECTION = 32;

export interface PublicStreamsOptions {
  /** Limit of streams in the process. */
  readonly most: number;
  /** Client of an address, whose connections share a limit; undefined for a proxy, each of whose connections is a client. */
  readonly clientOf: (address: string) => string | undefined;
}

/**
 * Limits the streams of a service that stay open without a key: health's Watch, reflection. Each holds 13 KiB and more, and a
 * connection can have a hundred. When the process has as many as it may, a client with fewer than another one takes its place,
 * so that one client cannot keep them.
 */
export class PublicStreams {
  readonly #options: PublicStreamsOptions;
  readonly #perConnection = new Map<string, number>();
  /** Streams with their connections by client, oldest first. */
  readonly #ofClients = new Map<string, Map<StreamCall, string>>();
  #open = 0;

  constructor(options: PublicStreamsOptions) {
    this.#options = options;
  }

  /** Counts a stream until it ends. Beyond a limit it ends the stream and returns false. */
  open(call: StreamCall): boolean {
    const connection = call.getPeer();
    const client = this.#options.clientOf(addressIn(connection)) ?? connection;
    const onConnection = this.#perConnection.get(connection) ?? 0;
    const own = this.#ofClients.get(client)?.size ?? 0;
    if (onConnection >= PER_CONNECTION || (this.#open >= this.#options.most && !this.#makeRoom(own))) {
      this.#refuse(call);
      return false;
    }
    this.#perConnection.set(connection, onConnection + 1);
    this.#ofClients.set(client, (this.#ofClients.get(client) ?? new Map<StreamCall, string>()).set(call, connection));
    this.#open += 1;
    // grpc-js emits "cancelled" at every end of a call.
    call.on("cancelled", () => this.#remove(client, call));
    return true;
  }

  /** Ends the oldest stream of the client with the most, if that leaves it with no fewer than the `own` of the new one. */
  #makeRoom(own: number): boolean {
    let crowded: readonly [client: string, streams: ReadonlyMap<StreamCall, string>] | undefined;
    for (const entry of this.#ofClients) if (entry[1].size > (crowded?.[1].size ?? own + 1)) crowded = entry;
    if (crowded === undefined) return false;
    const [client, streams] = crowded;
    const [oldest] = streams.keys();
    this.#remove(client, oldest!);
    this.#refuse(oldest!);
    return true;
  }

  #remove(client: string, call: StreamCall): void {
    const streams = this.#ofClients.get(client);
    const connection = streams?.get(call);
    if (streams === undefined || connection === undefined) return;
    streams.delete(call);
    if (streams.size === 0) this.#ofClients.delete(client);
    this.#open -= 1;
    const left = this.#perConnection.get(connection)! - 1;
    if (left === 0) this.#perConnection.delete(connection);
    else this.#perConnection.set(connection, left);
  }

  #refuse(call: StreamCall): void {
    const most = `At most ${PER_CONNECTION} streams of this service may be open on one connection, ${this.#options.most} in all.`;
    call.emit("error", toRefusal(new Failure("rate_limited", most), call));
  }
}

/** The address of a peer as grpc-js writes it: `127.0.0.1:4711`, `::1:4711`, `[::1]:4711`. */
function addressIn(peer: string): string {
  return peer.slice(0, peer.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
}
