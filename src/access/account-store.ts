import type { AccountRouting, Limits, SealedCredential } from "../core/principal.ts";
import type { AdminKeyRecord, AdminKeyStore } from "./admin-key-store.ts";
import type { FactorStore } from "./factors/factor-store.ts";
import type { Page } from "./key-store.ts";
import type { CustomRole, CustomRoleId, RoleStore } from "./role-store.ts";
import type { Membership, TeamStore } from "./team-store.ts";

/** The roles of every installation; `permissions.ts` says what each allows. */
export type BuiltInRole = "owner" | "administrator" | "developer" | "viewer";

/** Role of a person in the installation. */
export type Role = BuiltInRole | CustomRoleId;

/** Kind of an account. Only a person signs in; a team and a service (a program of the organisation) have members instead. */
export type AccountKind = "person" | "team" | "service";

/** A person or a part of the organisation that owns keys. All times are Unix milliseconds. */
export interface AccountRecord {
  readonly id: string;
  readonly kind: AccountKind;
  /** Lower case, unique; undefined for an account without sign-in. */
  readonly email: string | undefined;
  readonly name: string;
  /** Role of a person; unused for a team. */
  readonly role: Role;
  /** An encoded argon2id hash; undefined for an account without sign-in. */
  readonly passwordHash: string | undefined;
  /** Limits of its own; where undefined, those of the configuration apply. */
  readonly limits: Limits;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
}

/** The fields of an account that can be changed. `disabledAtMs: undefined` enables it again. */
export type AccountChanges = Partial<Pick<AccountRecord, "name" | "role" | "passwordHash" | "limits" | "disabledAtMs">>;

/** An account's own credential for a provider. */
export interface StoredCredential extends SealedCredential {
  readonly provider: string;
  /** Unix milliseconds. */
  readonly setAtMs: number;
  /** ID of the account that set it; undefined for the command line. */
  readonly setBy: string | undefined;
}

/** An account's settings for the requests of its keys. */
export interface StoredRouting {
  /** At most one for each provider. */
  readonly credentials: readonly StoredCredential[];
  readonly aliases: AccountRouting["aliases"];
}

/** A person's identity at an OpenID provider. A subject is unique at its issuer and never given to another person. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

/** An identity with the time of its link to an account, in Unix milliseconds. */
export interface LinkedIdentity extends Identity {
  readonly linkedAtMs: number;
}

/** Proof with which a session began: a password, a passkey, an OpenID provider, or a link of the command line. */
export type SignInMethod = "password" | "passkey" | "oidc" | "link";

/** A person who has signed in. All times are Unix milliseconds. */
export interface SessionRecord {
  /** SHA-256 of the session's ID, in hexadecimal: the ID itself is only in the cookie. */
  readonly hash: string;
  readonly accountId: string;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  /**
   * Time of the last proof by password or passkey, or of the person's last authentication at the provider (`auth_time`); 0
   * when unknown.
   */
  readonly authenticatedAtMs: number;
  readonly method: SignInMethod;
  /**
   * True when the session has proved a second factor (code of an authenticator app, recovery code or passkey), or set one
   * up.
   */
  readonly secondFactor?: true | undefined;
  /** Network of the sign-in, such as `192.0.2.0/24`; undefined when not recorded. */
  readonly network: string | undefined;
  /** Browser of the sign-in, such as `Firefox on Linux`. */
  readonly browser: string | undefined;
}

/** An account with the memberships and the custom role that decide its permissions. */
export interface CallerAccount {
  readonly account: AccountRecord;
  /** By name of the team. */
  readonly memberships: readonly Membership[];
  /** The account's custom role; undefined for a built-in role, and for a custom one that was removed. */
  readonly customRole?: CustomRole | undefined;
}

/** A session with its account. */
export interface SignedIn extends CallerAccount {
  /** For an administration key a substitute, which is never confirmed and not listed. */
  readonly session: SessionRecord;
  /** The administration key by which the account acts; undefined for a person's session. */
  readonly adminKey?: AdminKeyRecord | undefined;
}

/** The stored form of a setup token, which lets its holder become the first owner. */
export interface SetupTokenRecord {
  /** SHA-256 of the token, in hexadecimal. */
  readonly hash: string;
  readonly expiresAtMs: number;
}

/** The stored form of a link of the command line, which signs its holder in once. */
export interface SignInLinkRecord extends SetupTokenRecord {
  readonly accountId: string;
}

