import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Calls, OpenCall } from "../calls.ts";
import { WRITE_STALL_MS } from "../drain.ts";

/** How long the last words of a call that was ended have to be read. */
const LAST_WORDS_MS = 1_000;

/** The call that an HTTP exchange is: under way until its handler is done and its answer is out. */
export interface ExchangeCall {
  readonly open: OpenCall;
  /** The handler is done: its answer is ended, if there is one. Must be called once. */
  readonly done: () => void;
}

/**
 * Opens the call of an exchange; a caller that closes its connection, now or before, leaves it, and so does one that reads
 * nothing of the end of its answer for `stallMs`.
 */
export function openCall(
  calls: Calls,
  { response, stallMs = WRITE_STALL_MS }: { readonly response: ServerResponse; readonly stallMs?: number },
  deadlineMs: number | undefined,
): ExchangeCall {
  const open = calls.open(deadlineMs);
  let left = 2;
  const partDone = (): void => {
    left -= 1;
    if (left === 0) open.close();
  };
  const closed = (): void => {
    if (!response.writableFinished) open.leave();
    partDone();
  };
  if (response.destroyed) closed();
  else response.once("close", closed);
  return {
    open,
    done: () => {
      partDone();
      // As good as always all of it is out.
      if (left > 0 && response.writableLength > 0) limitUnread(response, open.answering().signal, stallMs);
    },
  };
}

/** Lets what is left of an ended answer wait no longer for its reader than it may: what ends the call ends it, too. */
function limitUnread(response: ServerResponse, signal: AbortSignal, stallMs: number): void {
  const destroy = (): void => void response.destroy();
  if (signal.aborted) {
    const timer = setTimeout(destroy, LAST_WORDS_MS);
    response.once("close", () => clearTimeout(timer));
  } else signal.addEventListener("abort", destroy, { once: true });
  // Node's timer for sockets knows how much the kernel has taken of a write; its server destroys those that are late.
  const limit = (socket: Socket): void => {
    socket.setTimeout(stallMs);
    response.once("finish", () => {
      // Unless it is the time of an idle connection by now, it is that of the next answer's model.
      if (socket.timeout === stallMs) socket.setTimeout(0);
    });
  };
  // Without a socket it waits for the answer before it on its connection.
  if (response.socket === null) response.once("socket", limit);
  else limit(response.socket);
}
