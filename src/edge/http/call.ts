import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Calls, OpenCall } from "../calls.ts";
import { patienceMs } from "../drain.ts";

/** The call that an HTTP exchange is: under way until its handler is done and its answer is out. */
export interface ExchangeCall {
  readonly open: OpenCall;
  /** The handler is done: its answer is ended, if there is one. Must be called once. */
  readonly done: () => void;
}

export interface ExchangeCallOptions {
  readonly clock: Clock;
  /** What is left of the caller's deadline; undefined without one. */
  readonly deadlineMs: number | undefined;
}

/**
 * Opens the call of an exchange; a caller that closes its connection, now or before, leaves it, and so does one that does
 * not read the end of its answer.
 */
export function openCall(
  calls: Calls,
  { response }: { readonly response: ServerResponse },
  { clock, deadlineMs }: ExchangeCallOptions,
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
      if (left > 0) destroyUnread(response, clock);
    },
  };
}

/** Destroys an answer that is ended when its caller reads nothing of what is left of it. */
function destroyUnread(response: ServerResponse, clock: Clock): void {
  let bytes = response.writableLength;
  // As good as always all of it is out.
  if (bytes === 0) return;
  const look = (): void => {
    // Without a socket it is not its turn: the answer before it on the connection is still being written.
    if (response.socket !== null && response.writableLength === bytes) return void response.destroy();
    bytes = response.writableLength;
    cancel = clock.after(patienceMs(bytes), look);
  };
  let cancel = clock.after(patienceMs(bytes), look);
  response.once("close", () => cancel());
}
