import { Failure } from "../../src/core/failure.ts";

type ErrorClass<E> = abstract new (...args: never[]) => E;

/** The error of this class that `work` throws; undefined when it throws none. Throws errors of other classes. */
export function findError<E>(type: ErrorClass<E>, work: () => unknown): E | undefined {
  try {
    work();
  } catch (reason) {
    if (reason instanceof type) return reason;
    throw reason;
  }
  return undefined;
}

/** As `findError`, for work that has to throw. */
export function errorOf<E>(type: ErrorClass<E>, work: () => unknown): E {
  const error = findError(type, work);
  if (error === undefined) throw new Error(`no ${type.name} was thrown`);
  return error;
}

/** The Failure that `work` throws; undefined when it throws none. */
export const findFailure = (work: () => unknown): Failure | undefined => findError(Failure, work);

/** The Failure that `work` has to throw. */
export const failureOf = (work: () => unknown): Failure => errorOf(Failure, work);

/** Makes functions that return the error of this class with which a call has to reject. */
export function rejectionsOf<E>(type: ErrorClass<E>): (call: PromiseLike<unknown>) => Promise<E> {
  return async (call) => {
    const reason: unknown = await call.then(
      () => new Error("the call succeeded"),
      (error: unknown) => error,
    );
    if (reason instanceof type) return reason;
    throw reason;
  };
}
