import type { Metadata } from "@grpc/grpc-js";
import { Failure } from "../../core/failure.ts";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
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
 * connection can have a thousand.
 */
export class PublicStreams {
  readonly #ofConnections = new ConcurrencyLimit(PER_CONNECTION);
  readonly #most: number;
  #open = 0;

  /** `most`: limit of streams in the process. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a stream until it ends. Beyond a limit it ends the stream and returns false. */
  open(call: StreamCall): boolean {
    const release = this.#open < this.#most ? this.#ofConnections.take(call.getPeer()) : undefined;
    if (release === undefined) {
      const most = `At most ${PER_CONNECTION} streams of this service may be open on one connection, ${this.#most} in all.`;
      call.emit("error", toRefusal(new Failure("rate_limited", most), call));
      return false;
    }
    this.#open += 1;
    // grpc-js emits "cancelled" at every end of a call.
    call.on("cancelled", () => {
      this.#open -= 1;
      release();
    });
    return true;
  }
}
