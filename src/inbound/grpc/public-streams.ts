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

/** Limit of public streams per connection. Clients have one or two; a proxy for several clients has more. */
const PER_CONNECTION = 32;

/**
 * Limits the streams that stay open without a key: health's Watch and reflection. Each holds some 13 KiB, and a connection can
 * have a thousand.
 */
export class PublicStreams {
  readonly #limit = new ConcurrencyLimit(PER_CONNECTION);

  /** Counts a stream until it ends. Beyond the limit it ends the stream and returns false. */
  open(call: StreamCall): boolean {
    const release = this.#limit.take(call.getPeer());
    if (release === undefined) {
      const most = `At most ${PER_CONNECTION} streams of health and reflection may be open on one connection.`;
      call.emit("error", toRefusal(new Failure("rate_limited", most), call));
      return false;
    }
    // grpc-js emits "cancelled" at every end of a call.
    call.on("cancelled", release);
    return true;
  }
}
