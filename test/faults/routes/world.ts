import { randomBytes } from "node:crypto";
import { ADMIN_PREFIX, createAdminKey } from "../../../src/access/admin-keys.ts";
import { generateApiKey, newSecret } from "../../../src/access/api-key.ts";
import { createKey, type KeyRequest, revokeKey } from "../../../src/access/keys.ts";
import { createAuditLog } from "../../../src/access/audit-log.ts";
import { PERMISSIONS_EVERYWHERE } from "../../../src/access/permissions.ts";
import { generateToken, hashToken } from "../../../src/access/secret-token.ts";
import type { TeamRole } from "../../../src/access/team-store.ts";
import { createTeam, setMember } from "../../../src/access/teams.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { openStore, type Store } from "../../../src/store/store.ts";
import {
  CertificateAuthority,
  LOCAL_NAMES,
  makeCertificateFolder,
  type TestCertificate,
} from "../../support/certificates.ts";
import { type Product, startProduct } from "../../support/product.ts";
import { TestIssuer } from "../../support/tokens.ts";
import { ConsoleCaller } from "../support/console.ts";

/** Credentials of a call. */
export type Credentials = Readonly<Record<string, string>>;

/** A caller with a certificate or a token. */
interface CertifiedCaller {
  /** Undefined: it has no certificate. */
  readonly pair: TestCertificate | undefined;
  /** Headers that it sends, too. */
  readonly sent: Credentials;
}

/** Who owns what calls are about. */
export interface ObjectOwner {
  readonly accountId: string;
  readonly completionId: string;
  readonly alertId: string;
  newKeyId(): Promise<string>;
  /** Makes a key whose end users have a budget. */
  newBudgetKeyId(): Promise<string>;
}

/** The running server and all callers. */
export interface RoutesWorld {
  readonly product: Product;
  /** A process with TLS and optional certificates of clients, on the same database. */
  readonly secure: Product;
  readonly authority: CertificateAuthority;
  /** Callers of `secure` by their certificate or token. */
  readonly certified: Readonly<Record<string, CertifiedCaller>>;
  /** Callers by their key, valid or not. */
  readonly keys: Readonly<Record<string, Credentials>>;
  /** Callers by their session. Each call has a new session, because some calls end it. */
  readonly sessions: Readonly<Record<string, () => Promise<Credentials>>>;
  /** Sessions of members of the team, by their role in it; the owner is its maintainer. */
  readonly memberSessions: Readonly<Record<TeamRole | "a viewer of the organisation", () => Promise<Credentials>>>;
  /** Owners of the objects of calls: a person, and a team. */
  readonly owner: ObjectOwner;
  readonly team: ObjectOwner;
  /** A team in which the owner and the members of the team may make keys. */
  readonly receiverId: string;
  close(): Promise<void>;
}

/** The provider for which accounts may have credentials. */
export const RELEASED = "released";

/** The model in all requests. */
export const MODEL = "alpha-haiku-4.5";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * Starts the product with its simulator, twice on one database, the second time with certificates, and creates people of every role, and keys and sessions of all
 * kinds.
 */
