import { useQuery } from "@tanstack/react-query";
import { KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { NO_CALLER, NO_VALID_KEY } from "../format/callers.ts";
import { REQUEST_OUTCOMES } from "../format/outcomes.ts";
import { keysQuery } from "./keys.ts";
import { ownerChoices, useOwners } from "./owners.ts";
import { useAccount, useMay } from "./session.ts";
import { settingsQuery } from "./settings.ts";

type Choices = readonly (readonly [value: string, name: string])[];

/** Filter choices for requests and usage, with display names. */
export interface Scopes {
  readonly models: Choices;
  readonly keys: Choices;
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

/** Returns the filter choices loaded so far; only keys of this account if `accountId` is not empty. */
export function useScopes(accountId: string): Scopes {
  const account = useAccount();
  const isAll = useMay("requests.read");
  const keys = useQuery(keysQuery).data ?? [];
  const owners = useOwners();
  const models = useQuery(settingsQuery).data?.models ?? [];
  const names = new Map(owners.map(({ id, name }) => [id, name]));
  /** Empty: all. */
  const shownId = accountId === "" && !isAll ? account.id : accountId;
  const ownerOf = (key: { accountId: string }): string =>
    shownId === "" ? ` · ${names.get(key.accountId) ?? key.accountId}` : "";
  const choices = ownerChoices(owners, account.id);
  return {
    models: models.map(({ id }) => [id, id]),
    keys: [
      ...(shownId === "" ? [[NO_CALLER, NO_VALID_KEY] as const] : []),
      ...keys
        .filter((key) => shownId === "" || key.accountId === shownId)
        .map(
          (key) => [key.id, `${key.name}${ownerOf(key)}${key.state === KeyState.ACTIVE ? "" : " (inactive)"}`] as const,
        ),
    ],
    outcomes: OUTCOMES,
    accounts: isAll
      ? { all: "All accounts", choices }
      : owners.length > 1
        ? { all: "Your account", choices: choices.slice(1) }
        : undefined,
    isAll,
  };
}
