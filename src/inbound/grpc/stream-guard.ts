import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Slot } from "../../admission/slot.ts";
import { Failure } from "../../core/failure.ts";
import { arrivesTooSlowly } from "../arrival-limits.ts";
import { requestIdFrom } from "../calls.ts";
import { WRITE_STALL_MS } from "../drain.ts";
import type { EdgeServices } from "../services.ts";
import { toServiceError } from "./status.ts";

/** How long a request may take to arrive in whole: as long as over HTTP/1.1. */
const ARRIVAL_MS = 60_000;
/** What is read of a request before its key is charged with its bytes. Handlers ask for the key when the request is complete. */
const UNCHARGED_BYTES = 16 * 1024;
/** A message on the wire: a byte of flags and four of length come before it. */
const PREFIX_BYTES = 5;
/** How long the rest of a refused request is read and dropped, so that the caller can read why. */
const LINGER_MS = 1000;
/** A call that its caller breaks off so soon was not meant. */
const QUICK_MS = 250;
const ENCODING = "grpc-encoding";
/** Its streams have no end of the request to wait for. */
const REFLECTION = "/grpc.reflection.";

/**
 * A compressed message is a thousand times as large as what was charged for it, and the library inflates it before anybody
 * has asked for the key. It answers `UNIMPLEMENTED` where it does not know an encoding, so it is told one that it does not
 * know. Uncompressed messages pass.
 */
function refuseCompressed(headers: IncomingHttpHeaders): void {
  const encoding = headers[ENCODING];
  if (encoding !== undefined && encoding !== "identity")
    headers[ENCODING] = `${String(encoding)} (send it uncompressed)`;
}

/**
 * The stream's own `write`, and nothing once it is ended. When the caller's deadline passes, the library ends the call, and
 * then still writes what its handler has said before. For Node that is an error, after which it sends no status: the caller
 * would wait for ever.
 */
function writeUnlessEnded(this: ServerHttp2Stream, ...args: unknown[]): boolean {
  if (this.writableEnded) return false;
  const { write } = Object.getPrototypeOf(this) as { readonly write: (...args: unknown[]) => boolean };
  return write.apply(this, args);
}

/** What a stream is guarded with. */
export type GuardServices = Pick<EdgeServices, "admission" | "authenticate" | "clock" | "refused">;

/** One stream of a connection: its request has to arrive, and its answer has to be read. */
export class StreamGuard {
  readonly stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #services: GuardServices;
  readonly #sinceMs: number;
  #bytes = 0;
  /** The length of the only message of the request, with its prefix; undefined as long as it is not known. */
  #declaredBytes: number | undefined;
  /** Held while the request arrives. */
  #slot: Slot | undefined;
  #arrived: boolean;
  #isWaiting = false;
  #giveUp: (() => void) | undefined;
  readonly #take: (piece: Buffer) => void;

