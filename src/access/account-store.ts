import type { Limits } from "../core/principal.ts";
import type { Page } from "./key-store.ts";

export type Role = "administrator" | "member";

/** A person, or a part of the organisation, that owns keys. All times are Unix milliseconds. */
export interface AccountRecord {
  readonly id: string;
  /** Lower case; undefined for an account that nobody can sign in to yet. Unique. */
  readonly email: string | undefined;
  readonly name: string;
  readonly role: Role;
  /** An encoded argon2id hash; undefined when nobody can sign in. */
  readonly passwordHash: string | undefined;
  /** Its own; where undefined, the configuration's apply. */
  readonly limits: Limits;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
}

/** What of an account can be changed. `disabledAtMs: undefined` enables it again. */
export type AccountChanges = Partial<Pick<AccountRecord, "name" | "role" | "passwordHash" | "limits" | "disabledAtMs">>;

/** A person who has signed in. All times are Unix milliseconds. */
export interface SessionRecord {
  /** SHA-256 of the session's ID, in hexadecimal: the ID itself is only in the cookie. */
  readonly hash: string;
  readonly accountId: string;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  /** When the password was last given. */
  readonly authenticatedAtMs: number;
  /** Where it began, such as `192.0.2.0/24`; undefined where nobody knows any more. */
  readonly network: string | undefined;
  /** What it began in, such as `Firefox on Linux`. */
  readonly browser: string | undefined;
}

/** What is kept of a token that lets its holder become the first administrator. */
export interface SetupTokenRecord {
  /** SHA-256 of the token, in hexadecimal. */
  readonly hash: string;
  readonly expiresAtMs: number;
}

export interface InvitationRecord {
  readonly id: string;
  /** SHA-256 of the link's token, in hexadecimal. */
  readonly hash: string;
  /** The only address that may use it; undefined for anybody who has the link. */
  readonly email: string | undefined;
  readonly role: Role;
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

/** Something that an owner may want to look up later. Holds no secret. */
export interface SecurityEvent {
  readonly atMs: number;
  /** A word of ours, such as `sign_in_failed` or `key_revoked`. */
  readonly type: string;
  /** Who did it; undefined when nobody was signed in. */
  readonly actorId: string | undefined;
  /** Whose account it is about. */
  readonly accountId: string | undefined;
  /** The caller's network, such as `192.0.2.0/24`; undefined for the command line. */
  readonly network: string | undefined;
  /** Further facts, such as a key's ID. */
  readonly details: Readonly<Record<string, string>>;
}

/** An event as it is kept. */
export interface RecordedEvent extends SecurityEvent {
  /** Tells it apart from others of the same moment. */
  readonly id: string;
}

/** Counts of password attempts, which throttle the next ones. */
export interface ThrottleStore {
  /** The state of one subject; undefined when nothing is kept. */
  find(subject: string): Promise<ThrottleState | undefined>;
  /**
   * Changes one subject's state at one moment for all who share it, and answers what it became. `change` may be called
   * more than once.
   */
  update(subject: string, change: (state: ThrottleState | undefined) => ThrottleState): Promise<ThrottleState>;
  /** Removes the state of a subject and of those whose names begin with it and a slash. */
  remove(subject: string): Promise<void>;
  /**
   * Removes states that were last changed before a moment, and of the rest all but `most`, those of the lowest counts and of
   * these the oldest first. Answers how many.
   */
  prune(limits: { readonly beforeMs: number; readonly most: number }): Promise<number>;
}

export interface ThrottleState {
  readonly count: number;
  /** Refused until then. */
  readonly blockedUntilMs: number;
  readonly changedAtMs: number;
}

/** Where accounts, sessions and invitations are kept. Every method answers, or rejects within a few seconds. */
export interface AccountStore {
  /** False when the e-mail address is taken. */
  insert(account: AccountRecord): Promise<boolean>;
  find(id: string): Promise<AccountRecord | undefined>;
  findByEmail(email: string): Promise<AccountRecord | undefined>;
  /** Oldest first; all of them without a page. */
  list(page?: Page): Promise<readonly AccountRecord[]>;
  /** Whether any account has a password, a disabled one too: whether there is an owner. It never becomes false again. */
  isClaimed(): Promise<boolean>;
  /**
   * False for an unknown account, and for one whose password hash is not `expected` any more, where that is given: what was
   * derived from an old password must not take the place of a new one.
   */
  update(id: string, changes: AccountChanges, expected?: Pick<AccountRecord, "passwordHash">): Promise<boolean>;
  /**
   * Gives the default account to the first person who signs up: its e-mail address, name and password, and the role of
   * administrator. False when there is an account with a password already, a disabled one too: of two at the same moment
   * one wins.
   */
  claimDefault(owner: Pick<AccountRecord, "email" | "name" | "passwordHash">): Promise<boolean>;