export async function startRoutesWorld(databaseUrl: string): Promise<RoutesWorld> {
  const unlimited = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited" };
  const simulator = { enabled: true, tokens_per_second: 100_000, first_token_ms: 0 };
  // Nothing is sent to it.
  const released = { dialect: "openai", base_url: "https://example.com/v1", account_credentials: "allowed" };
  const config = {
    database: { url: databaseUrl },
    account_credentials: { encryption_key: randomBytes(32).toString("base64") },
    sign_up: "open",
    limits: unlimited,
    simulator,
    providers: { [RELEASED]: { ...released, api_keys: ["a-key-of-the-operator"] } },
  };
  const product = await startProduct({ config });
  const people = await signUpAll(product);
  const store = await openStore({ dataDir: product.home, databaseUrl });
  const { organisationOwner, administrator, owner, other, viewer, auditor, disabled } = people;
  const { teamDeveloper, teamViewer, viewingMaintainer } = people;
  const keys = await makeKeys(store, people);
  const certificates = await makeCertificates(store, people, keys);
  const secure = await startProduct({ config: { ...config, ...certificates.config } });
  await store.accounts.update(administrator!, { role: "administrator" });
  for (const id of [viewer!, viewingMaintainer!]) await store.accounts.update(id, { role: "viewer" });
  const { secret: adminSecret } = await createAdminKey(accessTo(store), {
    name: "of the matrix",
    permissions: PERMISSIONS_EVERYWHERE.filter((each) => each !== "owners.write" && each !== "roles.write"),
    lifetimeMs: undefined,
    maker: { account: (await store.accounts.find(administrator!))!, memberships: [] },
    actor: { actorId: administrator!, network: undefined },
  });
  const auditing = ["keys.read", "usage.read", "requests.read", "audit.read"] as const;
  const role = { id: "role_auditor", name: "Auditor", permissions: auditing, base: "viewer", createdAtMs: 1 } as const;
  await store.accounts.insertRole(role, 1);
  await store.accounts.update(auditor!, { role: role.id });
  const members = { [owner!]: "maintainer", [teamDeveloper!]: "developer", [teamViewer!]: "viewer" } as const;
  const teamId = await makeTeam(store, { ...members, [viewingMaintainer!]: "maintainer" });
  const receiverId = await makeTeam(store, Object.fromEntries(Object.keys(members).map((id) => [id, "developer"])));
  const objectsOf = async (accountId: string): Promise<ObjectOwner> => {
    const keyStore = { store: store.keys, clock: systemClock };
    const make = () => createKey(keyStore, { name: "a key", accountId });
    const attributionLimits = { endUserBudgetMicroUsd: 1_000_000 };
    const limited = { name: "a key with budgets", accountId, attributionLimits };
    const { secret } = await make();
    return {
      accountId,
      completionId: await completeOnce(product, { authorization: `Bearer ${secret}` }),
      alertId: await openAlert(store, accountId),
      newKeyId: async () => (await make()).record.id,
      newBudgetKeyId: async () => (await createKey(keyStore, limited)).record.id,
    };
  };
  await store.accounts.update(disabled!, { disabledAtMs: Date.now() });
  return {
    product,
    secure,
    authority: certificates.authority,
    certified: certificates.callers,
    keys: { ...keys, "an administration key": { authorization: `Bearer ${adminSecret}` } },
    sessions: {
      "no session": async () => ({}),
      "a text that is no session": async () => ({ cookie: "sid=nothing" }),
      "an unknown session": async () => ({ cookie: `sid=${generateToken()}` }),
      "an API key": async () => keys["a key"]!,
      "an administrator's API key": async () => keys["an administrator's key"]!,
      "an unknown administration key": async () => ({ authorization: `Bearer ${newSecret(ADMIN_PREFIX)}` }),
      "an administrator's administration key": async () => ({ authorization: `Bearer ${adminSecret}` }),
      "a session that is over": () => openSession(store, owner!, { ageMs: 2 * DAY_MS }),
      "a session of a disabled account": () => openSession(store, disabled!),
      "the owner's session": () => openSession(store, owner!),
      "the owner's session, long after the password": () => openSession(store, owner!, { passwordMs: 11 * MINUTE_MS }),
      "another one's session": () => openSession(store, other!),
      "a viewer's session": () => openSession(store, viewer!),
      "a session of a viewing auditor": () => openSession(store, auditor!),
      "an organisation owner's session": () => openSession(store, organisationOwner!),
      "an administrator's session": () => openSession(store, administrator!),
      "an administrator's session, long after the password": () =>
        openSession(store, administrator!, { passwordMs: 11 * MINUTE_MS }),
    },
    memberSessions: {
      maintainer: () => openSession(store, owner!),
      developer: () => openSession(store, teamDeveloper!),
      viewer: () => openSession(store, teamViewer!),
      "a viewer of the organisation": () => openSession(store, viewingMaintainer!),
    },
    owner: await objectsOf(owner!),
    team: await objectsOf(teamId),
    receiverId,
    async close() {
      await store.close();
      await secure.stop();
      await product.stop();
      certificates.remove();
    },
  };
}

