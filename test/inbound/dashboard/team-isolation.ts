import fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { AccountRecord, Role } from "../../../src/access/account-store.ts";
import { ADMIN_PREFIX } from "../../../src/access/admin-keys.ts";
import { hashApiKey, newSecret } from "../../../src/access/api-key.ts";
import type { KeyRecord } from "../../../src/access/key-store.ts";
import { createKey, revokeKey } from "../../../src/access/keys.ts";
import { generateToken, hashToken } from "../../../src/access/secret-token.ts";
import { PERMISSIONS } from "../../../src/access/permissions.ts";
import type { CustomRole } from "../../../src/access/role-store.ts";
import type { TeamRole } from "../../../src/access/team-store.ts";
import { periodAt, systemClock } from "../../../src/core/clock.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { entry } from "../../store/contracts/entries.ts";
import { type ConsoleStores, type ConsoleUnderTest, JSON_TYPE, startConsole } from "./set-up.ts";

/** A custom role that reads the usage of all accounts, and allows what a viewer's does in its own. */
const READER: CustomRole = {
  id: "role_reader",
  name: "Usage reader",
  permissions: ["usage.read"],
  base: "viewer",
  createdAtMs: 1,
};

/** People, their roles in the organisation, and their teams. */
const PEOPLE = {
  ann: { role: "developer", teams: { red: "maintainer" } },
  ben: { role: "developer", teams: { red: "developer", blue: "viewer" } },
  cat: { role: "developer", teams: { blue: "maintainer" } },
  dan: { role: "viewer", teams: { blue: "maintainer", red: "developer" } },
  eva: { role: "developer", teams: {} },
  fay: { role: READER.id, teams: { red: "maintainer" } },
} as const satisfies Record<string, { readonly role: Role; readonly teams: Partial<Record<string, TeamRole>> }>;

type Person = keyof typeof PEOPLE;
const NAMES = Object.keys(PEOPLE) as Person[];
const ACCOUNTS = [...NAMES, "red", "blue", "bot"] as const;
type Name = (typeof ACCOUNTS)[number];

const idOf = (name: Name): string => `acct_${name}`;
/** Occurs in everything that an account owns, and in nothing else; members see each other's names. */
const markOf = (name: Name): string => `owned-by-${name}`;
const titleOf = (name: Name): string => (NAMES.some((person) => person === name) ? name : markOf(name));
/** The key that the account has at first: it can be transferred. */
const keyOf = (name: Name): string => `key_${name}`;
const keyMarkOf = (name: Name): string => `key-of-${name}`;

/** A random call: some person, some RPC, and the accounts that its message names. */
interface Step {
  readonly who: Person;
  /** By an administration key of the person with all permissions, in place of a session. */
  readonly byKey: boolean;
  readonly rpc: keyof typeof RPCS;
  readonly account: Name;
  readonly other: Name;
}

/** Messages of all RPCs about what accounts own. */
const RPCS = {
  "KeyService/List": ({ account }: Step) => ({ accountId: idOf(account) }),
  "KeyService/Create": ({ account }: Step) => ({ accountId: idOf(account), name: markOf(account) }),
  "KeyService/Update": ({ account }: Step) => ({ id: keyOf(account), limits: { requestsPerMinute: "7" } }),
  "KeyService/Rotate": ({ account }: Step) => ({ id: keyOf(account) }),
  "KeyService/Transfer": ({ account, other }: Step) => ({ id: keyOf(account), accountId: idOf(other) }),
  "KeyService/Revoke": ({ account }: Step) => ({ id: keyOf(account) }),
  "RoutingService/GetRouting": ({ account }: Step) => ({ accountId: idOf(account) }),
  "RoutingService/SetAliases": ({ account, other }: Step) => ({
    accountId: idOf(account),
    aliases: [{ name: `by-${other}`, model: "words" }],
  }),
  "RoutingService/SetCredential": ({ account }: Step) => ({
    accountId: idOf(account),
    provider: "openai",
    secret: "a-key-at-the-provider",
  }),
  "RoutingService/RemoveCredential": ({ account }: Step) => ({ accountId: idOf(account), provider: "openai" }),
  "StopService/List": ({ account }: Step) => ({ accountId: idOf(account) }),
  "StopService/Create": ({ account }: Step) => ({
    accountId: idOf(account),
    kind: "STOP_KIND_SESSION",
    value: markOf(account),
  }),
  "AttributionService/ListBudgets": ({ account }: Step) => ({
    keyId: keyOf(account),
    holder: "BUDGET_HOLDER_END_USER",
  }),
  "AttributionService/SetBudget": ({ account, other }: Step) => ({
    keyId: keyOf(account),
    holder: "BUDGET_HOLDER_END_USER",
    name: `end-user-of-${other}`,
    budgetMicroUsd: "7",
  }),
  "OverviewService/Get": ({ account }: Step) => ({ accountId: idOf(account) }),
  "UsageService/Summarize": ({ account }: Step) => ({
    filter: { accountId: idOf(account) },
    by: "USAGE_GROUPING_MODEL",
  }),
  "UsageService/GetLatency": ({ account }: Step) => ({ filter: { accountId: idOf(account) } }),
  "UsageService/GetSpending": ({ account }: Step) => ({ accountId: idOf(account) }),
  "RequestService/List": ({ account, other }: Step) => ({
    filter: { accountId: idOf(account), keyId: account === other ? "" : keyOf(other) },
  }),
  "RequestService/Get": ({ account }: Step) => ({ id: markOf(account) }),
  "AuditService/List": ({ account }: Step) => ({ filter: { accountId: idOf(account) } }),
  "AccountService/Update": ({ account }: Step) => ({ id: idOf(account), name: `new ${titleOf(account)}` }),
  "AccountService/List": () => ({}),
  "TeamService/List": () => ({}),
  "TeamService/ListMembers": ({ account }: Step) => ({ teamId: idOf(account) }),
  "TeamService/SetMember": ({ account, other }: Step) => ({
    teamId: idOf(account),
    accountId: idOf(other),
    role: "TEAM_ROLE_DEVELOPER",
  }),
  "TeamService/RemoveMember": ({ account, other }: Step) => ({ teamId: idOf(account), accountId: idOf(other) }),
} as const satisfies Record<string, (step: Step) => object>;

