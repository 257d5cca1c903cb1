import { type ChaosOptions, drawFault } from "./chaos.ts";
import { parseFault, type Fault } from "./faults.ts";

/** A fault that the simulator's options ask for. */
export interface ConfiguredFault {
  /** The grammar is in `faults.ts`. */
  readonly fault: string;
  /** Only requests for this model; without it, all requests. */
  readonly model?: string;
}

/** Where a request may name a fault. */
export interface FaultSources {
  readonly header: string | undefined;
  readonly model: string;
  readonly directive: string | undefined;
}

/** Selects the fault of each request and counts faults limited by `times`. */
export interface FaultBook {
  /** The fault to commit, if one is asked for and has not been used up. Throws `SyntaxError` for one it cannot read. */
  take(sources: FaultSources): Fault | undefined;
}

/** Counted texts that are remembered; the oldest is forgotten first, and would then count from the start. */
const MAX_COUNTED = 1000;

/**
 * Throws `SyntaxError` when a configured fault cannot be read. With `chaos`, a request for which nobody has asked for one
 * meets the fault that is drawn for its place in the order of all.
 */
export function openFaultBook(configured: readonly ConfiguredFault[], chaos?: ChaosOptions): FaultBook {
  const standing = configured.map(({ fault, model }) => ({ fault: parseFault(fault), model }));
  const taken = new Map<string, number>();
  let requests = 0;

  const isSpent = (fault: Fault): boolean => {
    if (fault.times === Infinity) return false;
    const count = (taken.get(fault.text) ?? 0) + 1;
    if (!taken.has(fault.text) && taken.size >= MAX_COUNTED) taken.delete(taken.keys().next().value ?? "");
    taken.set(fault.text, count);
    return count > fault.times;
  };

  return {
    take({ header, model, directive }) {
      requests += 1;
      const drawn = chaos && drawFault(chaos, requests);
      const candidates = [
        ...(header === undefined ? [] : [parseFault(header)]),
        ...standing.filter((entry) => entry.model === undefined || entry.model === model).map((entry) => entry.fault),
        ...(directive === undefined ? [] : [parseFault(directive)]),
        ...(drawn === undefined ? [] : [parseFault(drawn)]),
      ];
      return candidates.find((fault) => !isSpent(fault));
    },
  };
}
