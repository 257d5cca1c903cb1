import { join } from "node:path";
import type { DatabaseLocation } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";
import { startProcess } from "../support/processes.ts";

const PROCESSES = 3;
const DEMANDS = 100;

export interface RaceResult {
  /** Admitted demands of all processes. */
  readonly admitted: number;
  /** Spent and held money of the key and of the account at the end. */
  readonly taken: readonly number[];
  readonly exitCodes: readonly (number | null)[];
}

/** The result when the budget is used up exactly: neither exceeded nor refused while available. */
export const EXACT: RaceResult = { admitted: 50, taken: [5000, 5000], exitCodes: [0, 0, 0] };

/** Lets three processes demand six times the budget at once, and settle half of their admitted demands. */
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