/** Members of the team, beside the owner. */
const MEMBERS = ["teamDeveloper", "teamViewer", "viewingMaintainer"] as const;

/** In the order of their sign-up; the first one becomes the organisation's owner. */
const NAMES = [
  "organisationOwner",
  "administrator",
  "owner",
  "other",
  "viewer",
  "auditor",
  "disabled",
  ...MEMBERS,
] as const;

type People = Readonly<Record<(typeof NAMES)[number], string | undefined>>;
async function openAlert({ alerts }: Store, accountId: string): Promise<string> {
  const finding = {
    rule: "error_rate",
    severity: "warning",
    subject: `account:${accountId}`,
    period: "",
    accountId,
  } as const;
  const nowMs = await alerts.nowMs();
  const open = [{ finding: { ...finding, title: "Requests fail", detail: "" }, receivers: [] }];
  await alerts.apply({ nowMs, seen: [], open, resolve: [] });
  return (await alerts.open()).find((alert) => alert.accountId === accountId)!.id;
}

async function signUpAll(product: Product): Promise<People> {
  const ids: [name: string, id: string][] = [];
  for (const name of NAMES) {
    const person = new ConsoleCaller(product);
    await person.signUp(`${name}@example.com`);
    const { session } = await person.call("SessionService/GetSession");
    ids.push([name, (session as { account: { id: string } }).account.id]);
  }
  return Object.fromEntries(ids) as People;
}

async function makeTeam(store: Store, members: Readonly<Record<string, TeamRole>>): Promise<string> {
  const actor = { actorId: undefined, network: undefined };
  const context = accessTo(store);
  const { id: teamId } = await createTeam(context, { name: "a team", kind: "team", limits: undefined, actor });
  for (const [id, role] of Object.entries(members)) await setMember(context, { teamId, person: { id }, role, actor });
  return teamId;
}

function accessTo({ accounts, audit }: Store) {
  const actor = { kind: "nobody", id: undefined } as const;
  const log = createAuditLog({ store: audit, clock: systemClock, actor, listener: () => undefined });
  return { store: accounts, clock: systemClock, log };
}

async function makeKeys(store: Store, people: People): Promise<Record<string, Credentials>> {
  const context = { store: store.keys, clock: systemClock };
  const make = async (accountId: string | undefined, more: object = {}) =>
    createKey(context, { name: "a key", accountId, ...more });
  const bearer = (key: string): Credentials => ({ authorization: `Bearer ${key}` });
  const revoked = await make(people.owner);
  await revokeKey(context, revoked.record.id);
  const good = await make(people.owner);
  return {
    nothing: {},
    "a text that is no key": bearer("sk_parley_short"),
    "an unknown key": bearer(generateApiKey()),
    "a revoked key": bearer(revoked.secret),
    "an expired key": bearer((await make(people.owner, { lifetimeMs: 1 })).secret),
    "a key of a disabled account": bearer((await make(people.disabled)).secret),
    "a key in another scheme": { authorization: `Basic ${good.secret}` },
    "a key in another header": { "api-key": good.secret },
    "two keys": { ...bearer(good.secret), "x-api-key": generateApiKey() },
    "a session": await openSession(store, people.owner!),
    "an administrator's session": await openSession(store, people.administrator!),
    "a key for another model": bearer((await make(people.owner, { models: ["beta-3-flash"] })).secret),
    "a key": bearer(good.secret),
    "a key as Anthropic's clients send it": { "x-api-key": good.secret },
    "a key as Google's clients send it": { "x-goog-api-key": good.secret },
    "another account's key": bearer((await make(people.other)).secret),
    "an administrator's key": bearer((await make(people.administrator)).secret),
  };
}

