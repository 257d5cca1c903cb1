import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { Readable } from "node:stream";
import type { Slot } from "../../admission/slot.ts";
import { Failure } from "../../core/failure.ts";
import { releaseMemory } from "../../core/release-memory.ts";
import type { Principal } from "../../core/principal.ts";
import { arrivesTooSlowly, isMetered, MAX_QUESTION_BYTES, takesSlot } from "../arrival-limits.ts";
import { MAX_DEADLINE_MS, requestIdFrom } from "../calls.ts";
import { WRITE_STALL_MS } from "../drain.ts";
import type { ClientCertificate } from "../../net/tls-entrance.ts";
import type { GuardedStream, StreamFacts } from "../http2/guarded-connection.ts";
import { UnreadAnswer } from "../http2/unread-answer.ts";
import type { Credentials, EdgeServices } from "../services.ts";
import { MessageFrames } from "./message-frames.ts";
import { toCompletionError } from "./status.ts";

/** Time limit of an arriving request, as over HTTP/1.1. */
const ARRIVAL_MS = 60_000;
/**
 * Bytes of a request that are read before its key is authenticated and charged. Further ones come only from the stream's window,
 * 64 KiB, until that is done.
 */
const UNCHARGED_BYTES = 16 * 1024;
/** Messages up to this size are passed on in pieces. */
const PIECES_BYTES = 256 * 1024;
const NOTHING = Buffer.alloc(0);
/** Time in which the rest of a refused request is read and dropped, so that the caller can read the refusal. */
const LINGER_MS = 1000;
/** Duration below which a reset call counts as a quick reset. */
const QUICK_MS = 250;
const ENCODING = "grpc-encoding";
const TIMEOUT = "grpc-timeout";
/** Header in which the handler finds the ID of the connection of a client with a certificate. */
export const CONNECTION_HEADER = "parley-connection";
/** Reflection streams have no end of the request to wait for. */
const REFLECTION = "/grpc.reflection.";
/** Limit of questions of a reflection stream. Tools ask once for each file. */
const MAX_QUESTIONS = 256;
const WATCH = "/grpc.health.v1.Health/Watch";
/** Time after which a reflection stream without another request ends: tools ask and leave. */
const REFLECTION_SILENCE_MS = 10_000;
/** Limit of a call's metadata, names and values: HPACK repeats a header of 4 KiB in one byte. */
const MAX_METADATA_BYTES = 8 * 1024;

/**
 * Removes binary metadata, which no service reads: of one header with 60,000 commas the library makes as many buffers. Returns
 * the size of the rest; undefined, and removes all of it, beyond MAX_METADATA_BYTES.
 */
function limitMetadata(headers: IncomingHttpHeaders): number | undefined {
  let bytes = 0;
  for (const name in headers) {
    if (name.endsWith("-bin")) delete headers[name];
    else bytes += name.length + String(headers[name]).length;
  }
  if (bytes <= MAX_METADATA_BYTES) return bytes;
  for (const name in headers) delete headers[name];
  return undefined;
}

/**
 * Refuses compressed messages: the library inflates them, up to a thousandfold, before authentication. It answers
 * `UNIMPLEMENTED` for an unknown encoding, so the header is replaced by one. Uncompressed messages pass.
 */
function refuseCompressed(headers: IncomingHttpHeaders): void {
  const encoding = headers[ENCODING];
  if (encoding !== undefined && encoding !== "identity")
    headers[ENCODING] = `${String(encoding)} (send it uncompressed)`;
}

/** Units of the deadlines that may be later than MAX_DEADLINE_MS with eight digits, in milliseconds. */
const TIMEOUT_UNITS = { H: 3_600_000, M: 60_000, S: 1_000 } as const;

/** Limits the caller's deadline: the library's 32 bits of milliseconds turn one after 24 days into one that has passed. */
function limitTimeout(headers: IncomingHttpHeaders): void {
  const [, digits, unit] = /^(\d{1,8})([HMS])$/.exec(String(headers[TIMEOUT])) ?? [];
  if (Number(digits) * TIMEOUT_UNITS[unit as keyof typeof TIMEOUT_UNITS] > MAX_DEADLINE_MS)
    headers[TIMEOUT] = `${MAX_DEADLINE_MS / 1_000}S`;
}

/**
 * Makes the stream's `write` without effect after its end. When the deadline passes, the library ends the call and then still writes
 * earlier messages of the handler. Node treats that as an error and sends no status, so the caller would wait forever.
 */
function writeUnlessEnded(stream: ServerHttp2Stream): void {
  const { write } = stream as unknown as { readonly write: (this: void, ...args: readonly unknown[]) => boolean };
  stream.write = (...args: readonly unknown[]) => !stream.writableEnded && write(...args);
}

