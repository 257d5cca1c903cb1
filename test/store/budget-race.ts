import { join } from "node:path";
import type { DatabaseLocation } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";
import { startProcess } from "../support/processes.ts";

const PROCESSES = 3;
const DEMANDS = 100;

export interface RaceResult {
  /** Total number of admitted demands. */
  readonly admitted: number;
  /** Final spent and held amounts of the key and of the account. */
  readonly taken: readonly number[];
  readonly exitCodes: readonly (number | null)[];
}

/** The expected result: the whole budget is used and not exceeded. */
export const EXACT: RaceResult = { admitted: 50, taken: [5000, 5000], exitCodes: [0, 0, 0] };

/** Three processes simultaneously demand six times the budget, and settle half of their admitted demands. */
export async function raceForBudget(location: DatabaseLocation): Promise<RaceResult> {
  const program = join(import.meta.dirname, "hold-budgets.ts");
  const racers = Array.from({ length: PROCESSES }, () =>
    startProcess(program, JSON.stringify(location), String(DEMANDS)),
  );
  await Promise.all(racers.map((racer) => racer.line()));
  for (const racer of racers) racer.tell("go");
  const admitted = await Promise.all(racers.map(async (racer) => Number(await racer.line())));
  const exitCodes = await Promise.all(racers.map(({ ended }) => ended));

  const store = await openStore(location);
  try {
    const month = new Date().toISOString().slice(0, 7);
    const taken = await store.ledger.spending(["key:race", "account:race"], month);
    return {
      admitted: admitted.reduce((sum, count) => sum + count),
      taken: taken.map(({ spentMicroUsd, heldMicroUsd }) => spentMicroUsd + heldMicroUsd),
      exitCodes,
    };
  } finally {
    await store.close();
  }
}