/** What the custom role allows in all accounts. */
const READING_USAGE: ReadonlySet<keyof typeof RPCS> = new Set([
  "OverviewService/Get",
  "UsageService/Summarize",
  "UsageService/GetLatency",
  "UsageService/GetSpending",
]);

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    who: fc.constantFrom(...NAMES),
    byKey: fc.boolean(),
    rpc: fc.constantFrom(...(Object.keys(RPCS) as (keyof typeof RPCS)[])),
    account: fc.constantFrom(...ACCOUNTS),
    other: fc.constantFrom(...ACCOUNTS),
  }),
  { minLength: 10, maxLength: 40 },
);

/** Hundreds of calls, each with all that is stored before and after it. */
const MAX_MS = 180_000;

/** Registers the property of permissions on a kind of database. */
export function describeIsolation(open: () => Promise<ConsoleStores>, runs: number): void {
  it(
    "no sequence of calls by members reads or changes what is of a team in which they are not",
    async () => {
      const seen = { calls: 0, done: 0, refused: 0 };
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const world = await startWorld(await open());
          for (const step of sequence) await world.take(step, seen);
        }),
        { numRuns: runs },
      );
      // Calls of both kinds took place, so that the property says something.
      expect(seen.done).toBeGreaterThan(seen.calls / 10);
      expect(seen.refused).toBeGreaterThan(seen.calls / 4);
    },
    MAX_MS,
  );
}

type Seen = Record<"calls" | "done" | "refused", number>;

async function startWorld(store: ConsoleStores) {
  const site = await startConsole({ store });
  onTestFinished(() => site.close());
  await fill(store, site);
  const cookies = new Map<Person, string>();
  const adminKeys = new Map<Person, string>();
  for (const name of NAMES) {
    cookies.set(name, await openSession(store, site, idOf(name)));
    adminKeys.set(name, await makeAdminKey(store, site, idOf(name)));
  }

  /** What a person may read and change of an account, by rules of this test's own. */
  const rightsOf = async (who: Person): Promise<(name: Name) => "nothing" | "read" | "write"> => {
    const memberships = await store.accounts.memberships(idOf(who));
    const isViewer = PEOPLE[who].role !== "developer";
    return (name) => {
      if (name === who) return isViewer ? "read" : "write";
      const role = memberships.find(({ teamId }) => teamId === idOf(name))?.role;
      if (role === undefined) return "nothing";
      return role === "viewer" || isViewer ? "read" : "write";
    };
  };
  const budgetsOf = async ({ keyFamilyId }: KeyRecord) => {
    const period = periodAt(site.access.clock.now(), "month");
    return store.attributedBudgets.list({ kind: "end_user", keyFamilyId, period, search: "", limit: 100 });
  };
  /** Everything that is stored of each account, and who owns the keys of `keyOf`. */
  const readAll = async () => {
    const ids = ACCOUNTS.map(idOf);
    const keys = await store.keys.list(ids);
    const stops = await store.stops.list(ids);
    const states = new Map<Name, string>();
    for (const name of ACCOUNTS) {
      const own = keys.filter(({ accountId }) => accountId === idOf(name));
      const state = [
        await Promise.all(own.map(budgetsOf)),
        await store.accounts.find(idOf(name)),
        await store.accounts.routing(idOf(name)),
        stops.filter(({ accountId }) => accountId === idOf(name)),
        // Their names are their own.
        (await store.accounts.members(idOf(name))).map(({ id, role }) => `${id} ${role}`).toSorted(),
        own,
      ];
      states.set(name, JSON.stringify(state));
    }
    const ownerOf = (name: Name): Name =>
      keys.find(({ id }) => id === keyOf(name))!.accountId.slice("acct_".length) as Name;
    return { states, ownerOf };
  };
  let stored = await readAll();

  return {
    async take(step: Step, seen: Seen): Promise<void> {
      const { who, byKey, rpc } = step;
      const credentials = byKey ? { authorization: `Bearer ${adminKeys.get(who)}` } : { cookie: cookies.get(who)! };
      const rightTo = await rightsOf(who);
      const before = stored;
      // Refills the rate of changes.
      site.access.clock.advance(1_000);
      const { status, text } = await site.send(`/parley.console.v1.${rpc}`, {
        headers: { ...JSON_TYPE, ...credentials },
        body: JSON.stringify(RPCS[rpc](step)),
      });
      expect([200, 400, 403], text).toContain(status);
      seen.calls += 1;
      seen[status === 200 ? "done" : "refused"] += 1;
      stored = await readAll();
      for (const name of ACCOUNTS) {
        const right = rightTo(name);
        const readsAll = PEOPLE[who].role === READER.id && READING_USAGE.has(rpc);
        if (right === "nothing" && !readsAll)
          expect(text, `${who} reads ${name} by ${rpc}`).not.toContain(markOf(name));
        // Past requests of an account have the name of a key that has another owner now.
        const isPast = rpc.startsWith("RequestService/") && right !== "nothing";
        if (rightTo(before.ownerOf(name)) === "nothing" && !isPast && !readsAll)
          expect(text, `${who} reads the key of ${name} by ${rpc}`).not.toContain(keyMarkOf(name));
        if (right !== "write")
          expect(stored.states.get(name), `${who} changes ${name} by ${rpc}`).toBe(before.states.get(name));
      }
    },
  };
}