/** Creates certificates of all kinds, and the configuration that binds some of them to keys. */
async function makeCertificates(store: Store, people: People, keys: RoutesWorld["keys"]) {
  const authority = new CertificateAuthority();
  const folder = makeCertificateFolder();
  const tls = {
    ...folder.writePair("server", authority.issue({ names: LOCAL_NAMES })),
    client_ca_file: folder.write("ca.pem", authority.cert),
    client_certificates: "optional",
  };
  const context = { store: store.keys, clock: systemClock };
  const bindings: { readonly name: string; readonly key: string }[] = [];
  const callers: Record<string, CertifiedCaller> = {};
  const bind = async (caller: string, request: Partial<KeyRequest>): Promise<string> => {
    const { record } = await createKey(context, { name: "bound", accountId: people.owner, ...request });
    const name = `URI:spiffe://example.org/${record.id}`;
    bindings.push({ name, key: record.id });
    callers[caller] = { pair: authority.issue({ names: [name] }), sent: {} };
    return record.id;
  };
  await bind("a certificate of a key", {});
  await bind("a certificate of a key for another model", { models: ["beta-3-flash"] });
  await bind("a certificate of an expired key", { lifetimeMs: 1 });
  await bind("a certificate of a key of a disabled account", { accountId: people.disabled });
  await revokeKey(context, await bind("a certificate of a revoked key", {}));
  const { pair } = callers["a certificate of a key"]!;
  const issuer = new TestIssuer("https://issuer.example");
  const issuers = [
    {
      issuer: issuer.issuer,
      audience: "parley",
      keys_file: folder.write("keys.json", await issuer.keySet()),
      bindings: bindings.map(({ key }) => ({ claims: { sub: key }, key })),
    },
  ];
  const tokenOf = async (claims: object, of = issuer): Promise<CertifiedCaller> => ({
    pair: undefined,
    sent: { authorization: `Bearer ${await of.sign({ ...claims })}` },
  });
  const [first, second, , , revoked] = bindings.map(({ key }) => key);
  const unbound = authority.issue({ names: ["URI:spiffe://example.org/other", "DNS:example.org"] });
  return {
    authority,
    config: { ...secureSections(tls), access: { certificates: bindings, issuers } },
    callers: {
      ...callers,
      "a token of a key": await tokenOf({ sub: first }),
      "a token of a key for another model": await tokenOf({ sub: second }),
      "a token of a revoked key": await tokenOf({ sub: revoked }),
      "a token of no key": await tokenOf({ sub: "unbound" }),
      "an expired token": await tokenOf({ sub: first, exp: 1_000_000_000 }),
      "a token for another audience": await tokenOf({ sub: first, aud: "other" }),
      "a token that another one has signed": await tokenOf({ sub: first }, new TestIssuer(issuer.issuer)),
      "a token of another issuer": await tokenOf({ sub: first }, new TestIssuer("https://other.example")),
      "no certificate": { pair: undefined, sent: {} },
      "a certificate of no key": { pair: unbound, sent: {} },
      "a certificate of no key, and a key": { pair: unbound, sent: keys["a key"]! },
      "a certificate of a key, and a revoked key": { pair, sent: keys["a revoked key"]! },
      "a certificate of a key, and a text that is no key": { pair, sent: { authorization: "Basic x" } },
    },
    remove: () => folder.remove(),
  };
}

function secureSections(tls: object): object {
  const section = { listen: "127.0.0.1:0", tls };
  // One port for both; `product` has two.
  return { http: { ...section, grpc: true }, grpc: section };
}

/** Creates a session that began and was last used `ageMs` ago, with the password entered `passwordMs` ago. */
async function openSession(
  store: Store,
  accountId: string,
  { ageMs = 0, passwordMs = 0 }: { readonly ageMs?: number; readonly passwordMs?: number } = {},
): Promise<Credentials> {
  const id = generateToken();
  const nowMs = Date.now();
  await store.accounts.insertSession({
    hash: hashToken(id),
    accountId,
    createdAtMs: nowMs - Math.max(ageMs, passwordMs),
    lastSeenAtMs: nowMs - ageMs,
    authenticatedAtMs: nowMs - passwordMs,
    method: "password",
    network: undefined,
    browser: undefined,
  });
  return { cookie: `sid=${id}` };
}

/** Returns the ID of a completion of this key. */
async function completeOnce({ url }: Product, credentials: Credentials): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...credentials, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] }),
  });
  return ((await response.json()) as { id: string }).id;
}
