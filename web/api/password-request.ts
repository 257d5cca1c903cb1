import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { needsPassword } from "./failure.ts";

interface Waiting {
  readonly done: () => void;
  readonly dismissed: () => void;
  readonly answered: Promise<void>;
}

let waiting: Waiting | undefined;
const listeners = new Set<() => void>();

/** State of the password confirmation. One dialog serves all calls that wait for it. */
export const passwordRequest = {
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  },
  isOpen: (): boolean => waiting !== undefined,
  /** The password was confirmed: the calls are repeated. */
  succeed: (): void => close((request) => request.done()),
  /** The dialog was dismissed: the calls fail as cancelled. */
  dismiss: (): void => close((request) => request.dismissed()),
};

/** Repeats a call after password confirmation if it requires a recent one. */
export const askForPassword: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (reason) {
    if (!(reason instanceof ConnectError) || !needsPassword(reason)) throw reason;
    await (waiting ?? open()).answered;
    return next(request);
  }
};

function open(): Waiting {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const dismissed = (): void => reject(new ConnectError("the password was not confirmed", Code.Canceled));
  waiting = { answered: promise, done: resolve, dismissed };
  notify();
  return waiting;
}

function close(answer: (request: Waiting) => void): void {
  const request = waiting;
  waiting = undefined;
  notify();
  if (request !== undefined) answer(request);
}

function notify(): void {
  for (const listener of listeners) listener();
}
