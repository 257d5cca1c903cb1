import type { Migration } from "./migration.ts";
import { accounts } from "./migrations/accounts.ts";
import { browsers } from "./migrations/browsers.ts";
import { keys } from "./migrations/keys.ts";
import { ledger } from "./migrations/ledger.ts";
import { options } from "./migrations/options.ts";
import { rates } from "./migrations/rates.ts";
import { limitedKeys } from "./migrations/limited-keys.ts";
import { requests } from "./migrations/requests.ts";
import { sessions } from "./migrations/sessions.ts";
import { segmentNumbers } from "./migrations/segment-numbers.ts";
import { segments } from "./migrations/segments.ts";
import { usage } from "./migrations/usage.ts";

/** In order; a database's version is the number of steps that it has taken. */
export const MIGRATIONS: readonly Migration[] = [
  keys,
  accounts,
  ledger,
  rates,
  requests,
  usage,
  sessions,
  segments,
  segmentNumbers,
  browsers,
  limitedKeys,
  options,
];
