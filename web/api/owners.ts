import { useQuery } from "@tanstack/react-query";
import { AccountKind } from "../../gen/parley/console/v1/account_pb.js";
import { TeamRole } from "../../gen/parley/console/v1/team_role_pb.js";
import { accountsQuery } from "./accounts.ts";
import { mayWrite, useAccount, useMay, useTeams } from "./session.ts";

/** An account whose keys, usage and requests the signed-in account sees. */
export interface Owner {
  readonly id: string;
  readonly name: string;
  /** Empty for a team. */
  readonly email: string;
  /** Whether its keys may be made and changed. */
  readonly isWritable: boolean;
  /** Whether its keys may be used in the playground. */
  readonly isPlayable: boolean;
}

/** Returns the owners loaded so far, the signed-in account first, then its teams, or all accounts if the account sees them. */
export function useOwners(): readonly Owner[] {
  const account = useAccount();
  const teams = useTeams();
  const isAll = useMay("accounts.read");
  const mayWriteAll = useMay("keys.write");
  const { data: accounts = [] } = useQuery({ ...accountsQuery, enabled: isAll });
  const { id, name, email } = account;
  const own = { id, name, email, isWritable: mayWrite(account), isPlayable: mayWrite(account) };
  const ofTeams = teams.map(({ accountId, name: title, role }) => {
    const isUsable = mayWrite(account) && role !== TeamRole.VIEWER;
    return { id: accountId, name: title, email: "", isWritable: isUsable || mayWriteAll, isPlayable: isUsable };
  });
  if (!isAll) return [own, ...ofTeams];
  const known = new Set([id, ...ofTeams.map((team) => team.id)]);
  const others = accounts.filter((each) => !known.has(each.id));
  return [own, ...ofTeams, ...others.map((each) => ({ ...each, isWritable: mayWriteAll, isPlayable: false }))];
}

/** Returns the names of the owners by ID. */
export function useOwnerNames(): ReadonlyMap<string, string> {
  return new Map(useOwners().map(({ id, name }) => [id, name]));
}

/** Returns the choices of a field for the owner. */
export function ownerChoices(owners: readonly Owner[], ownId: string): (readonly [id: string, name: string])[] {
  return owners.map(({ id, name, email }) => [
    id,
    id === ownId ? `${name} (you)` : email === "" ? name : `${name}, ${email}`,
  ]);
}

/** Whether a person signs in to the account. */
export function isPerson({ kind }: { readonly kind: AccountKind }): boolean {
  return kind === AccountKind.PERSON;
}
