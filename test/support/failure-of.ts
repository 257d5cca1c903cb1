import { Failure } from "../../src/core/failure.ts";

/** The Failure that `work` throws. Throws any other error, and one when there is none. */
export function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
  throw new Error("it did not fail");
}
