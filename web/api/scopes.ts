import { useQuery } from "@tanstack/react-query";
import { REQUEST_OUTCOMES } from "../format/outcomes.ts";
import { ownerChoices, useOwners } from "./owners.ts";
import { useAccount, useMay } from "./session.ts";
import { settingsQuery } from "./settings.ts";

type Choices = readonly (readonly [value: string, name: string])[];

/** Filter choices for requests and usage, with display names. */
export interface Scopes {
  readonly models: Choices;
  readonly outcomes: Choices;
  /** Undefined if the signed-in account sees only itself: no administrator, and in no team. */
  readonly accounts:
    | {
        /** Label of the choice of no single account. */
        readonly all: string;
        readonly choices: Choices;
      }
    | undefined;
  /** Whether all accounts are shown while none is chosen. */
  readonly isAll: boolean;
}

const OUTCOMES: Choices = [["failed", "All errors"], ...REQUEST_OUTCOMES];

/** Returns the filter choices loaded so far. */
export function useScopes(): Scopes {
  const account = useAccount();
  const isAll = useMay("requests.read");
  const owners = useOwners();
  const models = useQuery(settingsQuery).data?.models ?? [];
  const choices = ownerChoices(owners, account.id);
  return {
    models: models.map(({ id }) => [id, id]),
    outcomes: OUTCOMES,
    accounts: isAll
      ? { all: "All accounts", choices }
      : owners.length > 1
        ? { all: "Your account", choices: choices.slice(1) }
        : undefined,
    isAll,
  };
}