  insertSession(session: SessionRecord): Promise<void>;
  findSession(hash: string): Promise<{ readonly session: SessionRecord; readonly account: AccountRecord } | undefined>;
  /** Those of an account, the latest used first, at most `limit`; ended ones too that were not pruned yet. */
  listSessions(accountId: string, limit: number): Promise<readonly SessionRecord[]>;
  touchSession(
    hash: string,
    changes: Partial<Pick<SessionRecord, "lastSeenAtMs" | "authenticatedAtMs">>,
  ): Promise<void>;
  removeSession(hash: string): Promise<void>;
  /** All of an account, except one; answers how many. */
  removeSessions(accountId: string, exceptHash?: string): Promise<number>;
  /** Those created, or last seen, before; answers how many. */
  pruneSessions(limits: { readonly createdBeforeMs: number; readonly seenBeforeMs: number }): Promise<number>;

  /** The IDs of the accounts that have signed in with the browser of this hash. */
  accountsOfBrowser(hash: string): Promise<readonly string[]>;
  /**
   * Adds a browser, or a sign-in to it. What was known under `formerHash` is known under the new hash from now on. Of each
   * account's browsers only the latest `most` are kept.
   */
  keepBrowser(
    browser: KnownBrowser,
    options: { readonly formerHash: string | undefined; readonly most: number },
  ): Promise<void>;
  /** All of an account. */
  removeBrowsers(accountId: string): Promise<void>;
  /** Those without a sign-in since; answers how many. */
  pruneBrowsers(beforeMs: number): Promise<number>;

  /** Adds the hash of a token for the first administrator, and removes those that have expired. */
  insertSetupToken(token: SetupTokenRecord, nowMs: number): Promise<void>;
  findSetupToken(hash: string): Promise<SetupTokenRecord | undefined>;
  removeSetupTokens(): Promise<void>;

  insertInvitation(invitation: InvitationRecord): Promise<void>;
  findInvitation(hash: string): Promise<InvitationRecord | undefined>;
  /** Newest first. */
  listInvitations(): Promise<readonly InvitationRecord[]>;
  /** Uses up the invitation and makes the account, or nothing: false when it was used, has expired or the address is taken. */
  acceptInvitation(hash: string, account: AccountRecord, atMs: number): Promise<boolean>;
  removeInvitation(id: string): Promise<boolean>;

  record(event: SecurityEvent): Promise<void>;
  /** Newest first, at most `limit`; only those that come after `before` in this order, where that is given. */
  events(query: {
    readonly limit: number;
    readonly accountId?: string | undefined;
    readonly before?: Pick<RecordedEvent, "atMs" | "id"> | undefined;
  }): Promise<readonly RecordedEvent[]>;
  /**
   * Removes events from before a moment, and of those that name no account and no actor (sign-ins with unknown addresses) all
   * but the newest `mostAnonymous`. Answers how many.
   */
  pruneEvents(limits: { readonly beforeMs: number; readonly mostAnonymous: number }): Promise<number>;
}