/**
 * Makes the stream's `respond` without effect once it is closed. The library refuses unknown methods and other content types without a
 * look at the stream, which a reset may have closed before the library got it: Node would throw in a listener, and end the process.
 */
function respondUnlessClosed(stream: ServerHttp2Stream): void {
  const respond = stream.respond.bind(stream);
  stream.respond = (...args) => {
    if (!stream.closed && !stream.destroyed) respond(...args);
  };
}

/** Services of the guard. */
export type GuardServices = Pick<EdgeServices, "admission" | "authenticate" | "clock" | "refused">;

/** Options of a guard beside its stream. */
export interface StreamGuardOptions extends Omit<StreamFacts, "socket"> {
  readonly services: GuardServices;
  /** Limit of a request message. */
  readonly maxReceiveBytes: number;
}

const silence = (): Failure => new Failure("deadline_exceeded", "There was no further request on this stream.");

/** Guards one stream: its request must arrive, and its answer must be read. */
export class StreamGuard implements GuardedStream {
  readonly stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #certificate: ClientCertificate | undefined;
  readonly #services: GuardServices;
  readonly #sinceMs: number;
  readonly #took: (bytes: number) => void;
  readonly #tookHeaders: (bytes: number) => void;
  /** Size of the headers until they are counted. */
  #headerBytes: number;
  readonly #frames: MessageFrames;
  #bytes = 0;
  /**
   * What the library has not got: parts of a message that is not complete, from a caller that is not charged; null for the end. The
   * library would keep them until the stream closes.
   */
  #held: (Buffer | null)[] = [];
  /** A large message while it arrives: the library would keep its pieces until the call ends. */
  #message: Buffer | undefined;
  #messageBytes = 0;
  /** Whether the caller is being charged, and the stream is not read. */
  #isCharging = false;
  /** Time for which it was not read. */
  #unreadMs = 0;
  /** Held while the request arrives. */
  #slot: Slot | undefined;
  #arrived: boolean;
  readonly #answer: UnreadAnswer;
  readonly #isReflection: boolean;
  /** Time at which the last question of a reflection stream was read. */
  #heardMs: number;
  readonly #waits: StreamFacts["waits"];
  #hasKey = false;
  readonly #authenticated: () => void;
  /** Whether the rest of the request is read and dropped. */
  #isDropped = false;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    {
      services,
      waits,
      maxReceiveBytes,
      took,
      tookHeaders,
      certificate,
      authenticated,
      connectionId,
    }: StreamGuardOptions,
  ) {
    this.stream = stream;
    this.#certificate = certificate;
    this.#authenticated = authenticated;
    this.#headers = headers;
    refuseCompressed(headers);
    limitTimeout(headers);
    this.#services = services;
    this.#sinceMs = this.#heardMs = services.clock.monotonic();
    this.#isReflection = this.#arrived = this.#target.startsWith(REFLECTION);
    this.#waits = waits;
    this.#took = took;
    this.#tookHeaders = tookHeaders;
    this.#frames = new MessageFrames({
      messages: this.#isReflection ? MAX_QUESTIONS : 1,
      bytes: isMetered(this.#target) ? maxReceiveBytes : Math.min(maxReceiveBytes, MAX_QUESTION_BYTES),
    });
    // Reflection and Watch have limits of their own: PublicStreams.
    if (!this.#isReflection) waits(true);
    const headerBytes = limitMetadata(headers);
    this.#headerBytes = headerBytes ?? 0;
    if (headerBytes === undefined) this.#evict();
    // In place of what the caller may have sent under that name.
    delete headers[CONNECTION_HEADER];
    if (certificate !== undefined) headers[CONNECTION_HEADER] = connectionId;
    // Each comes once; `once` would wrap its listener.
    stream.on("end", () => {
      // The library has a copy.
      if (this.#message !== undefined) releaseMemory([this.#message]);
      void this.#arrivedWhole();
    });
    stream.on("finish", () => stream.closed || waits(true));
    if (this.#isReflection) stream.on("data", () => (this.#heardMs = services.clock.monotonic()));
    // Not a listener: the library would get the same bytes, and those that arrive while it does not read would cost nothing.
    stream.push = (piece: Buffer | null) => (piece === null ? this.#ended() : this.#receive(piece));
    // Admission counts the others until they are read.
    const counted = takesSlot(this.#target) ? 0 : 1;
    this.#answer = new UnreadAnswer(stream, {
      stallMs: WRITE_STALL_MS,
      ended: (bytes) => waits(true, bytes * counted),
    });
    writeUnlessEnded(stream);
    respondUnlessClosed(stream);
  }

  #push(piece: Buffer | null): boolean {
    return Readable.prototype.push.call(this.stream, piece);
  }

  /**
   * Passes a piece of the body on, holds or drops it. Returns whether there is room for more. The library stops reading after each
   * piece with a message, but decodes all that are in it, so it gets the messages one by one.
   */
  #receive(piece: Buffer): boolean {
    this.#took(piece.length);
    if (this.#isDropped) return true;
    const before = this.#bytes;
    this.#bytes += piece.length;
    let ends: readonly number[];
    try {
      ends = this.#frames.endsIn(piece);
    } catch (reason) {
      void this.#refuseMessage(Failure.from(reason));
      return true;
    }
    if (before <= UNCHARGED_BYTES && this.#bytes > UNCHARGED_BYTES) void this.#charge();
    else if (this.#slot !== undefined) this.#received(this.#slot);
    if (this.#isDropped) return true;
    // A copy of a small part: it would keep all bytes that were read from the socket with it.
    const own = piece.length * 4 < piece.buffer.byteLength ? Buffer.from(piece) : piece;
    let from = 0;
    for (const end of [...ends, piece.length]) {
      if (end > from) this.#held.push(own.subarray(from, end));
      from = end;
    }
    if (this.#isCharging) return false;
    return ends.length > 0 || this.#slot !== undefined ? this.#passOn() : true;
  }

  #ended(): boolean {
    // Node also reports the end of a request that its caller has reset.
    if (this.stream.closed) this.#held = [];
    this.#held.push(null);
    return (!this.#isCharging || this.stream.closed) && this.#passOn();
  }

  /** Passes held pieces on, those of a large message as one. Returns whether there is room for more. */
  #passOn(): boolean {
    let hasRoom = true;
    for (let next = this.#held.shift(); next !== undefined; next = this.#held.shift()) {
      hasRoom = this.#push(next === null ? null : this.#joined(next));
    }
    return hasRoom;
  }

  /** The piece, or the whole message that ends with it; nothing for another piece of a large message, after which Node reads on. */
  #joined(piece: Buffer): Buffer {
    const { declaredBytes = 0 } = this.#frames;
    // Without a slot the request has ended early.
    if (this.#isReflection || this.#slot === undefined || declaredBytes <= PIECES_BYTES) return piece;
    this.#message ??= Buffer.allocUnsafeSlow(declaredBytes);
    this.#messageBytes += piece.copy(this.#message, this.#messageBytes);
    return this.#messageBytes < declaredBytes ? NOTHING : this.#message;
  }

  /** Releases the part of a message that has arrived. */
  #dropMessage(): void {
    if (this.#message === undefined || this.#messageBytes >= this.#message.length) return;
    releaseMemory([this.#message]);
    this.#message = undefined;
  }

  reset(): void {
    this.#dropRest();
    this.#evict();
  }

  closed(): void {
    this.#held = [];
    this.#dropMessage();
    this.#waits(false);
    this.#release();
  }

  /** The call ceases to be pending when its key is valid. Its handler looks the key up, too, and refuses the call. */
  async #arrivedWhole(): Promise<void> {
    if (this.#target === WATCH) return this.#waits(false);
    const credentials = this.#credentials;
    if (credentials === undefined) return;
    try {
      await this.#services.authenticate(credentials);
    } catch {
      return;
    }
    this.#hasKey = true;
    this.#countHeaders();
    this.#authenticated();
    if (this.isInFlight) this.#waits(false);
  }

  /** Counts the headers, once the key is known to be valid. */
  #countHeaders(): void {
    this.#tookHeaders(this.#headerBytes);
    this.#headerBytes = 0;
  }

  get isServed(): boolean {
    return this.#hasKey && !this.stream.writableEnded;
  }

  get isInFlight(): boolean {
    return this.isServed && this.stream.readableEnded;
  }

  get hasKey(): boolean {
    return this.#hasKey;
  }

  get isQuickReset(): boolean {
    // Also a reset without an error, before the answer was complete.
    if (this.stream.rstCode === constants.NGHTTP2_NO_ERROR && !this.stream.aborted) return false;
    return this.#services.clock.monotonic() - this.#sinceMs < QUICK_MS;
  }

  look(nowMs: number): void {
    if (!this.#arrived) this.#lookAtRequest(nowMs - this.#sinceMs - this.#unreadMs);
    else if (this.#isReflection && nowMs - this.#heardMs > REFLECTION_SILENCE_MS) this.#refuse(silence());
    this.#answer.look(nowMs);
  }

  #lookAtRequest(elapsedMs: number): void {
    if (this.#isCharging) return;
    if (!arrivesTooSlowly(this.#bytes, elapsedMs, this.#frames.declaredBytes) && elapsedMs <= ARRIVAL_MS) return;
    if (this.stream.state.remoteClose === 1) this.#arrived = true;
    else this.#refuse(new Failure("deadline_exceeded", "The request did not arrive in time."));
  }

  /** Undefined for a call without any. */
  get #credentials(): Credentials | undefined {
    const { authorization } = this.#headers;
    if (authorization === undefined && this.#certificate === undefined) return undefined;
    return { authorization, certificate: this.#certificate };
  }

  get #target(): string {
    return this.#headers[":path"]?.toString() ?? "";
  }

  /** Authenticates the caller and takes a slot for the rest of the request, which is not read before. */
  async #charge(): Promise<void> {
    const { clock, admission } = this.#services;
    const sinceMs = clock.monotonic();
    this.#isCharging = true;
    let refusal: unknown;
    try {
      const { authorization } = this.#headers;
      const principal = await this.#services.authenticate({ authorization, certificate: this.#certificate });
      this.#countHeaders();
      const isWhole = this.#held.at(-1) === null;
      if (!this.#isDropped && !isWhole && !this.stream.destroyed) {
        this.#slot = admission.receive(principal, this.#frames.declaredBytes);
        this.#hasKey = true;
        this.#waits(false);
        // Released before the library calls the handler, which takes a slot of its own.
        this.stream.prependOnceListener("end", this.#release);
      }
    } catch (reason) {
      refusal = reason;
    }
    this.#isCharging = false;
    this.#unreadMs += clock.monotonic() - sinceMs;
    if (this.#isDropped || this.stream.destroyed) return;
    if (refusal !== undefined) return this.#refuseAtItsEnd(refusal);
    if (this.#slot !== undefined) this.#received(this.#slot);
    this.#passOn();
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

  /** Ends the stream at once. gRPC clients read the code as RESOURCE_EXHAUSTED. */
  #evict(): void {
    const { stream } = this;
    // Otherwise the library's next answer throws, which ends the process.
    stream.respond = stream.sendTrailers = () => undefined;
    stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Refuses a message, which counts for the rate of a valid key. */
  async #refuseMessage(failure: Failure): Promise<void> {
    this.#arrived = true;
    this.#dropRest();
    const credentials = this.#credentials;
    const principal = credentials && (await this.#services.authenticate(credentials).catch(() => undefined));
    this.#refuse(failure, principal);
  }

  /** Drops the rest of the request and refuses it at its end: most clients read nothing before they have sent all. */
  #refuseAtItsEnd(reason: unknown): void {
    const failure = Failure.from(reason);
    this.#dropRest();
    this.stream.once("end", () => this.#refuse(failure));
  }

  #refuse(failure: Failure, principal?: Principal): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    const requestId = requestIdFrom(this.#headers["x-request-id"]?.toString());
    const target = this.#target.slice(0, 256);
    this.#services.refused({
      entrance: "grpc",
      requestId,
      target,
      failure,
      ...(principal !== undefined && { principal }),
    });
    const { code, details, metadata } = toCompletionError(failure, { requestId, limits: undefined });
    const status = {
      ...metadata.toHttp2Headers(),
      "grpc-status": String(code),
      "grpc-message": encodeURI(details),
    };
    if (stream.headersSent) this.#endWith(status);
    else {
      const { respond } = Object.getPrototypeOf(stream) as Pick<ServerHttp2Stream, "respond">;
      respond.call(
        stream,
        { ":status": 200, "content-type": "application/grpc+proto", ...status },
        { endStream: true },
      );
    }
    this.#linger();
  }

  /** Ends a stream whose headers are sent: reflection answers before the end of the request. */
  #endWith(status: OutgoingHttpHeaders): void {
    const { stream } = this;
    stream.removeAllListeners("wantTrailers").once("wantTrailers", () => {
      stream.sendTrailers(status);
      // The library does not know that the stream has ended.
      stream.sendTrailers = () => undefined;
    });
    stream.end();
  }

  /** Drops the rest of the request, without telling the library of its end. */
  #dropRest(): void {
    this.#isDropped = true;
    this.#release();
    const hasEnded = this.#held.at(-1) === null;
    this.#held = [];
    this.#dropMessage();
    this.stream.removeAllListeners("data").removeAllListeners("end").resume();
    // Node reads on after a push.
    this.#push(hasEnded ? null : NOTHING);
  }

  /** Closes the stream after LINGER_MS: a reset at once would overtake the answer. */
  #linger(): void {
    const { stream } = this;
    this.#arrived = true;
    this.#dropRest();
    // The library would respond once more when the caller's deadline passes, which throws.
    stream.respond = () => undefined;
    const cancel = this.#services.clock.after(LINGER_MS, () => stream.close(constants.NGHTTP2_NO_ERROR));
    stream.once("close", cancel);
  }
}
