import type {
  AccountRecord,
  AccountStore,
  InvitationRecord,
  KnownBrowser,
  LinkedIdentity,
  SessionRecord,
  SetupTokenRecord,
  SignInLinkRecord,
  StoredRouting,
  ThrottleState,
  ThrottleStore,
} from "../../src/access/account-store.ts";
import type { AdminKeyRecord } from "../../src/access/admin-key-store.ts";
import type { CustomRole } from "../../src/access/role-store.ts";
import type { Membership } from "../../src/access/team-store.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { pageOf } from "./fakes.ts";
import { memoryFactors } from "./memory-factors.ts";

/** The account that every installation begins with. */
const DEFAULT_ACCOUNT: AccountRecord = {
  id: DEFAULT_ACCOUNT_ID,
  kind: "person",
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
  readonly identities: (LinkedIdentity & { readonly accountId: string })[];
  readonly invitations: Map<string, InvitationRecord>;
}

/** Compares in code units. */
function compareTexts(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

/** An in-memory AccountStore. */
export function memoryAccountStore(): MemoryAccounts {
  const accounts = new Map([[DEFAULT_ACCOUNT_ID, DEFAULT_ACCOUNT]]);
  const sessions = new Map<string, SessionRecord>();
  const browsers: KnownBrowser[] = [];
  const invitations = new Map<string, InvitationRecord>();
  const identities: MemoryAccounts["identities"] = [];
  const idTokens = new Map<string, string>();
  const signInLinks = new Map<string, SignInLinkRecord>();
  const setupTokens = new Map<string, SetupTokenRecord>();
  const routings = new Map<string, StoredRouting>();
  const members: (Membership & { readonly accountId: string; readonly addedAtMs: number })[] = [];
  const roles = new Map<string, CustomRole>();
  const adminKeys = new Map<string, AdminKeyRecord>();
  const roleOf = ({ role }: AccountRecord) => ({ customRole: roles.get(role) });
  const hasName = (name: string, { id }: CustomRole): boolean =>
    [...roles.values()].some((role) => role.id !== id && role.name.toLowerCase() === name.toLowerCase());
  const membershipsOf = (accountId: string): Membership[] =>
    members
      .filter((each) => each.accountId === accountId)
      .map(({ teamId, role }) => ({ teamId, teamName: accounts.get(teamId)!.name, role }))
      .toSorted((one, other) => compareTexts(one.teamName, other.teamName) || compareTexts(one.teamId, other.teamId));
  const withEmail = (email: string) => [...accounts.values()].find((account) => account.email === email);
  const link = (accountId: string, identity: LinkedIdentity): boolean => {
    const isTaken = identities.some(
      (each) => each.issuer === identity.issuer && (each.subject === identity.subject || each.accountId === accountId),
    );
    if (!isTaken) identities.push({ ...identity, accountId });
    return !isTaken;
  };
  const isClaimed = (): boolean =>
    identities.length > 0 || [...accounts.values()].some(({ passwordHash }) => passwordHash !== undefined);
  const insert = (account: AccountRecord, identity?: LinkedIdentity): boolean => {
    if (account.email !== undefined && withEmail(account.email) !== undefined) return false;
    if (identity !== undefined && !link(account.id, identity)) return false;
    accounts.set(account.id, account);
    return true;
  };
  const removeWhere = <T>(rows: Map<string, T>, ends: (row: T) => boolean): number => {
    const ended = [...rows].filter(([, row]) => ends(row));
    for (const [key] of ended) rows.delete(key);
    return ended.length;
  };
  return {
    ...memoryFactors(sessions),
    accounts,
    sessions,
    browsers,
    identities,
    invitations,
    insert: async (account, identity) => insert(account, identity),
    find: async (id) => accounts.get(id),
    findByEmail: async (email) => withEmail(email),
    list: async (page) => pageOf([...accounts.values()], page),
    findByIdentity: async ({ issuer, subject }) => {
      const found = identities.find((each) => each.issuer === issuer && each.subject === subject);
      return found && accounts.get(found.accountId);
    },
    link: async (accountId, identity) => link(accountId, identity),
    async unlink(accountId, issuer) {
      const at = identities.findIndex((each) => each.accountId === accountId && each.issuer === issuer);
      return at >= 0 && identities.splice(at, 1).length === 1;
    },
    isClaimed: async () => isClaimed(),
    async update(id, changes, expected) {
      const account = accounts.get(id);
      if (account === undefined) return false;
      if (expected !== undefined && "passwordHash" in expected && account.passwordHash !== expected.passwordHash)
        return false;
      if (expected?.role !== undefined && account.role !== expected.role) return false;
      const actor = expected?.actor && accounts.get(expected.actor.id);
      const mayAct = actor?.disabledAtMs === undefined && expected?.actor?.roles.some((role) => role === actor?.role);
      if (expected?.actor !== undefined && !mayAct) return false;
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
    listTeams: async (page, memberId) =>
      pageOf(
        [...accounts.values()]
          .filter(({ kind }) => kind !== "person")
          .filter(({ id }) => memberId === undefined || membershipsOf(memberId).some(({ teamId }) => teamId === id)),
        page,
      ).map((account) => ({ account, members: members.filter(({ teamId }) => teamId === account.id).length })),
    memberships: async (accountId) => membershipsOf(accountId),
    members: async (teamId) =>
      members
        .filter((each) => each.teamId === teamId)
        .map(({ accountId, role, addedAtMs }) => {
          const { id, name, email, disabledAtMs } = accounts.get(accountId)!;
          return { id, name, email, disabledAtMs, role, addedAtMs };
        })
        .toSorted((one, other) => compareTexts(one.name, other.name) || compareTexts(one.id, other.id)),
    async changeMember({ teamId, accountId, role, atMs }, { actor, most }) {
      const [team, person] = [accounts.get(teamId), accounts.get(accountId)];
      if (team === undefined || team.kind === "person") return "unknown team";
      const index = members.findIndex((each) => each.teamId === teamId && each.accountId === accountId);
      const before = members[index]?.role;
      const acting = actor && accounts.get(actor.id);
      if (actor !== undefined) {
        if (acting === undefined || acting.disabledAtMs !== undefined) return "denied";
        const caller = { account: acting, ...roleOf(acting), memberships: membershipsOf(acting.id) };
        if (!actor.mayChange(caller, before)) return "denied";
      }
      if (person?.kind !== "person" || (role !== undefined && person.disabledAtMs !== undefined))
        return "unknown person";
      if (role !== undefined && before === undefined) {
        if (members.filter((each) => each.teamId === teamId).length >= most.members) return "too many members";
        if (membershipsOf(accountId).length >= most.teams) return "too many teams";
      }
      const addedAtMs = members[index]?.addedAtMs ?? atMs;
      if (index >= 0) members.splice(index, 1);
      if (role !== undefined) members.push({ teamId, teamName: team.name, accountId, role, addedAtMs });
      return { before };
    },
    // Keys are in another store: the suites of the database have them.
    async offboard(id, { atMs, expected }) {
      const account = accounts.get(id);
      if (account?.role !== expected.role) return "denied";
      const actor = expected.actor && accounts.get(expected.actor.id);
      const mayAct = actor?.disabledAtMs === undefined && expected.actor?.roles.some((role) => role === actor?.role);
      if (expected.actor !== undefined && !mayAct) return "denied";
      const isOwner = (each: AccountRecord): boolean =>
        each.role === "owner" && each.email !== undefined && each.disabledAtMs === undefined && each.id !== id;
      if (expected.role === "owner" && ![...accounts.values()].some(isOwner)) return "last owner";
      accounts.set(id, { ...account, disabledAtMs: atMs });
      const teams = membershipsOf(id).map(({ teamId, role }) => ({ teamId, role }));
      members.splice(0, members.length, ...members.filter((each) => each.accountId !== id));
      const invitationIds = [...invitations.values()]
        .filter(({ createdBy, usedAtMs }) => createdBy === id && usedAtMs === undefined)
        .map((invitation) => invitation.id);
      removeWhere(invitations, (invitation) => invitationIds.includes(invitation.id));
      const ended = removeWhere(sessions, ({ accountId }) => accountId === id);
      const ownKeys = [...adminKeys.values()].filter((key) => key.accountId === id && key.revokedAtMs === undefined);
      for (const key of ownKeys) adminKeys.set(key.id, { ...key, revokedAtMs: atMs });
      return { keyIds: [], teams, invitationIds, adminKeyIds: ownKeys.map((key) => key.id), sessions: ended };
    },
    async claimDefault(owner, identity) {
      if (isClaimed()) return false;
      if (identity !== undefined && !link(DEFAULT_ACCOUNT_ID, identity)) return false;
      accounts.set(DEFAULT_ACCOUNT_ID, { ...accounts.get(DEFAULT_ACCOUNT_ID)!, ...owner, role: "owner" });
      return true;
    },

    roles: async () => [...roles.values()].toSorted((one, other) => compareTexts(one.name, other.name)),
    async insertRole(role, most) {
      if (roles.size >= most) return "too many";
      if (hasName(role.name, role)) return "name taken";
      roles.set(role.id, role);
      return "done";
    },
    async changeRole(role) {
      if (hasName(role.name, role)) return "name taken";
      if (!roles.has(role.id)) return "unknown role";
      roles.set(role.id, role);
      return "done";
    },
    async removeRole(id) {
      const unused = [...invitations.values()].filter(({ usedAtMs }) => usedAtMs === undefined);
      const inUse = [...accounts.values(), ...unused].filter(({ role }) => role === id).length;
      if (inUse === 0) roles.delete(id);
      return inUse;
    },

    async insertAdminKey(key, most) {
      const working = [...adminKeys.values()].filter(
        ({ accountId, revokedAtMs, expiresAtMs = Infinity }) =>
          accountId === key.accountId && revokedAtMs === undefined && expiresAtMs > key.createdAtMs,
      );
      if (working.length >= most) return false;
      adminKeys.set(key.id, key);
      return true;
    },
    async findAdminKey(hash) {
      const adminKey = [...adminKeys.values()].find((key) => key.hash === hash);
      const account = adminKey && accounts.get(adminKey.accountId);
      return adminKey && account && { adminKey, account, ...roleOf(account), memberships: membershipsOf(account.id) };
    },
    ownerOfAdminKey: async (id) => adminKeys.get(id)?.accountId,
    listAdminKeys: async (limit) =>
      [...adminKeys.values()].toSorted((one, other) => other.createdAtMs - one.createdAtMs).slice(0, limit),
    async touchAdminKey(id, atMs) {
      adminKeys.set(id, { ...adminKeys.get(id)!, lastUsedAtMs: atMs });
    },
    async revokeAdminKey(id, atMs) {
      const key = adminKeys.get(id);
      if (key === undefined || key.revokedAtMs !== undefined) return undefined;
      const revoked = { ...key, revokedAtMs: atMs };
      adminKeys.set(id, revoked);
      return revoked;
    },
    pruneAdminKeys: async (beforeMs) =>
      removeWhere(
        adminKeys,
        ({ revokedAtMs = Infinity, expiresAtMs = Infinity }) => Math.min(revokedAtMs, expiresAtMs) < beforeMs,
      ),

    async insertSession(session, idToken) {
      sessions.set(session.hash, session);
      if (idToken !== undefined) idTokens.set(session.hash, idToken);
    },
    idTokenOf: async (hash) => idTokens.get(hash),
    async findSession(hash) {
      const session = sessions.get(hash);
      const account = session && accounts.get(session.accountId);
      return session && account && { session, account, ...roleOf(account), memberships: membershipsOf(account.id) };
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

    async insertSignInLink(added, nowMs) {
      removeWhere(signInLinks, ({ expiresAtMs }) => expiresAtMs <= nowMs);
      signInLinks.set(added.hash, added);
    },
    async takeSignInLink(hash, nowMs) {
      const found = signInLinks.get(hash);
      signInLinks.delete(hash);
      return found !== undefined && nowMs < found.expiresAtMs ? found : undefined;
    },

    async insertInvitation(invitation) {
      invitations.set(invitation.hash, invitation);
    },
    findInvitation: async (hash) => invitations.get(hash),
    listInvitations: async () =>
      [...invitations.values()].toSorted((one, other) => other.createdAtMs - one.createdAtMs),
    async acceptInvitation(hash, account, { atMs, identity }) {
      const invitation = invitations.get(hash);
      const isUsable = invitation?.usedAtMs === undefined && atMs < (invitation?.expiresAtMs ?? 0);
      if (invitation === undefined || !isUsable || !insert(account, identity)) return false;
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
