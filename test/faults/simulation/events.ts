import type { Bank } from "./bank.ts";
import { MAX_BANK_DELAY_MS } from "./bank.ts";
import type { Chance } from "./chance.ts";
import { subjectOf } from "../../../src/limits/attributed.ts";
import { drawWeather, NAMES, redrawLimits, UPSTREAMS } from "./draw.ts";
import { type KeyDirectory, MAX_LOOKUP_MS } from "./key-directory.ts";
import type { Weather } from "./scripts.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import type { Watch } from "./watch.ts";

/** The possible events of a world. */
export interface Fates {
  readonly clock: FakeClock;
  readonly chance: Chance;
  readonly watch: Watch;
  readonly bank: Bank;
  readonly keys: KeyDirectory;
  readonly weather: Map<string, Weather>;
  reload(): void;
  restart(kind: Restart): void;
}

/**
 * How a process ends: after its calls, with or without an overlapping successor; with its calls cut off after a short
 * drain; or killed.
 */
export type Restart = "rolling" | "in turn" | "cut short" | "killed";

/** Triggers one event now. */
export function triggerEvent(fates: Fates): void {
  const { chance, watch, bank, keys, weather } = fates;
  const what = chance.weighted({
    weather: 45,
    bank: 10,
    keys: 8,
    revoke: 2,
    limits: 10,
    own: 10,
    reload: 12,
    restart: 5,
  });
  watch.count(`events: ${what}`);
  switch (what) {
    case "weather": {
      const upstream = chance.pick(UPSTREAMS);
      const next = drawWeather(chance);
      weather.set(upstream, next);
      return watch.note(`${upstream} is ${next}`);
    }
    case "bank":
      return upset(bank, fates);
    case "keys":
      keys.setHealth({ isAway: chance.percent(40), delayMs: chance.pick([0, 50, 450, MAX_LOOKUP_MS]) });
      watch.note("key look-ups are slow or fail");
      if (chance.percent(25)) later(fates, MAX_LOOKUP_MS, () => keys.revokeOne());
      return later(fates, 4_000, () => keys.setHealth({ isAway: false, delayMs: 0 }));
    case "revoke":
      return keys.revokeOne();
    case "limits": {
      const key = chance.pick(keys.keys);
      return keys.changeLimits(key, redrawLimits(chance, key.grant.record.limits));
    }
    case "own":
      return giveOwnBudget(fates);
    case "reload":
      return fates.reload();
    case "restart":
      return fates.restart(chance.weighted({ rolling: 4, "in turn": 2, "cut short": 2, killed: 1 }));
  }
}

/** Gives an end user or a session of a key a budget of its own, or that of the key again. */
function giveOwnBudget({ chance, watch, bank, keys }: Fates): void {
  const { keyFamilyId, attributionLimits = {} } = chance.pick(keys.keys).grant.record;
  const { endUserBudgetMicroUsd, endUserBudgetPeriod = "day", sessionBudgetMicroUsd } = attributionLimits;
  const isSession = chance.percent(50);
  const given = isSession ? sessionBudgetMicroUsd : endUserBudgetMicroUsd;
  if (given === undefined) return;
  const name = chance.pick(NAMES);
  const own = chance.pick([undefined, 0, Math.ceil(given / 2), 2 * given, 10 * given]);
  bank.setOwn(
    subjectOf(isSession ? "session" : "end_user", keyFamilyId, name),
    isSession ? "session" : endUserBudgetPeriod,
    own,
  );
  watch.note(`${name} of ${keyFamilyId} has ${own} in place of ${given}${isSession ? " for a session" : ""}`);
}

function upset(bank: Bank, fates: Fates): void {
  const { chance, watch } = fates;
  bank.state = chance.weighted({ well: 3, away: 4, deaf: 2 });
  bank.delayMs = chance.pick([0, 5, 60, MAX_BANK_DELAY_MS]);
  watch.count(`database: ${bank.state}`);
  watch.note(`the database is ${bank.state}, latency ${bank.delayMs} ms`);
  later(fates, 5_000, () => {
    bank.state = "well";
    bank.delayMs = chance.pick([0, 0, 5]);
    watch.note("the database is well");
  });
}

function later({ clock, chance }: Fates, mostMs: number, callback: () => void): void {
  clock.after(chance.between(1, mostMs), callback);
}
