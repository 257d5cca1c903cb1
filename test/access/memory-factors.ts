import type { SessionRecord } from "../../src/access/account-store.ts";
import type {
  FactorSession,
  FactorStore,
  PasskeyRecord,
  ResetLinkRecord,
  TotpRecord,
} from "../../src/access/factors/factor-store.ts";

/** An in-memory FactorStore, beside these sessions by their hash. */
export function memoryFactors(sessions: Map<string, SessionRecord>): FactorStore {
  const passkeys = new Map<string, PasskeyRecord>();
  const spent = new Map<string, number>();
  const totps = new Map<string, TotpRecord>();
  const codes = new Map<string, ReadonlySet<string>>();
  const links = new Map<string, ResetLinkRecord>();
  const ownPasskeys = (accountId: string) => [...passkeys.values()].filter((each) => each.accountId === accountId);
  const removePasskeys = (accountId: string): number => {
    for (const session of sessions.values()) if (session.accountId === accountId) sessions.delete(session.hash);
    const own = ownPasskeys(accountId);
    for (const { id } of own) passkeys.delete(id);
    return own.length;
  };
  const removeTotp = (accountId: string): boolean => {
    codes.delete(accountId);
    return totps.delete(accountId);
  };
  /** False when the session has ended, or owes a factor that the account has. */
  const accepts = (accountId: string, session: FactorSession | undefined): boolean => {
    if (session === undefined) return true;
    const isNext = totps.has(accountId) || ownPasskeys(accountId).length > 0;
    return sessions.has(session.hash) && !(session.setsUpFirst && isNext);
  };
  const mark = (
    session: FactorSession | undefined,
    { accountId, ends }: { readonly accountId: string; readonly ends: (session: SessionRecord) => boolean },
  ): void => {
    if (session === undefined) return;
    sessions.set(session.hash, { ...sessions.get(session.hash)!, secondFactor: true });
    for (const other of sessions.values())
      if (other.accountId === accountId && ends(other)) sessions.delete(other.hash);
  };
  const removeLinks = (ends: (link: ResetLinkRecord) => boolean): void => {
    for (const link of links.values()) if (ends(link)) links.delete(link.hash);
  };
  return {
    async insertPasskey(passkey, most, session) {
      const { id, accountId } = passkey;
      if (passkeys.has(id) || ownPasskeys(accountId).length >= most) return "taken";
      if (!accepts(accountId, session)) return "session ended";
      passkeys.set(id, passkey);
      mark(session, { accountId, ends: (other) => other.secondFactor === undefined });
      return "done";
    },
    findPasskey: async (id) => passkeys.get(id),
    listPasskeys: async (accountId) =>
      ownPasskeys(accountId).toSorted((one, other) => one.createdAtMs - other.createdAtMs),
    async usePasskey({ id, counter: before }, { counter, atMs }) {
      const passkey = passkeys.get(id);
      if (passkey?.counter !== before) return false;
      passkeys.set(id, { ...passkey, counter, usedAtMs: atMs });
      return true;
    },
    async removePasskey(accountId, id, { keepsLast }) {
      if (passkeys.get(id)?.accountId !== accountId) return "unknown";
      if (keepsLast && ownPasskeys(accountId).length === 1 && !totps.has(accountId)) return "last";
      passkeys.delete(id);
      return "done";
    },
    removePasskeys: async (accountId) => removePasskeys(accountId),
    async spendChallenge({ hash, expiresAtMs }, nowMs) {
      for (const [each, endMs] of spent) if (endMs <= nowMs) spent.delete(each);
      if (spent.has(hash)) return false;
      spent.set(hash, expiresAtMs);
      return true;
    },

    findTotp: async (accountId) => totps.get(accountId),
    async insertTotp(accountId, { codeHashes, ...totp }, session) {
      if (!accepts(accountId, session)) return "session ended";
      if (totps.has(accountId)) return "taken";
      totps.set(accountId, totp);
      codes.set(accountId, new Set(codeHashes));
      mark(session, { accountId, ends: (other) => other.hash !== session?.hash });
      return "done";
    },
    async useTotpStep(accountId, step) {
      const totp = totps.get(accountId);
      if (totp === undefined || totp.lastStep >= step) return false;
      totps.set(accountId, { ...totp, lastStep: step });
      return true;
    },
    async removeTotp(accountId, { keepsLast }) {
      if (!totps.has(accountId)) return "unknown";
      if (keepsLast && ownPasskeys(accountId).length === 0) return "last";
      removeTotp(accountId);
      return "done";
    },
    async resealTotp(seal) {
      let resealed = 0;
      for (const [accountId, totp] of totps) {
        const sealed = seal(totp.sealed, accountId);
        if (sealed === undefined) continue;
        totps.set(accountId, { ...totp, sealed });
        resealed += 1;
      }
      return { resealed, unreadable: totps.size - resealed };
    },
    setRecoveryCodes: async (accountId, hashes) => void codes.set(accountId, new Set(hashes)),
    countRecoveryCodes: async (accountId) => codes.get(accountId)?.size ?? 0,
    async useRecoveryCode(accountId, hash) {
      const own = codes.get(accountId);
      if (own?.has(hash) !== true) return false;
      codes.set(accountId, new Set([...own].filter((each) => each !== hash)));
      return true;
    },
    removeFactors: async (accountId) => ({ passkeys: removePasskeys(accountId), totp: removeTotp(accountId) }),

    async insertResetLink(link, nowMs) {
      removeLinks(({ accountId, expiresAtMs }) => accountId === link.accountId || expiresAtMs <= nowMs);
      links.set(link.hash, link);
    },
    async findResetLink(hash, nowMs) {
      const link = links.get(hash);
      return link !== undefined && nowMs < link.expiresAtMs ? link : undefined;
    },
    takeResetLink: async (hash) => links.delete(hash),
    removeResetLinks: async (accountId) => removeLinks((link) => link.accountId === accountId),
  };
}