export interface InvitationRecord {
  readonly id: string;
  /** SHA-256 of the link's token, in hexadecimal. */
  readonly hash: string;
  /** The only address that may use it; undefined for anyone with the link. */
  readonly email: string | undefined;
  readonly role: Role;
  /** Team that the new account joins, with its role there. Default: none. */
  readonly team?: Pick<Membership, "teamId" | "role"> | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | undefined;
}

/** A browser in which an account has signed in. */
export interface KnownBrowser {
  /** SHA-256 of the token in the browser's cookie, in hexadecimal. */
  readonly hash: string;
  readonly accountId: string;
  /** The latest sign-in of the account in this browser, in Unix milliseconds. */
  readonly signedInAtMs: number;
}

/** Preconditions of a change of an account. */
export interface Expected {
  /** The account's password hash: one derived from an old password must not replace a new one. */
  readonly passwordHash?: AccountRecord["passwordHash"];
  /** The account's role: an administrator must not change an account that has just become an owner's. */
  readonly role?: Role;
  /**
   * The acting account, enabled and with one of these roles: one that loses its role must not restore itself in the same
   * moment.
   */
  readonly actor?: { readonly id: string; readonly roles: readonly Role[] };
}

/** How a person's account ends. */
export interface Offboarding {
  /** The account that gets its keys; undefined: they are revoked. */
  readonly keysTo: string | undefined;
  readonly atMs: number;
  /** Largest number of working keys of the account that gets them. */
  readonly mostKeys: number;
  readonly expected: Expected & { readonly role: Role };
}

/** What was taken from an offboarded account. */
export interface Offboarded {
  /** Keys that worked, now transferred or revoked. */
  readonly keyIds: readonly string[];
  /** The teams that it was in. */
  readonly teams: readonly Pick<Membership, "teamId" | "role">[];
  /** Its unused invitations. */
  readonly invitationIds: readonly string[];
  /** Its administration keys that were not revoked. */
  readonly adminKeyIds: readonly string[];
  /** Number of its sessions. */
  readonly sessions: number;
}

/** Counts of password attempts, which throttle the next ones. */
export interface ThrottleStore {
  /** Returns the state of a subject; undefined when none is stored. */
  find(subject: string): Promise<ThrottleState | undefined>;
  /**
   * Changes a subject's state atomically among all processes, and returns the new state. `change` may be called more than
   * once.
   */
  update(subject: string, change: (state: ThrottleState | undefined) => ThrottleState): Promise<ThrottleState>;
  /** Removes the state of a subject and of all subjects whose names begin with it and a slash. */
  remove(subject: string): Promise<void>;
  /**
   * Removes states last changed before `beforeMs`, and of the rest all but `most`: lowest counts first, then oldest. Answers
   * how many.
   */
  prune(limits: { readonly beforeMs: number; readonly most: number }): Promise<number>;
}

export interface ThrottleState {
  readonly count: number;
  /** Attempts are refused until this time. */
  readonly blockedUntilMs: number;
  readonly changedAtMs: number;
}

/** The store of accounts, sessions and invitations. Every method answers, or rejects within a few seconds. */
export interface AccountStore extends TeamStore, RoleStore, AdminKeyStore, FactorStore {
  /** False when the e-mail address or the identity is taken. */
  insert(account: AccountRecord, identity?: LinkedIdentity): Promise<boolean>;
  find(id: string): Promise<AccountRecord | undefined>;
  findByEmail(email: string): Promise<AccountRecord | undefined>;
  /** Oldest first; all accounts when no page is given. */
  list(page?: Page): Promise<readonly AccountRecord[]>;
  findByIdentity(identity: Identity): Promise<AccountRecord | undefined>;
  /**
   * Also ends the account's password, factors, links for a new password, sessions and known browsers, all or nothing: somebody else may
   * have them. False, without effect, when the identity has an account, or the account has another identity of this issuer.
   */
  link(accountId: string, identity: LinkedIdentity): Promise<boolean>;
  /** Removes the account's identity of an issuer; false without one. */
  unlink(accountId: string, issuer: string): Promise<boolean>;
  /** Whether any account, also a disabled one, has a password or an identity, so that there is an owner. */
  isClaimed(): Promise<boolean>;
  /** False for an unknown account, and when a precondition of `expected` does not hold. */
  update(id: string, changes: AccountChanges, expected?: Expected): Promise<boolean>;
  /**
   * Gives the default account to the first person who signs up: e-mail address, name, password or identity, and the role of an
   * owner. False when any account, also a disabled one, has a password or an identity: of two simultaneous claims one succeeds.
   */
  claimDefault(
    owner: Pick<AccountRecord, "email" | "name" | "passwordHash">,
    identity?: LinkedIdentity,
  ): Promise<boolean>;

