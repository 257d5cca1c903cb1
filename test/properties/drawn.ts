import fc from "fast-check";

/** Values that several properties are checked with. */
export interface Drawn<T> {
  /** Checks a property of each value. Throws as `fc.assert` does, with a small value for which it fails. */
  check(holds: (value: T) => void): void;
}

/** Draws values on first use and keeps them: to draw a conversation takes longer than to check a property of it. */
export function drawOnce<T>(values: fc.Arbitrary<T>, numRuns: number): Drawn<T> {
  const parameters = { numRuns, seed: Math.floor(Math.random() * 2 ** 31) };
  let drawn: readonly T[] | undefined;
  return {
    check(holds) {
      drawn ??= fc.sample(values, parameters);
      try {
        for (const value of drawn) holds(value);
      } catch (error) {
        // Draws the same values again, and looks for a smaller one.
        fc.assert(fc.property(values, holds), parameters);
        throw error;
      }
    },
  };
}
