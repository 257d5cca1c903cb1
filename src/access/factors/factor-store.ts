/** A passkey of a person. All times are Unix milliseconds. */
export interface PasskeyRecord {
  /** The ID of the credential in base64url, unique among all accounts. */
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** In the form of COSE, in base64url. */
  readonly publicKey: string;
  /** The device's count of its uses; 0 where it does not count. */
  readonly counter: number;
  /** How a browser reaches the device, such as `usb`; a hint. */
  readonly transports: readonly string[];
  readonly createdAtMs: number;
  readonly usedAtMs: number | undefined;
}

/** The authenticator app of an account. */
export interface TotpRecord {
  /** The encrypted secret. */
  readonly sealed: string;
  /** The time step of the last code that was used: codes of this and earlier steps are not valid any more. */
  readonly lastStep: number;
  readonly createdAtMs: number;
}

/** An authenticator app that is turned on. */
interface NewTotp extends TotpRecord {
  /** Hashes of the recovery codes. */
  readonly codeHashes: readonly string[];
}

/** The stored form of a link that sets a new password. */
export interface ResetLinkRecord {
  /** SHA-256 of the token, in hexadecimal. */
  readonly hash: string;
  readonly accountId: string;
  readonly expiresAtMs: number;
}

/** The session in which a factor is set up. */
export interface FactorSession {
  readonly hash: string;
  /** Whether the session still needs a second factor: it may then only set up the account's first one. */
  readonly setsUpFirst: boolean;
}

/** `session ended`: the session is gone, or the account has a factor by now, which the session has not proved. */
export type FactorAdded = "done" | "taken" | "session ended";

/** `last`: the account has no other factor. */
type FactorRemoved = "done" | "unknown" | "last";

/** Which factors can be removed. */
interface Removable {
  /** Whether the last factor stays. Simultaneous removals of an account wait for each other. */
  readonly keepsLast: boolean;
}

/** The store of passkeys, authenticator apps, recovery codes and reset links; part of the AccountStore. */
export interface FactorStore {
  /**
   * Adds a passkey, unless the ID is taken or the account has `most`. Marks the session as one with a second factor, and removes the account's
   * other sessions without one, all or nothing.
   */
  insertPasskey(passkey: PasskeyRecord, most: number, session?: FactorSession): Promise<FactorAdded>;
  findPasskey(id: string): Promise<PasskeyRecord | undefined>;
  /** Oldest first. */
  listPasskeys(accountId: string): Promise<readonly PasskeyRecord[]>;
  /** Records a use; false when the passkey is gone, or was used since it was read. */
  usePasskey(passkey: PasskeyRecord, use: { readonly counter: number; readonly atMs: number }): Promise<boolean>;
  removePasskey(accountId: string, id: string, which: Removable): Promise<FactorRemoved>;
  /** False when this challenge was spent before. Removes expired ones. */
  spendChallenge(challenge: { readonly hash: string; readonly expiresAtMs: number }, nowMs: number): Promise<boolean>;

  findTotp(accountId: string): Promise<TotpRecord | undefined>;
  /**
   * Turns the app on, and sets the hashes of its recovery codes, unless the account has one. Marks the session as one with a second factor,
   * and removes the account's other sessions, all or nothing.
   */
  insertTotp(accountId: string, totp: NewTotp, session?: FactorSession): Promise<FactorAdded>;
  /** Records the time step of a code: false when it, or a later one, was used before. */
  useTotpStep(accountId: string, step: number): Promise<boolean>;
  /** Removes the app and the recovery codes. */
  removeTotp(accountId: string, which: Removable): Promise<FactorRemoved>;
  /**
   * Encrypts all secrets again with `seal`; a secret for which it returns undefined stays. Answers how many were encrypted
   * and how many could not be read.
   */
  resealTotp(seal: (sealed: string, accountId: string) => string | undefined): Promise<{
    readonly resealed: number;
    readonly unreadable: number;
  }>;

  /** Replaces the hashes of the recovery codes. */
  setRecoveryCodes(accountId: string, hashes: readonly string[]): Promise<void>;
  countRecoveryCodes(accountId: string): Promise<number>;
  /** Removes a code; false when there is none with this hash: of two simultaneous uses one gets it. */
  useRecoveryCode(accountId: string, hash: string): Promise<boolean>;
  /** Removes the passkeys and the sessions of an account, all or nothing; answers how many passkeys. */
  removePasskeys(accountId: string): Promise<number>;
  /** Removes all factors and the sessions of an account, all or nothing; answers which factors there were. */
  removeFactors(accountId: string): Promise<{ readonly passkeys: number; readonly totp: boolean }>;

  /** Adds a link in place of the account's earlier ones, and removes expired ones. */
  insertResetLink(link: ResetLinkRecord, nowMs: number): Promise<void>;
  /** Undefined for one that has expired. */
  findResetLink(hash: string, nowMs: number): Promise<ResetLinkRecord | undefined>;
  /** Removes a link; false when there was none: of two simultaneous uses one gets it. */
  takeResetLink(hash: string): Promise<boolean>;
  removeResetLinks(accountId: string): Promise<void>;
}