  /**
   * Disables an account, removes its sessions, browsers, unused invitations and memberships, revokes its administration
   * keys, and transfers or revokes its keys, all or nothing. Denied for an unknown account and when a precondition does not
   * hold.
   */
  offboard(id: string, offboarding: Offboarding): Promise<Offboarded | "denied" | "last owner" | "too many keys">;

  /** Undefined for an unknown account. */
  routing(id: string): Promise<StoredRouting | undefined>;
  /**
   * Changes an account's credentials and aliases atomically, so that no simultaneous change is lost. Undefined for an
   * unknown account. Throws what `change` throws, which may be called more than once.
   */
  changeRouting(id: string, change: (before: StoredRouting) => StoredRouting): Promise<StoredRouting | undefined>;

  /** `idToken`: the provider's ID token, which identifies the session at the sign-out there. */
  insertSession(session: SessionRecord, idToken?: string): Promise<void>;
  idTokenOf(hash: string): Promise<string | undefined>;
  /** Rejects at once while 2,000 look-ups wait. */
  findSession(hash: string): Promise<SignedIn | undefined>;
  /** At most `limit` sessions of an account, most recently used first; includes ended ones that are not pruned yet. */
  listSessions(accountId: string, limit: number): Promise<readonly SessionRecord[]>;
  touchSession(
    hash: string,
    changes: Partial<Pick<SessionRecord, "lastSeenAtMs" | "authenticatedAtMs" | "secondFactor">>,
  ): Promise<void>;
  removeSession(hash: string): Promise<void>;
  /** Removes all sessions of an account except one; answers how many. */
  removeSessions(accountId: string, exceptHash?: string): Promise<number>;
  /** Removes sessions created or last used before the limits; answers how many. */
  pruneSessions(limits: { readonly createdBeforeMs: number; readonly seenBeforeMs: number }): Promise<number>;

  /**
   * The IDs of the accounts that have signed in with the browser of this hash. Throws `overloaded` while too many unknown ones
   * are looked up.
   */
  accountsOfBrowser(hash: string): Promise<readonly string[]>;
  /**
   * Adds a browser, or a sign-in with it. Accounts known under `formerHash` become known under the new hash. Only the latest
   * `most` browsers of each account are kept.
   */
  keepBrowser(
    browser: KnownBrowser,
    options: { readonly formerHash: string | undefined; readonly most: number },
  ): Promise<void>;
  /** Removes all browsers of an account. */
  removeBrowsers(accountId: string): Promise<void>;
  /** Removes browsers without a sign-in since `beforeMs`; answers how many. */
  pruneBrowsers(beforeMs: number): Promise<number>;

  /** Adds the hash of a setup token, and removes expired ones. */
  insertSetupToken(token: SetupTokenRecord, nowMs: number): Promise<void>;
  findSetupToken(hash: string): Promise<SetupTokenRecord | undefined>;
  removeSetupTokens(): Promise<void>;

  /** Adds a link, and removes expired ones. */
  insertSignInLink(link: SignInLinkRecord, nowMs: number): Promise<void>;
  /** Removes a link, and returns it if it has not expired: of two simultaneous uses one gets it. */
  takeSignInLink(hash: string, nowMs: number): Promise<SignInLinkRecord | undefined>;

  insertInvitation(invitation: InvitationRecord): Promise<void>;
  findInvitation(hash: string): Promise<InvitationRecord | undefined>;
  /** Newest first. */
  listInvitations(): Promise<readonly InvitationRecord[]>;
  /**
   * Marks the invitation as used and inserts the account, with its first identity, atomically. False when it was used, has expired, or
   * the address or the identity is taken.
   */
  acceptInvitation(
    hash: string,
    account: AccountRecord,
    use: { readonly atMs: number; readonly identity?: LinkedIdentity },
  ): Promise<boolean>;
  removeInvitation(id: string): Promise<boolean>;
}