  /** `took` is told of every piece of the request's body. */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { services, took }: { readonly services: GuardServices; readonly took: (bytes: number) => void },
  ) {
    this.stream = stream;
    this.#headers = headers;
    refuseCompressed(headers);
    this.#services = services;
    this.#sinceMs = services.clock.monotonic();
    this.#arrived = this.#target.startsWith(REFLECTION);
    this.#take = (piece) => {
      const { length } = piece;
      took(length);
      const before = this.#bytes;
      this.#bytes += length;
      if (before === 0 && length >= PREFIX_BYTES && !this.#arrived)
        this.#declaredBytes = PREFIX_BYTES + piece.readUInt32BE(1);
      if (before <= UNCHARGED_BYTES && this.#bytes > UNCHARGED_BYTES) void this.#charge();
      else if (this.#slot !== undefined) this.#received(this.#slot);
    };
    stream.on("data", this.#take);
    stream.write = writeUnlessEnded;
  }

  /** To be called when the stream is closed. */
  closed(): void {
    this.#release();
  }

  /** Whether the stream, now closed, was reset as soon as it had begun. */
  get isQuickReset(): boolean {
    if (this.stream.rstCode === constants.NGHTTP2_NO_ERROR) return false;
    return this.#services.clock.monotonic() - this.#sinceMs < QUICK_MS;
  }

  look(nowMs: number): void {
    if (!this.#arrived) this.#lookAtRequest(nowMs - this.#sinceMs);
    this.#lookAtAnswer();
  }

  #lookAtRequest(elapsedMs: number): void {
    if (!arrivesTooSlowly(this.#bytes, elapsedMs, this.#declaredBytes) && elapsedMs <= ARRIVAL_MS) return;
    if (this.stream.state.remoteClose === 1) this.#arrived = true;
    else this.#refuse(new Failure("deadline_exceeded", "The request did not arrive in time."));
  }

  /** What waits for a caller that reads nothing, also as the whole of an answer that nobody else waits for. */
  #lookAtAnswer(): void {
    const isWaiting = this.stream.writableLength > 0;
    if (isWaiting === this.#isWaiting) return;
    this.#isWaiting = isWaiting;
    // Node starts this anew with every piece that leaves.
    this.#giveUp ??= () => this.stream.close(constants.NGHTTP2_CANCEL);
    this.stream.setTimeout(isWaiting ? WRITE_STALL_MS : 0, this.#giveUp);
  }

  get #target(): string {
    return this.#headers[":path"]?.toString() ?? "";
  }

  /** Takes a slot for the rest of the request. */
  async #charge(): Promise<void> {
    try {
      const principal = await this.#services.authenticate(this.#headers.authorization);
      if (this.stream.readableEnded || this.stream.destroyed) return;
      this.#slot = this.#services.admission.receive(principal, this.#declaredBytes);
      // Before the library calls the handler, which takes a slot of its own.
      this.stream.prependOnceListener("end", this.#release);
      this.#received(this.#slot);
    } catch (reason) {
      this.#refuseAtItsEnd(reason);
    }
  }

  #received(slot: Slot): void {
    try {
      slot.received(this.#bytes);
    } catch (reason) {
      this.#refuseAtItsEnd(reason);
    }
  }

  readonly #release = (): void => {
    this.#slot?.end();
    this.#slot = undefined;
  };

  /** What still comes is dropped. Most clients hear nothing before they have said all. */
  #refuseAtItsEnd(reason: unknown): void {
    const failure = Failure.from(reason);
    this.#keepNothing();
    this.stream.once("end", () => this.#refuse(failure));
  }

  #refuse(failure: Failure): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    const requestId = requestIdFrom(this.#headers["x-request-id"]?.toString());
    this.#services.refused({ entrance: "grpc", requestId, target: this.#target.slice(0, 256), failure });
    const { code, details, metadata } = toServiceError(failure, { requestId, limits: undefined });
    const status = {
      ...metadata.toHttp2Headers(),
      "grpc-status": String(code),
      "grpc-message": encodeURIComponent(details),
    };
    if (stream.headersSent) this.#endWith(status);
    else stream.respond({ ":status": 200, "content-type": "application/grpc+proto", ...status }, { endStream: true });
    this.#linger();
  }

  /** Reflection answers each message before the last one has come. */
  #endWith(status: OutgoingHttpHeaders): void {
    const { stream } = this;
    stream.removeAllListeners("wantTrailers").once("wantTrailers", () => {
      stream.sendTrailers(status);
      // Nor does the library know of this end.
      stream.sendTrailers = () => undefined;
    });
    stream.end();
  }

  /** What still comes is read and dropped, and nobody is told of its end. */
  #keepNothing(): void {
    const { stream } = this;
    this.#release();
    stream.removeAllListeners("data").removeAllListeners("end").on("data", this.#take).resume();
  }

  /** Resetting the stream at once would overtake the answer. */
  #linger(): void {
    const { stream } = this;
    this.#arrived = true;
    this.#keepNothing();
    // The library does not know, and would answer once more when the caller's deadline passes: that throws.
    stream.respond = () => undefined;
    const cancel = this.#services.clock.after(LINGER_MS, () => stream.close(constants.NGHTTP2_NO_ERROR));
    stream.once("close", cancel);
  }
}
