import type { Readiness } from "../gateway/operations.ts";
import { mergeOverload, type OverloadFacts, sum } from "../gateway/overload.ts";

/** Breaker states from best to worst; the worst of all workers is shown. */
const BREAKER_STATES = ["closed", "half_open", "open"];

/** Body of a worker's `/readyz`: of a gateway or of a front. */
interface Facts extends Readiness {
  readonly active_calls: number;
  readonly rates?: { readonly counted_in: string; readonly alone: boolean };
  readonly ledger?: { readonly waiting: number; readonly away: boolean; readonly unwritable: boolean };
  readonly breakers?: Readonly<Record<string, string>>;
  readonly database?: { readonly up: boolean; readonly listening?: boolean | undefined };
  readonly stored_configuration?: { readonly version: number | undefined; readonly left_out: number };
  readonly core?: string;
  readonly overload?: OverloadFacts;
}

/** Merges the readiness of several processes: sums of counts, and the worst state of each. */
export function mergeReadiness(answers: readonly Readiness[]): Readiness {
  const all = answers as readonly Facts[];
  const [first] = all;
  const load = all.flatMap(({ overload }) => overload ?? []);
  const merged = {
    ready: all.some(({ ready }) => ready),
    active_calls: sum(all.map((one) => one.active_calls)),
    ...(load.length > 0 && { overload: mergeOverload(load) }),
  };
  if (first === undefined) return merged;
  if (first.rates === undefined) return { ...first, ...merged };
  const databases = all.flatMap(({ database }) => database ?? []);
  const ledgers = all.flatMap(({ ledger }) => ledger ?? []);
  const stored = all.flatMap(({ stored_configuration: one }) => one ?? []);
  return {
    ...first,
    ...merged,
    rates: { ...first.rates, alone: all.some(({ rates }) => rates?.alone) },
    ...(databases.length > 0 && {
      database: {
        up: databases.every(({ up }) => up),
        ...(databases[0]!.listening !== undefined && { listening: databases.every(({ listening }) => listening) }),
      },
    }),
    ledger: {
      ...first.ledger,
      waiting: sum(ledgers.map(({ waiting }) => waiting)),
      away: ledgers.some(({ away }) => away),
      unwritable: ledgers.some(({ unwritable }) => unwritable),
    },
    // The lowest version, which all processes have reached.
    ...(stored.length > 0 && {
      stored_configuration: stored.toSorted((one, other) => (one.version ?? -1) - (other.version ?? -1))[0],
    }),
    breakers: worst(all.map(({ breakers = {} }) => breakers)),
  };
}

function worst(each: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const states: Record<string, string> = {};
  for (const [upstream, state] of each.flatMap(Object.entries<string>)) {
    const known = states[upstream];
    if (known === undefined || BREAKER_STATES.indexOf(state) > BREAKER_STATES.indexOf(known)) states[upstream] = state;
  }
  return states;
}
