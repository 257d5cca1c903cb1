import type { AccountRecord, CallerAccount } from "./account-store.ts";
import type { Page } from "./key-store.ts";

/** Role of a member in a team; `permissions.ts` has the permissions of each. */
export type TeamRole = "maintainer" | "developer" | "viewer";

/** A team that an account is a member of. */
export interface Membership {
  readonly teamId: string;
  readonly teamName: string;
  readonly role: TeamRole;
}

/** A member of a team. */
export interface Member extends Pick<AccountRecord, "id" | "name" | "email" | "disabledAtMs"> {
  readonly role: TeamRole;
  /** Unix milliseconds. */
  readonly addedAtMs: number;
}

/** A team and its number of members. */
export interface TeamRecord {
  readonly account: AccountRecord;
  readonly members: number;
}

/** A change of a team's members: `role` undefined removes the member. */
interface MemberChange {
  readonly teamId: string;
  readonly accountId: string;
  readonly role: TeamRole | undefined;
  readonly atMs: number;
}

/** Preconditions of a change of members. */
export interface ExpectedMembers {
  /**
   * Whether the actor, with its memberships of that moment, may change a member with this role, or add one. Undefined for
   * the command line.
   */
  readonly actor?: {
    readonly id: string;
    readonly mayChange: (actor: TeamActor, before: TeamRole | undefined) => boolean;
  };
  /** Largest number of members of the team, and of teams of the account. */
  readonly most: { readonly members: number; readonly teams: number };
}

/** The account that changes members. */
export interface TeamActor extends Pick<CallerAccount, "account" | "customRole"> {
  readonly memberships: readonly Pick<Membership, "teamId" | "role">[];
}

/** The former role of the account in the team, undefined for none; or why nothing was changed. */
type MemberChanged =
  | { readonly before: TeamRole | undefined }
  | "unknown team"
  | "unknown person"
  | "denied"
  | "too many members"
  | "too many teams";

/** The store of the members of teams. Teams themselves are accounts. */
export interface TeamStore {
  /** Oldest first; all teams, or those of a member. */
  listTeams(page: Page, memberId?: string): Promise<readonly TeamRecord[]>;
  /** The teams of an account, by name. */
  memberships(accountId: string): Promise<readonly Membership[]>;
  /** By name, then ID. */
  members(teamId: string): Promise<readonly Member[]>;
  /** Adds, changes or removes a member, atomically with the check of what is expected. */
  changeMember(change: MemberChange, expected: ExpectedMembers): Promise<MemberChanged>;
}
