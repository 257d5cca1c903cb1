import { useQuery } from "@tanstack/react-query";
import { KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { NO_CALLER, NO_VALID_KEY } from "../format/callers.ts";
import { REQUEST_OUTCOMES } from "../format/outcomes.ts";
import { accountsQuery } from "./accounts.ts";
import { keysQuery } from "./keys.ts";
import { isAdministrator, useAccount } from "./session.ts";
import { settingsQuery } from "./settings.ts";

type Choices = readonly (readonly [value: string, name: string])[];

/** Filter choices for requests and usage, with display names. */
export interface Scopes {
  readonly models: Choices;
  readonly keys: Choices;
  readonly outcomes: Choices;
  /** Undefined for members, who see only their own account. */
  readonly accounts: Choices | undefined;
}

const OUTCOMES: Choices = [["failed", "All errors"], ...REQUEST_OUTCOMES];

/** Returns the filter choices loaded so far; only keys of this account if `accountId` is not empty. */
export function useScopes(accountId: string): Scopes {
  const isAll = isAdministrator(useAccount());
  const keys = useQuery(keysQuery).data ?? [];
  const accounts = useQuery({ ...accountsQuery, enabled: isAll }).data ?? [];
  const models = useQuery(settingsQuery).data?.models ?? [];
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  const ownerOf = (key: { accountId: string }): string =>
    isAll && accountId === "" ? ` · ${names.get(key.accountId) ?? key.accountId}` : "";
  return {
    models: models.map(({ id }) => [id, id]),
    keys: [
      ...(isAll && accountId === "" ? [[NO_CALLER, NO_VALID_KEY] as const] : []),
      ...keys
        .filter((key) => accountId === "" || key.accountId === accountId)
        .map(
          (key) => [key.id, `${key.name}${ownerOf(key)}${key.state === KeyState.ACTIVE ? "" : " (inactive)"}`] as const,
        ),
    ],
    outcomes: OUTCOMES,
    accounts: isAll
      ? accounts.map(({ id, name, email }) => [id, email === "" ? name : `${name} (${email})`])
      : undefined,
  };
}
