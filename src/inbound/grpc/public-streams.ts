import type { Metadata } from "@grpc/grpc-js";
import { Failure } from "../../core/failure.ts";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
import { toRefusal } from "./status.ts";

/** What is needed of a call of either kind. */
interface StreamCall {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: "cancelled", listener: () => void): unknown;
  emit(event: "error", error: Error): unknown;
}

/** Clients have one or two; a proxy that watches for several clients has more. */
const PER_CONNECTION = 32;

/**
 * The streams that anybody may open without a key, and keep open: health's Watch and reflection. Each holds some 13 KiB, and
 * HTTP/2 lets one connection have a thousand.
 */
export class PublicStreams {
  readonly #limit = new ConcurrencyLimit(PER_CONNECTION);

  /** Counts a stream until it ends; false when its connection has too many, and the stream was ended for that. */
  open(call: StreamCall): boolean {
    const release = this.#limit.take(call.getPeer());
    if (release === undefined) {
      const most = `At most ${PER_CONNECTION} streams of health and reflection may be open on one connection.`;
      call.emit("error", toRefusal(new Failure("rate_limited", most), call));
      return false;
    }
    // grpc-js says "cancelled" at every end of a call.
    call.on("cancelled", release);
    return true;
  }
}
