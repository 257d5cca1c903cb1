import type { ServerResponse } from "node:http";
import type { Calls, OpenCall } from "../calls.ts";

/** The call that an HTTP exchange is: under way until its handler is done and its answer is out. */
export interface ExchangeCall {
  readonly open: OpenCall;
  /** The handler is done. Must be called once. */
  readonly done: () => void;
}

/** Opens the call of an exchange; a caller that closes its connection, now or before, leaves it. */
export function openCall(
  calls: Calls,
  { response }: { readonly response: ServerResponse },
  deadlineMs: number | undefined,
): ExchangeCall {
  const open = calls.open(deadlineMs);
  let left = 2;
  const done = (): void => {
    left -= 1;
    if (left === 0) open.close();
  };
  const closed = (): void => {
    if (!response.writableFinished) open.leave();
    done();
  };
  if (response.destroyed) closed();
  else response.once("close", closed);
  return { open, done };
}
