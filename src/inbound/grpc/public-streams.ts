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

/**
 * Limits the streams of a service that stay open without a key: health's Watch, reflection. Each holds 13 KiB and more, and a
 * connection can have a thousand. When the process has as many as it may, a connection with fewer than another one takes its
 * place, so that one connection cannot keep them. As many connections as the limit, with one stream each, can.
 */
export class PublicStreams {
  /** Streams by connection, oldest first. */
  readonly #ofConnections = new Map<string, Set<StreamCall>>();
  readonly #most: number;
  #open = 0;

  /** `most`: limit of streams in the process. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a stream until it ends. Beyond a limit it ends the stream and returns false. */
  open(call: StreamCall): boolean {
    const connection = call.getPeer();
    const own = this.#ofConnections.get(connection) ?? new Set();
    if (own.size >= PER_CONNECTION || (this.#open >= this.#most && !this.#makeRoom(own.size))) {
      this.#refuse(call);
      return false;
    }
    this.#ofConnections.set(connection, own.add(call));
    this.#open += 1;
    // grpc-js emits "cancelled" at every end of a call.
    call.on("cancelled", () => this.#remove(connection, call));
    return true;
  }

  /** Ends the oldest stream of the connection with the most, if that leaves it with no fewer than the `own` of the new one. */
  #makeRoom(own: number): boolean {
    let crowded: readonly [connection: string, streams: ReadonlySet<StreamCall>] | undefined;
    for (const entry of this.#ofConnections) if (entry[1].size > (crowded?.[1].size ?? own + 1)) crowded = entry;
    if (crowded === undefined) return false;
    const [connection, streams] = crowded;
    const [oldest] = streams;
    this.#remove(connection, oldest!);
    this.#refuse(oldest!);
    return true;
  }

  #remove(connection: string, call: StreamCall): void {
    const streams = this.#ofConnections.get(connection);
    if (streams?.delete(call) !== true) return;
    this.#open -= 1;
    if (streams.size === 0) this.#ofConnections.delete(connection);
  }

  #refuse(call: StreamCall): void {
    const most = `At most ${PER_CONNECTION} streams of this service may be open on one connection, ${this.#most} in all.`;
    call.emit("error", toRefusal(new Failure("rate_limited", most), call));
  }
}