/** Makes the accounts, and for each a key, a request and an event. */
async function fill(store: ConsoleStores, site: ConsoleUnderTest): Promise<void> {
  const nowMs = site.access.clock.now();
  await store.accounts.insertRole(READER, 1);
  for (const name of ACCOUNTS) {
    const person = NAMES.find((each) => each === name);
    const account: AccountRecord = {
      id: idOf(name),
      kind: person === undefined ? (name === "bot" ? "service" : "team") : "person",
      email: person && `${person}@example.com`,
      name: titleOf(name),
      role: person === undefined ? "developer" : PEOPLE[person].role,
      passwordHash: person && "x",
      limits: NO_LIMITS,
      createdAtMs: nowMs,
      disabledAtMs: undefined,
    };
    await store.accounts.insert(account);
    const { store: keys, clock } = { store: store.keys, clock: systemClock };
    const made = await createKey({ store: keys, clock }, { name: keyMarkOf(name), accountId: account.id });
    await revokeKey({ store: keys, clock }, made.record.id);
    const attributionLimits = { endUserBudgetMicroUsd: 100, endUserBudgetPeriod: "month" } as const;
    await store.keys.insert({
      hash: `hash of ${name}`,
      record: { ...made.record, id: keyOf(name), keyFamilyId: keyOf(name), attributionLimits },
    });
    const holders = { kind: "end_user", keyFamilyId: keyOf(name), period: periodAt(nowMs, "month") } as const;
    await store.attributedBudgets.setLimit(holders, `end-user-of-${keyMarkOf(name)}`, 50);
    const [requestId, endedAtMs] = [markOf(name), nowMs - 1_000];
    const facts = { requestId, accountId: account.id, keyId: keyOf(name), requestedModel: markOf(name) };
    await store.ledger.insert([entry({ ...facts, servedModel: markOf(name), startedAtMs: endedAtMs - 1, endedAtMs })]);
    await store.audit.append({
      atMs: nowMs,
      action: "key_created",
      actor: { kind: "account", id: account.id },
      network: undefined,
      client: undefined,
      object: { kind: "key", id: markOf(name) },
      accountId: account.id,
      result: "done",
      before: undefined,
      after: undefined,
      details: undefined,
    });
  }
  for (const name of NAMES) {
    for (const [team, role] of Object.entries(PEOPLE[name].teams))
      await store.accounts.changeMember(
        { teamId: `acct_${team}`, accountId: idOf(name), role, atMs: nowMs },
        { most: { members: 9, teams: 9 } },
      );
  }
}

async function openSession(store: ConsoleStores, { access }: ConsoleUnderTest, accountId: string): Promise<string> {
  const id = generateToken();
  const nowMs = access.clock.now();
  const at = { method: "password", createdAtMs: nowMs, lastSeenAtMs: nowMs, authenticatedAtMs: nowMs } as const;
  await store.accounts.insertSession({ hash: hashToken(id), accountId, ...at, network: undefined, browser: undefined });
  return `sid=${id}`;
}

/** A key with all permissions, also those that its account does not have. */
async function makeAdminKey(store: ConsoleStores, { access }: ConsoleUnderTest, accountId: string): Promise<string> {
  const secret = newSecret(ADMIN_PREFIX);
  const key = { id: `akey_${accountId.slice("acct_".length)}`, hash: hashApiKey(secret), accountId };
  const ends = { expiresAtMs: undefined, revokedAtMs: undefined, lastUsedAtMs: undefined };
  const facts = { name: "all", display: "", permissions: PERMISSIONS, createdAtMs: access.clock.now() };
  await store.accounts.insertAdminKey({ ...key, ...facts, ...ends }, 1);
  return secret;
}
