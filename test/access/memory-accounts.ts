import type {
  AccountRecord,
  AccountStore,
  InvitationRecord,
  KnownBrowser,
  SessionRecord,
  SetupTokenRecord,
  StoredRouting,
  ThrottleState,
  ThrottleStore,
} from "../../src/access/account-store.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { pageOf } from "./fakes.ts";

/** The account that every installation begins with. */
export const DEFAULT_ACCOUNT: AccountRecord = {
  id: DEFAULT_ACCOUNT_ID,
  email: undefined,
  name: "default",
  role: "administrator",
  passwordHash: undefined,
  limits: NO_LIMITS,
  createdAtMs: 0,
  disabledAtMs: undefined,
};

export interface MemoryAccounts extends AccountStore {
  readonly accounts: Map<string, AccountRecord>;
  readonly sessions: Map<string, SessionRecord>;
  readonly browsers: KnownBrowser[];
  readonly invitations: Map<string, InvitationRecord>;
}

/** An in-memory AccountStore. */
export function memoryAccountStore(): MemoryAccounts {
  const accounts = new Map([[DEFAULT_ACCOUNT_ID, DEFAULT_ACCOUNT]]);
  const sessions = new Map<string, SessionRecord>();
  const browsers: KnownBrowser[] = [];
  const invitations = new Map<string, InvitationRecord>();
  const setupTokens = new Map<string, SetupTokenRecord>();
  const routings = new Map<string, StoredRouting>();
  const withEmail = (email: string) => [...accounts.values()].find((account) => account.email === email);
  const insert = (account: AccountRecord): boolean => {
    if (account.email !== undefined && withEmail(account.email) !== undefined) return false;
    accounts.set(account.id, account);
    return true;
  };
  const removeWhere = <T>(rows: Map<string, T>, ends: (row: T) => boolean): number => {
    const ended = [...rows].filter(([, row]) => ends(row));
    for (const [key] of ended) rows.delete(key);
    return ended.length;
  };
  return {
    accounts,
    sessions,
    browsers,
    invitations,
    insert: async (account) => insert(account),
    find: async (id) => accounts.get(id),
    findByEmail: async (email) => withEmail(email),
    list: async (page) => pageOf([...accounts.values()], page),
    isClaimed: async () => [...accounts.values()].some(({ passwordHash }) => passwordHash !== undefined),
    async update(id, changes, expected) {
      const account = accounts.get(id);
      if (account === undefined) return false;
      if (expected !== undefined && "passwordHash" in expected && account.passwordHash !== expected.passwordHash)
        return false;
      const administrator = expected?.administrator === undefined ? undefined : accounts.get(expected.administrator);
      const isEnabled = administrator?.role === "administrator" && administrator.disabledAtMs === undefined;
      if (expected?.administrator !== undefined && !isEnabled) return false;
      accounts.set(id, { ...account, ...changes });
      return true;
    },
    async routing(id) {
      return accounts.has(id) ? (routings.get(id) ?? { credentials: [], aliases: [] }) : undefined;
    },
    async changeRouting(id, change) {
      if (!accounts.has(id)) return undefined;
      const changed = change(routings.get(id) ?? { credentials: [], aliases: [] });
      routings.set(id, changed);
      return changed;
    },
    async claimDefault(owner) {
      if ([...accounts.values()].some(({ passwordHash }) => passwordHash !== undefined)) return false;
      accounts.set(DEFAULT_ACCOUNT_ID, { ...accounts.get(DEFAULT_ACCOUNT_ID)!, ...owner, role: "administrator" });
      return true;
    },

    async insertSession(session) {
      sessions.set(session.hash, session);
    },
    async findSession(hash) {
      const session = sessions.get(hash);
      const account = session && accounts.get(session.accountId);
      return session && account && { session, account };
    },
    listSessions: async (accountId, limit) =>
      [...sessions.values()]
        .filter((session) => session.accountId === accountId)
        .toSorted((one, other) => other.lastSeenAtMs - one.lastSeenAtMs)
        .slice(0, limit),
    async touchSession(hash, changes) {
      const session = sessions.get(hash);
      if (session !== undefined) sessions.set(hash, { ...session, ...changes });
    },
    async removeSession(hash) {
      sessions.delete(hash);
    },
    removeSessions: async (accountId, exceptHash) =>
      removeWhere(sessions, (session) => session.accountId === accountId && session.hash !== exceptHash),
    pruneSessions: async ({ createdBeforeMs, seenBeforeMs }) =>
      removeWhere(sessions, (session) => session.createdAtMs < createdBeforeMs || session.lastSeenAtMs < seenBeforeMs),

    accountsOfBrowser: async (hash) => browsers.filter((each) => each.hash === hash).map(({ accountId }) => accountId),
    async keepBrowser(browser, { formerHash, most }) {
      const renamed = browsers.map((each) => (each.hash === formerHash ? { ...each, hash: browser.hash } : each));
      const others = renamed.filter(({ hash, accountId }) => hash !== browser.hash || accountId !== browser.accountId);
      const own = [browser, ...others].filter(({ accountId }) => accountId === browser.accountId);
      const kept = own.toSorted((one, other) => other.signedInAtMs - one.signedInAtMs).slice(0, most);
      const rest = others.filter(({ accountId }) => accountId !== browser.accountId);
      browsers.splice(0, browsers.length, ...kept, ...rest);
    },
    async removeBrowsers(accountId) {
      browsers.splice(0, browsers.length, ...browsers.filter((each) => each.accountId !== accountId));
    },
    async pruneBrowsers(beforeMs) {
      const kept = browsers.filter(({ signedInAtMs }) => signedInAtMs >= beforeMs);
      return browsers.splice(0, browsers.length, ...kept).length - kept.length;
    },

    async insertSetupToken(token, nowMs) {
      removeWhere(setupTokens, ({ expiresAtMs }) => expiresAtMs <= nowMs);
      setupTokens.set(token.hash, token);
    },
    findSetupToken: async (hash) => setupTokens.get(hash),
    removeSetupTokens: async () => setupTokens.clear(),

    async insertInvitation(invitation) {
      invitations.set(invitation.hash, invitation);
    },
    findInvitation: async (hash) => invitations.get(hash),
    listInvitations: async () =>
      [...invitations.values()].toSorted((one, other) => other.createdAtMs - one.createdAtMs),
    async acceptInvitation(hash, account, atMs) {
      const invitation = invitations.get(hash);
      const isUsable = invitation?.usedAtMs === undefined && atMs < (invitation?.expiresAtMs ?? 0);
      if (invitation === undefined || !isUsable || !insert(account)) return false;
      invitations.set(hash, { ...invitation, usedAtMs: atMs });
      return true;
    },
    removeInvitation: async (id) => removeWhere(invitations, (invitation) => invitation.id === id) > 0,
  };
}

/** An in-memory ThrottleStore. */
export function memoryThrottleStore(): ThrottleStore & { readonly states: Map<string, ThrottleState> } {
  const states = new Map<string, ThrottleState>();
  return {
    states,
    find: async (subject) => states.get(subject),
    async update(subject, change) {
      const state = change(states.get(subject));
      states.set(subject, state);
      return state;
    },
    async remove(subject) {
      for (const each of states.keys()) if (each === subject || each.startsWith(`${subject}/`)) states.delete(each);
    },
    async prune({ beforeMs, most }) {
      const before = states.size;
      for (const [subject, { changedAtMs }] of states) if (changedAtMs < beforeMs) states.delete(subject);
      const least = [...states].toSorted(
        ([, one], [, other]) => one.count - other.count || one.changedAtMs - other.changedAtMs,
      );
      for (const [subject] of least.slice(0, Math.max(states.size - most, 0))) states.delete(subject);
      return before - states.size;
    },
  };
}
