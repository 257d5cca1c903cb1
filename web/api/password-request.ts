import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { needsPassword } from "./failure.ts";

interface Waiting {
  readonly done: () => void;
  readonly dismissed: () => void;
  readonly answered: Promise<void>;
}

let waiting: Waiting | undefined;
const listeners = new Set<() => void>();

/** Calls that wait until the password was given again; at most one dialog asks for all of them. */
export const passwordRequest = {
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  },
  isOpen: (): boolean => waiting !== undefined,
  /** The password was right: the calls are made again. */
  succeed: (): void => close((request) => request.done()),
  /** The password was not given: the calls fail as cancelled. */
  dismiss: (): void => close((request) => request.dismissed()),
};

/** Makes a call that needs a fresh password once more after it was asked for. */
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
  const dismissed = (): void => reject(new ConnectError("the password was not given", Code.Canceled));
  waiting = { answered: promise, done: resolve, dismissed };
  tell();
  return waiting;
}

function close(answer: (request: Waiting) => void): void {
  const request = waiting;
  waiting = undefined;
  tell();
  if (request !== undefined) answer(request);
}

function tell(): void {
  for (const listener of listeners) listener();
}
