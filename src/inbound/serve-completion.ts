import type { Slot } from "../admission/slot.ts";
import { Failure } from "../core/failure.ts";
import type { Trace } from "../core/trace.ts";
import type { OpenCall } from "./calls.ts";
import type { EdgeServices, KeyPrincipal, Refusal } from "./services.ts";

/** A completion call of any inbound protocol. */
export interface InboundCompletion<R> extends Pick<Refusal, "entrance" | "requestId" | "target"> {
  readonly open: OpenCall;
  /** Default: the call is not traced. */
  readonly trace?: Trace | undefined;
  /** Throws `unauthenticated`, or `overloaded` when keys cannot be looked up. */
  readonly authenticate: () => KeyPrincipal | Promise<KeyPrincipal>;
  /** Declared length of the body; undefined when not declared. */
  readonly bytes: number | undefined;
  /** Whether the whole body is in memory before a slot is requested. Default: false. */
  readonly isRead?: boolean;
  /** Reads the body and returns a synchronous parser; its time is charged to the key. */
  readonly read: (slot: Slot) => Promise<() => R> | (() => R);
  /**
   * Completes a request that continues a kept answer; the returned function is synchronous work of the key. Default: none
   * does.
   */
  readonly complete?: ((request: R) => Promise<() => R> | undefined) | undefined;
  /** Runs the completion and writes its answer. */
  readonly run: (request: R, principal: KeyPrincipal) => Promise<void>;
  /** Writes a failure. */
  readonly fail: (failure: Failure) => void;
  /**
   * Resolves when the output of `run` or `fail` is sent, or the caller has left; undefined when that has happened. The slot
   * is held until then. Default: it is sent when they return.
   */
  readonly sent?: () => Promise<void> | undefined;
}

/**
 * The order of every completion call: authenticate, take a slot, read the body, run, release when the answer is sent. A failure
 * before the completion started is recorded as a refusal. Never throws.
 */
export async function serveCompletion<R>(services: EdgeServices, inbound: InboundCompletion<R>): Promise<void> {
  const { open, entrance, requestId, target, trace } = inbound;
  let principal: KeyPrincipal | undefined;
  let slot: Slot | undefined;
  let hasBegun = false;
  try {
    const authenticated = inbound.authenticate();
    principal = authenticated instanceof Promise ? await authenticated : authenticated;
    open.authenticated(principal);
    const entered = services.admission.enter(principal, open, inbound);
    slot = entered instanceof Promise ? await entered : entered;
    open.entered(slot);
    if (trace !== undefined) trace.enteredMs = services.clock.monotonic();
    // After the slot: a key whose requests are always refused has to wait for it.
    services.requireRequestRate(principal);
    const request = await readRequest(inbound, slot);
    // The body may have taken a minute, in which limits and permissions can change.
    principal = open.principal ?? principal;
    hasBegun = true;
    await inbound.run(request, principal);
  } catch (reason) {
    const failure = Failure.from(reason);
    if (!hasBegun) {
      if (principal !== undefined && failure.code === "rate_limited")
        services.admission.refusedByLimits(principal, inbound.bytes);
      services.refused({ entrance, requestId, target, failure, ...(principal !== undefined && { principal }) });
    }
    inbound.fail(failure);
  } finally {
    if (slot !== undefined) {
      const sending = inbound.sent?.();
      if (sending !== undefined) await sending;
      slot.end();
    }
  }
}

/**
 * Reads a request, and parses it when its key may work. Throws `rate_limited` when the key stays in debt.
 * A function of its own because `serveCompletion` is suspended until the answer is sent: its locals live as long, and the
 * garbage collector would copy each body and its parsed JSON.
 */
export async function readRequest<R>(
  { open: { signal }, read, complete }: Pick<InboundCompletion<R>, "open" | "read" | "complete">,
  slot: Slot,
): Promise<R> {
  const reading = read(slot);
  const parse = reading instanceof Promise ? await reading : reading;
  let request = await slot.inTurn(() => slot.parse(parse), signal);
  const completing = complete?.(request);
  if (completing !== undefined) {
    const join = await completing;
    request = await slot.inTurn(() => slot.work(join), signal);
  }
  slot.arrived();
  return request;
}
