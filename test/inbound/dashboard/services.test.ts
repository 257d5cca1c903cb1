import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { BudgetPeriod, KeyState, RevocationScope, RotationGrace } from "../../../gen/parley/console/v1/key_pb.js";
import { KeyCapability } from "../../../gen/parley/v1/key_pb.js";
import { RoutePlanSchema } from "../../../gen/parley/v1/route_pb.js";
import { SignUpMode } from "../../../gen/parley/console/v1/session_pb.js";
import {
  SummarizeUsageRequestSchema,
  UsageGrain,
  UsageGrouping,
  UsageStep,
} from "../../../gen/parley/console/v1/usage_pb.js";
import { hashApiKey, isApiKey } from "../../../src/access/api-key.ts";
import { hashToken } from "../../../src/access/secret-token.ts";
import { type LatencyQuery, totalOf, type UsageQuery, type UsageStore } from "../../../src/ledger/usage-store.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { entry } from "../../store/contracts/entries.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

/** Usage that remembers what it was asked, and answers that there is none. */
interface AskedUsage extends UsageStore {
  readonly asked: (UsageQuery | LatencyQuery)[];
}

function askedUsage(): AskedUsage {
  const asked: AskedUsage["asked"] = [];
  return {
    asked,
    async summarize(query) {
      asked.push(query);
      return { rows: [], total: totalOf([]), isChosenByDay: query.by === "account", cutSinceMs: undefined };
    },
    async latency(query) {
      asked.push(query);
      return { overall: undefined, points: [], sinceMs: undefined };
    },
    prune: async () => 0,
    pruneMinutes: async () => 0,
    rank: async () => 0,
  };
}

let usage: AskedUsage;
let site: ConsoleUnderTest;
beforeEach(async () => {
  usage = askedUsage();
  site = await startConsole({ signUp: "open", usage });
});
afterEach(() => site.close());

const STALE_MS = 11 * 60_000;

describe("sessions", () => {
  it("begin with the first owner, and have what a page needs", async () => {
    const ada = site.browser();
    const fresh = await ada.session.getSession({});
    expect(fresh).toMatchObject({ needsOwner: true, signUpMode: SignUpMode.OPEN });
    expect(fresh.session).toBeUndefined();
    const { session } = await ada.session.signUp({ email: "ada@example.com", password: PASSWORD });
    expect(session?.account).toMatchObject({ id: "acct_default", role: AccountRole.OWNER, name: "ada" });
    const known = await ada.session.getSession({});
    expect(known.needsOwner).toBe(false);
    expect(known.session).toEqual(session);
    expect(timestampMs(session!.freshUntil!) - site.access.clock.now()).toBe(600_000);
    expect(timestampMs(session!.expireTime!) - site.access.clock.now()).toBe(24 * 3_600_000);
  });

  it("have a new ID after each sign-in, and the one before has ended", async () => {
    const ada = await site.signedUp("ada");
    const [before] = [ada.cookie()];
    await ada.session.signIn({ email: "ada@example.com", password: PASSWORD });
    expect(ada.cookie()).not.toBe(before);
    expect(site.access.stores.rows("sessions").map(({ hash }) => hash)).toEqual([
      hashToken(ada.cookie().slice("sid=".length)),
    ]);
  });

  it("do not take over an ID that was planted", async () => {
    const ada = await site.signedUp("ada");
    const planted = "p".repeat(43);
    const answer = await site.send("/parley.console.v1.SessionService/SignIn", {
      headers: { "content-type": "application/json", cookie: `sid=${planted}` },
      body: JSON.stringify({ email: "ada@example.com", password: PASSWORD }),
    });
    expect(answer.status).toBe(200);
    expect(String(answer.headers["set-cookie"])).not.toContain(planted);
    expect(await site.access.store.findSession(hashToken(planted))).toBeUndefined();
    expect(ada.id).toBe("acct_default");
  });

  it("are over on the server after signing out", async () => {
    const ada = await site.signedUp("ada");
    const cookie = ada.cookie();
    await ada.session.signOut({});
    expect(ada.cookie()).toBe("");
    const headers = { "content-type": "application/json", cookie };
    expect((await site.send("/parley.console.v1.KeyService/List", { headers, body: "{}" })).status).toBe(401);
    await ada.session.signOut({});
  });

  it("end everywhere else when the password changes", async () => {
    const ada = await site.signedUp("ada");
    const elsewhere = site.browser();
    await elsewhere.session.signIn({ email: "ada@example.com", password: PASSWORD });
    const before = ada.cookie();
    await ada.session.changePassword({ currentPassword: PASSWORD, newPassword: "another set of words" });
    expect(ada.cookie()).not.toBe(before);
    expect((await ada.session.getSession({})).session).toBeDefined();
    expect((await elsewhere.session.getSession({})).session).toBeUndefined();
  });

  it("are refused with the same words and headers for unknown and wrong", async () => {
    await site.signedUp("ada");
    const attempt = async (email: string) => {
      const { status, headers, text } = await site.send("/parley.console.v1.SessionService/SignIn", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email, password: "not these words at all" }),
      });
      const { "x-request-id": id, date, ...others } = headers;
      const { details, ...body } = JSON.parse(text);
      expect(date).toBeDefined();
      const shown = details.map(({ debug }: { debug: object }) => JSON.stringify(debug).replace(String(id), "id"));
      return { status, others: { ...others, "content-length": undefined }, body, shown };
    };
    const known = await attempt("ada@example.com");
    expect(known).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
    expect(await attempt("nobody@example.com")).toEqual(known);
  });

  it("say how long to wait after too many failures", async () => {
    await site.signedUp("ada");
    const guess = () => errorOf(site.browser().session.signIn({ email: "ada@example.com", password: "wrong" }));
    for (let attempt = 0; attempt < 5; attempt += 1) expect((await guess()).code).toBe(Code.Unauthenticated);
    const error = await guess();
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.findDetails(ErrorInfoSchema)[0]?.reason).toBe("RATE_LIMITED");
    expect(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds).toBe(1n);
  });

  it("ask for the password once more, in a way that a page can tell", async () => {
    const ada = await site.signedUp("ada");
    site.access.clock.advance(STALE_MS);
    const error = await errorOf(ada.key.create({ name: "ci" }));
    expect(error.code).toBe(Code.PermissionDenied);
    expect(error.findDetails(ErrorInfoSchema)[0]?.metadata["error_code"]).toBe("reauthentication_required");
    const wrong = await errorOf(ada.session.reauthenticate({ password: "not these words at all" }));
    expect(wrong.code).toBe(Code.InvalidArgument);
    await ada.session.reauthenticate({ password: PASSWORD });
    expect((await ada.key.create({ name: "ci" })).key?.name).toBe("ci");
  });
});

describe("own credentials and aliases", () => {
  const SECRET = "a-key-at-the-provider";

  it("are set and removed by their account's people, and never shown", async () => {
    await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { credential } = await bob.routing.setCredential({ provider: "openai", secret: SECRET });
    expect(credential).toMatchObject({ provider: "openai", setBy: bob.id, inUse: true });
    expect(timestampMs(credential!.setTime!)).toBe(site.access.clock.now());
    const aliases = [{ name: "gpt-*", model: "words" }];
    await bob.routing.setAliases({ aliases });
    const found = await bob.routing.getRouting({});
    expect(found).toMatchObject({ credentials: [credential], providers: ["openai"], aliases });
    expect(
      JSON.stringify(found, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
    ).not.toMatch(/sealed|a-key/);
    await bob.routing.removeCredential({ provider: "openai" });
    await bob.routing.removeCredential({ provider: "openai" });
    expect((await bob.routing.getRouting({})).credentials).toEqual([]);
    const { entries } = await bob.audit.list({});
    const ours = entries.filter(({ action }) => /credential|aliases/.test(action));
    expect(ours.map((each) => [each.action, each.beforeJson, each.afterJson, each.detailsJson])).toEqual([
      ["credential_removed", '{"credential":"set"}', '{"credential":null}', '{"provider":"openai"}'],
      [
        "aliases_changed",
        `{"aliases":{"${aliases[0]!.name}":null}}`,
        `{"aliases":{"${aliases[0]!.name}":"${aliases[0]!.model}"}}`,
        "",
      ],
      ["credential_set", '{"credential":null}', '{"credential":"set"}', '{"provider":"openai"}'],
    ]);
    expect(JSON.stringify(site.access.stores.entries())).not.toContain(SECRET);
  });

  it("of others are for administrators, and changes need the password of the last ten minutes", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    await ada.routing.setCredential({ accountId: bob.id, provider: "openai", secret: SECRET });
    expect((await bob.routing.getRouting({})).credentials).toMatchObject([{ setBy: ada.id }]);
    for (const denied of [
      bob.routing.getRouting({ accountId: ada.id }),
      bob.routing.setCredential({ accountId: ada.id, provider: "openai", secret: SECRET }),
      bob.routing.removeCredential({ accountId: ada.id, provider: "openai" }),
      bob.routing.setAliases({ accountId: ada.id }),
    ])
      expect((await errorOf(denied)).code).toBe(Code.PermissionDenied);
    site.access.clock.advance(STALE_MS);
    for (const stale of [
      bob.routing.setCredential({ provider: "openai", secret: SECRET }),
      bob.routing.removeCredential({ provider: "openai" }),
      bob.routing.setAliases({}),
    ])
      expect((await errorOf(stale)).findDetails(ErrorInfoSchema)[0]?.metadata["error_code"]).toBe(
        "reauthentication_required",
      );
    expect((await bob.routing.getRouting({})).credentials).toHaveLength(1);
  });

  it.each([
    ["a provider that is not released", { provider: "other", secret: SECRET }, "provider"],
    ["a line break", { provider: "openai", secret: `${SECRET}\r\nx: y` }, "secret"],
    ["a short one", { provider: "openai", secret: "short" }, "secret"],
    ["a long one", { provider: "openai", secret: "x".repeat(2_049) }, "secret"],
  ])("are refused for %s, without repeating it", async (_, request, field) => {
    const ada = await site.signedUp("ada");
    const error = await errorOf(ada.routing.setCredential(request));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe(field);
    expect(error.message).not.toContain(request.secret);
    expect(JSON.stringify(site.refusals.map(({ failure }) => failure.message))).not.toContain(request.secret);
  });

  it.each([
    ["a model's ID", [{ name: "words", model: "pictures" }], "aliases[0].name"],
    ["no name", [{ name: "a b", model: "words" }], "aliases[0].name"],
    ["an unknown model", [{ name: "a", model: "none" }], "aliases[0].model"],
    [
      "the same twice",
      [
        { name: "a", model: "words" },
        { name: "a", model: "words" },
      ],
      "aliases[1].name",
    ],
    ["too many", Array.from({ length: 51 }, (_, index) => ({ name: `a${index}`, model: "words" })), "aliases"],
  ])("are refused as aliases: %s", async (_, aliases, field) => {
    const ada = await site.signedUp("ada");
    const error = await errorOf(ada.routing.setAliases({ aliases }));
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe(field);
    expect((await ada.routing.getRouting({})).aliases).toEqual([]);
  });
});

describe("accounts and invitations", () => {
  it("are administered without ever showing a hash", async () => {
    const ada = await site.signedUp("ada");
    const { invitation, token } = await ada.account.createInvitation({
      email: "bob@example.com",
      role: AccountRole.DEVELOPER,
    });
    expect((await ada.account.listInvitations({})).invitations).toEqual([invitation]);
    const bob = site.browser();
    const visitor = site.browser();
    const valid = { valid: true, email: "bob@example.com" };
    expect(await visitor.session.getInvitation({ token })).toMatchObject(valid);
    for (const wrong of ["", "guessed", "x".repeat(43)])
      expect(await visitor.session.getInvitation({ token: wrong })).toMatchObject({ valid: false, email: "" });
    await bob.session.signUp({ email: "bob@example.com", password: PASSWORD, invitationToken: token, name: "Bob" });
    expect(await visitor.session.getInvitation({ token })).toMatchObject({ valid: false, email: "" });
    const late = await errorOf(
      site.browser().session.signUp({ email: "eve@example.com", password: PASSWORD, invitationToken: token }),
    );
    expect(late.code).toBe(Code.PermissionDenied);
    const { accounts } = await ada.account.list({});
    expect(accounts.map(({ email }) => email)).toEqual(["ada@example.com", "bob@example.com"]);
    const { accountId } = { accountId: accounts[1]!.id };
    const changed = await ada.account.update({
      id: accountId,
      role: AccountRole.ADMINISTRATOR,
      limits: { requestsPerMinute: 60n, monthlyBudgetMicroUsd: 0n },
    });
    expect(changed.account).toMatchObject({ role: AccountRole.ADMINISTRATOR, limits: { requestsPerMinute: 60n } });
    expect(changed.account?.limits?.tokensPerMinute).toBeUndefined();
    expect((await bob.account.list({})).accounts).toHaveLength(2);
    await ada.account.update({ id: accountId, disabled: true });
    expect((await errorOf(bob.account.list({}))).code).toBe(Code.Unauthenticated);
    const last = await errorOf(ada.account.update({ id: ada.id, disabled: true }));
    expect(last.rawMessage).toContain("last owner");
  });

  it("let developers change the name of their own account and nothing else", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    expect((await bob.account.update({ id: bob.id, name: "Robert" })).account?.name).toBe("Robert");
    for (const change of [
      { id: bob.id, role: AccountRole.ADMINISTRATOR },
      { id: bob.id, limits: {} },
      { id: bob.id, disabled: false },
      { id: ada.id, name: "x" },
      { id: "acct_none", name: "x" },
    ]) {
      expect((await errorOf(bob.account.update(change))).code).toBe(Code.PermissionDenied);
    }
    site.access.clock.advance(STALE_MS);
    expect((await errorOf(ada.account.update({ id: bob.id, limits: {} }))).rawMessage).toContain(
      "Confirm that it is you",
    );
  });

  it("show developers the entries of the audit log about their own account", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { entries } = await bob.audit.list({});
    expect(entries.map(({ action, network }) => [action, network])).toEqual([["signed_up", "127.0.0.0/24"]]);
    expect((await ada.audit.list({})).entries).toHaveLength(2);
    // From where somebody else acted on one's account is not for members; that somebody did is.
    await ada.account.update({ id: bob.id, limits: { requestsPerMinute: 5n } });
    const ofBob = async (who: Browser) =>
      (await who.audit.list({ filter: { accountId: bob.id }, limit: 1 })).entries.map((each) => [
        each.action,
        each.network,
        each.client === "",
        each.afterJson,
      ]);
    expect(await ofBob(bob)).toEqual([["limits_changed", "", true, '{"requests_per_minute":5}']]);
    expect(await ofBob(ada)).toEqual([["limits_changed", "127.0.0.0/24", false, '{"requests_per_minute":5}']]);
    const page = await ada.audit.list({ filter: { accountId: bob.id }, limit: 2 });
    expect(page.entries.slice(1)).toEqual(entries);
    const error = await errorOf(bob.audit.list({ filter: { accountId: ada.id } }));
    expect(error.code).toBe(Code.PermissionDenied);
    expect((await errorOf(ada.audit.list({ limit: 101 }))).code).toBe(Code.InvalidArgument);
    expect((await errorOf(ada.audit.list({ limit: -1 }))).code).toBe(Code.InvalidArgument);
  });

  it("believe X-Forwarded-For from trusted proxies only", async () => {
    const proxied = await startConsole({ trustedProxies: ["127.0.0.0/8"] });
    for (const own of [site, proxied]) {
      await own.send("/parley.console.v1.SessionService/SignIn", {
        headers: { "content-type": "application/json", "x-forwarded-for": "192.0.2.9" },
        body: JSON.stringify({ email: "ada@example.com", password: "wrong" }),
      });
    }
    expect(site.access.logged.at(-1)?.network).toBe("127.0.0.0/24");
    expect(proxied.access.logged.at(-1)?.network).toBe("192.0.2.0/24");
    proxied.close();
  });
});

describe("keys", () => {
  it("are made, changed, rotated and revoked by their owner", async () => {
    await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { key, secret } = await bob.key.create({
      name: "ci",
      models: { ids: ["words"] },
      capabilities: { capabilities: [KeyCapability.CHAT] },
      limits: { tokensPerMinute: 1000n },
      lifetime: { seconds: 3600n },
    });
    expect(isApiKey(secret)).toBe(true);
    expect(key).toMatchObject({ accountId: bob.id, state: KeyState.ACTIVE, models: { all: false, ids: ["words"] } });
    expect(timestampMs(key!.expireTime!) - timestampMs(key!.createTime!)).toBe(3_600_000);
    const { id } = key!;
    const { key: changed } = await bob.key.update({ id, name: "cd", models: { all: true }, limits: {} });
    expect(changed).toMatchObject({ name: "cd", models: { all: true, ids: [] }, capabilities: [KeyCapability.CHAT] });
    expect(changed?.limits?.tokensPerMinute).toBeUndefined();
    const rotated = await bob.key.rotate({ id, grace: RotationGrace.NONE });
    expect(rotated.secret).not.toBe(secret);
    const { key: revoked } = await bob.key.revoke({ id: rotated.key!.id });
    expect(revoked?.state).toBe(KeyState.REVOKED);
    const { keys } = await bob.key.list({});
    expect(new Set(keys.map(({ state }) => state))).toEqual(new Set([KeyState.EXPIRED, KeyState.REVOKED]));
    expect(site.access.logged.map(({ action }) => action).slice(2)).toEqual([
      "key_created",
      "key_updated",
      "key_rotated",
      "key_revoked",
    ]);
    expect(site.access.logged.at(-1)).toMatchObject({ accountId: bob.id, actor: { kind: "account", id: bob.id } });
  });

  it("are revoked with their predecessors unless the request says otherwise, each with its entry of the audit log", async () => {
    const ada = await site.signedUp("ada");
    const { key: first } = await ada.key.create({ name: "ci" });
    const { key: second } = await ada.key.rotate({ id: first!.id });
    const { key: third } = await ada.key.rotate({ id: second!.id });
    expect(await ada.key.revoke({ id: third!.id, scope: RevocationScope.KEY_ONLY })).toMatchObject({
      key: { state: KeyState.REVOKED },
      revokedPredecessors: [],
    });
    expect(await ada.key.revoke({ id: second!.id })).toMatchObject({ revokedPredecessors: [first!.id] });
    const ended = site.access.logged.filter(({ action }) => action === "key_revoked").map(({ object }) => object?.id);
    expect(ended).toEqual([third!.id, second!.id, first!.id]);
    const { keys } = await ada.key.list({});
    expect(keys.map(({ state }) => state)).toEqual(Array(3).fill(KeyState.REVOKED));
    const unknown = ada.key.revoke({ id: first!.id, scope: 9 as RevocationScope });
    expect((await errorOf(unknown)).findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe("scope");
  });

  it("that an administrator has limited are not given more by their members", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const limits = { monthlyBudgetMicroUsd: 1_000_000n };
    const { key: made } = await ada.key.create({ name: "a", accountId: bob.id, models: { ids: ["words"] }, limits });
    const { key: own } = await bob.key.create({ name: "b" });
    await ada.key.update({ id: own!.id, limits });
    for (const id of [made!.id, own!.id, (await bob.key.rotate({ id: own!.id })).key!.id]) {
      for (const change of [{ limits: {} }, { models: { all: true } }, { capabilities: { capabilities: [1, 2] } }])
        expect((await errorOf(bob.key.update({ id, ...change }))).code).toBe(Code.PermissionDenied);
      const { key } = await bob.key.update({ id, name: "mine" });
      expect(key).toMatchObject({ name: "mine", limits, limitedByAdministrator: true });
    }
    await ada.key.update({ id: made!.id, models: { all: true }, limits: {} });
    const { key: free } = await bob.key.update({ id: made!.id, limits: { requestsPerMinute: 5n } });
    expect(free).toMatchObject({ limitedByAdministrator: false });
  });

  it("have labels that members may require until an administrator does, and tags that only administrators give", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const europe = { regions: ["eu", "ch", "eu"], retentions: [] };
    const { key: own } = await bob.key.create({ name: "b", requiredLabels: europe });
    expect(own).toMatchObject({ requiredLabels: { regions: ["eu", "ch"] }, tags: [], limitedByAdministrator: false });
    const { id } = own!;
    expect((await bob.key.update({ id, requiredLabels: {} })).key?.requiredLabels?.regions).toEqual([]);
    for (const act of [
      bob.key.create({ name: "c", tags: { tags: ["premium"] } }),
      bob.key.update({ id, tags: { tags: [] } }),
    ])
      expect((await errorOf(act)).rawMessage).toBe("Only an administrator may choose a key's tags.");
    await ada.key.update({ id, requiredLabels: { retentions: ["none"] }, tags: { tags: ["premium"] } });
    expect((await errorOf(bob.key.update({ id, requiredLabels: {} }))).code).toBe(Code.PermissionDenied);
    const { key: rotated } = await bob.key.rotate({ id });
    expect(rotated).toMatchObject({ requiredLabels: { retentions: ["none"] }, tags: ["premium"] });
    const wrong = await errorOf(ada.key.update({ id, requiredLabels: { regions: ["E U"] } }));
    expect(wrong.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe("required_labels.regions");
    const many = Array.from({ length: 17 }, (_, index) => `t${index}`);
    expect((await errorOf(ada.key.update({ id, tags: { tags: many } }))).rawMessage).toContain("at most 16");
  });

  it("have limits of end users and sessions, which are an administrator's restriction like others, and in the audit log", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const attributionLimits = { endUserBudgetMicroUsd: 500_000n, endUserRequestsPerMinute: 5n };
    const { key: made } = await bob.key.create({ name: "b", attributionLimits });
    const expected = { ...attributionLimits, endUserBudgetPeriod: BudgetPeriod.DAY, requireEndUser: false };
    expect(made).toMatchObject({ attributionLimits: expected, limitedByAdministrator: false });
    const { id } = made!;
    const monthly = { ...attributionLimits, endUserBudgetPeriod: BudgetPeriod.MONTH, requireEndUser: true };
    const { key: changed } = await ada.key.update({ id, attributionLimits: monthly });
    expect(changed).toMatchObject({ attributionLimits: monthly, limitedByAdministrator: true });
    expect((await errorOf(bob.key.update({ id, attributionLimits: {} }))).code).toBe(Code.PermissionDenied);
    const { key: free } = await ada.key.update({ id, attributionLimits: {} });
    expect(free).toMatchObject({ attributionLimits: { endUserBudgetPeriod: 0 }, limitedByAdministrator: false });
    expect(free?.attributionLimits?.endUserBudgetMicroUsd).toBeUndefined();
    expect(site.access.logged.find(({ action }) => action === "key_updated")).toMatchObject({
      before: '{"end_user_budget_period":"day","require_end_user":null,"limited_by_administrator":false}',
    });
    for (const [field, wrong] of [
      ["session_budget_micro_usd", { sessionBudgetMicroUsd: -1n }],
      ["end_user_requests_per_minute", { endUserRequestsPerMinute: 0n }],
      ["end_user_budget_period", { endUserBudgetPeriod: BudgetPeriod.MONTH }],
      ["end_user_budget_period", { endUserBudgetPeriod: 9 as BudgetPeriod }],
    ] as const) {
      const refused = await errorOf(ada.key.update({ id, attributionLimits: wrong }));
      expect(refused.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe(`attribution_limits.${field}`);
    }
  });

  it("of somebody else are like keys that do not exist, except for administrators", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const eve = await site.signedUp("eve");
    const { key } = await bob.key.create({ name: "bob's" });
    const { id } = key!;
    const acts = [
      (of: string) => eve.key.update({ id: of, name: "mine" }),
      (of: string) => eve.key.rotate({ id: of }),
      (of: string) => eve.key.revoke({ id: of }),
    ];
    for (const act of acts) {
      const [theirs, none] = [await errorOf(act(id)), await errorOf(act("key_none"))];
      expect(theirs.code).toBe(none.code);
      expect(theirs.rawMessage).toBe(none.rawMessage.replace("key_none", id));
    }
    expect((await eve.key.list({})).keys).toEqual([]);
    for (const act of [eve.key.list({ accountId: bob.id }), eve.key.create({ name: "x", accountId: bob.id })]) {
      expect((await errorOf(act)).code).toBe(Code.PermissionDenied);
    }
    expect(await site.keys.list()).toHaveLength(1);
    expect((await ada.key.list({})).keys).toHaveLength(1);
    expect((await ada.key.create({ name: "for bob", accountId: bob.id })).key?.accountId).toBe(bob.id);
    expect((await ada.key.list({ accountId: ada.id })).keys).toEqual([]);
    expect((await ada.key.revoke({ id })).key?.state).toBe(KeyState.REVOKED);
    expect((await errorOf(ada.key.create({ name: "x", accountId: "acct_none" }))).code).toBe(Code.InvalidArgument);
  });

  it.each([
    [{ name: "" }, "name"],
    [{ name: "x", models: { ids: ["nothing"] } }, "models.ids"],
    [{ name: "x", models: {} }, "models"],
    [{ name: "x", models: { all: true, ids: ["words"] } }, "models"],
    [{ name: "x", capabilities: {} }, "capabilities"],
    [{ name: "x", capabilities: { capabilities: [99] } }, "capabilities"],
    [{ name: "x", lifetime: { seconds: 1n } }, "lifetime"],
    [{ name: "x", lifetime: { seconds: -5n } }, "lifetime"],
    [{ name: "x", limits: { requestsPerMinute: 0n } }, "limits.requests_per_minute"],
    [{ name: "x", limits: { monthlyBudgetMicroUsd: 9_000_000_000_000_000_000n } }, "limits.monthly_budget_micro_usd"],
  ])("cannot be made from %o", async (request, field) => {
    const ada = await site.signedUp("ada");
    const error = await errorOf(ada.key.create(request));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe(field);
  });
});

describe("usage and settings", () => {
  const DAY_MS = 86_400_000;

  it("are of one's own account for members, whatever they ask", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const byAccount = { by: UsageGrouping.ACCOUNT, filter: { keyId: "key_ofAda" } };
    expect(await bob.usage.summarize(byAccount)).toMatchObject({ chosenByDay: true });
    await bob.usage.getLatency({});
    expect(await ada.usage.summarize({ step: UsageStep.DAY })).toMatchObject({ chosenByDay: false });
    await ada.usage.getLatency({ filter: { accountId: bob.id } });
    expect(usage.asked.map(({ accountId }) => accountId)).toEqual([bob.id, bob.id, undefined, bob.id]);
    const others = { filter: { accountId: ada.id } };
    const acts = [
      bob.usage.summarize(others),
      bob.usage.getLatency(others),
      bob.usage.getSpending({ accountId: ada.id }),
    ];
    for (const act of acts) expect((await errorOf(act)).code).toBe(Code.PermissionDenied);
  });

  it("are of whole hours, of 30 days unless told otherwise and 366 at most", async () => {
    const ada = await site.signedUp("ada");
    await ada.usage.summarize({});
    const nowMs = site.access.clock.now();
    const untilMs = Math.ceil(nowMs / 3_600_000) * 3_600_000;
    const sinceMs = Math.floor((nowMs - 30 * DAY_MS) / 3_600_000) * 3_600_000;
    expect(usage.asked).toMatchObject([{ by: "none", step: "all", maxGroups: 100, untilMs, sinceMs }]);
    for (const since of [0, nowMs + 1]) {
      const error = await errorOf(ada.usage.summarize({ filter: { since: timestampFromMs(since) } }));
      expect(error.code).toBe(Code.InvalidArgument);
    }
  });

  it("have at most 1,000 steps, and as many groups as can be shown", async () => {
    const ada = await site.signedUp("ada");
    await ada.usage.summarize({ by: UsageGrouping.MODEL, step: UsageStep.HOUR });
    expect(usage.asked).toMatchObject([{ by: "model", step: "hour", maxGroups: 10 }]);
    const filter = { since: timestampFromMs(site.access.clock.now() - 60 * DAY_MS) };
    for (const act of [
      ada.usage.summarize({ filter, step: UsageStep.HOUR }),
      ada.usage.getLatency({ filter, step: UsageStep.HOUR }),
      ada.usage.summarize({ maxGroups: 1_001 }),
      ada.usage.summarize({ maxGroups: -1 }),
      ada.usage.summarize({ maxGroups: 51, step: UsageStep.DAY }),
      ada.usage.summarize({ by: 99 as UsageGrouping }),
      ada.usage.getLatency({ step: 99 as UsageStep }),
    ])
      expect((await errorOf(act)).code).toBe(Code.InvalidArgument);
  });

  it("are of whole minutes within 48 hours, and of the days of a time zone", async () => {
    const ada = await site.signedUp("ada");
    const nowMs = site.access.clock.now();
    const [minute, hour] = [60_000, 3_600_000];
    const filter = { since: timestampFromMs(nowMs - 10 * minute - 1), grain: UsageGrain.MINUTE };
    await ada.usage.summarize({ filter, step: UsageStep.FIVE_MINUTES });
    await ada.usage.getLatency({ filter, step: UsageStep.MINUTE });
    const offsets = [{ fromMs: nowMs - 11 * minute, offsetMs: 5.5 * hour }];
    await ada.usage.summarize({ filter, timeZone: "Asia/Kolkata" });
    const span = { sinceMs: nowMs - 11 * minute, untilMs: nowMs };
    expect(usage.asked).toMatchObject([
      { ...span, grain: "minute", step: "five_minutes" },
      { ...span, step: "minute" },
      { ...span, grain: "minute", offsets },
    ]);
    const old = { since: timestampFromMs(nowMs - 48 * hour - 1), grain: UsageGrain.MINUTE };
    for (const act of [
      ada.usage.summarize({ step: UsageStep.MINUTE, filter: { since: timestampFromMs(nowMs - hour) } }),
      ada.usage.summarize({ filter: old }),
      ada.usage.getLatency({ filter: old }),
      ada.usage.summarize({ filter: { grain: 9 as UsageGrain } }),
      ada.usage.summarize({ timeZone: "Mars/Olympus" }),
      ada.usage.getLatency({ timeZone: "x".repeat(65) }),
    ])
      expect((await errorOf(act)).code).toBe(Code.InvalidArgument);
  });

  it("cannot be asked about what is no time, no ID and no name", async () => {
    const ada = await site.signedUp("ada");
    const never = { seconds: 9_000_000_000_000_000_000n, nanos: 0 };
    const acts = [
      ada.usage.summarize({ filter: { keyId: "a\0b" } }),
      ada.usage.getLatency({ filter: { accountId: "' OR 1=1 --" } }),
      ada.usage.getLatency({ filter: { model: "a\0b" } }),
      ada.usage.summarize({ filter: { outcome: "x".repeat(501) } }),
      ada.usage.summarize({ filter: { since: { seconds: -1n, nanos: 0 } } }),
      ada.usage.getSpending({ accountId: "' OR 1=1 --" }),
      ada.account.update({ id: "acct_\0", name: "x" }),
      ada.account.revokeInvitation({ id: "%" }),
    ];
    for (const act of acts) expect((await errorOf(act)).code).toBe(Code.InvalidArgument);
    const request = create(SummarizeUsageRequestSchema, { filter: { since: never } });
    const body = toBinary(SummarizeUsageRequestSchema, request);
    const answer = await site.send("/parley.console.v1.UsageService/Summarize", {
      headers: { "content-type": "application/proto", cookie: ada.cookie() },
      body,
    });
    expect(answer.status).toBe(400);
    expect(usage.asked).toEqual([]);
  });

  it("say what an account has spent this month, and each key with all of its rotations", async () => {
    const ada = await site.signedUp("ada");
    const startedAtMs = site.access.clock.now();
    const month = new Date(startedAtMs).toISOString().slice(0, 7);
    const { key: first } = await ada.key.create({ name: "a" });
    const { key: second } = await ada.key.rotate({ id: first!.id });
    const of = { accountId: ada.id, startedAtMs };
    await site.access.stores.ledger.insert([
      entry({ ...of, keyId: first!.id, costMicroUsd: 3 }),
      entry({ ...of, keyId: second!.id, keyFamilyId: first!.id, costMicroUsd: 4 }),
    ]);
    expect(await ada.usage.getSpending({})).toMatchObject({ month, spentMicroUsd: 7n });
    const spent = (await ada.key.list({})).keys.map(({ monthSpentMicroUsd }) => monthSpentMicroUsd);
    expect(spent).toEqual([7n, 7n]);
  });

  it("say what keys can be made for", async () => {
    const ada = await site.signedUp("ada");
    expect(await ada.settings.get({})).toMatchObject({
      accountLimits: { requestsPerMinute: 600n },
      signUpMode: SignUpMode.OPEN,
      version: "1.2.3",
      models: [
        { id: "words", images: false },
        { id: "pictures", images: true },
      ],
    });
  });
});

describe("secrets", () => {
  it("are in no answer but the one that gives them, in no event and in no log", async () => {
    const ada = await site.signedUp("ada");
    const { token } = await ada.account.createInvitation({ role: AccountRole.DEVELOPER });
    const { key, secret } = await ada.key.create({ name: "ci" });
    await errorOf(ada.session.reauthenticate({ password: "planted wrong password" }));
    await errorOf(site.browser().session.signIn({ email: "planted@example.com", password: "planted wrong password" }));
    await errorOf(ada.key.revoke({ id: secret }));
    await errorOf(site.browser().session.signUp({ email: "x@example.com", password: "short", invitationToken: token }));
    const shown = [
      await ada.session.getSession({}),
      await ada.account.list({}),
      await ada.account.listInvitations({}),
      await ada.audit.list({}),
      await ada.key.list({}),
      await ada.settings.get({}),
    ];
    const { passwordHash } = (await site.access.store.find(ada.id))!;
    const logs = JSON.stringify([site.access.logged, site.access.stores.entries()]);
    const refusals = JSON.stringify(
      site.refusals.map(({ failure, target }) => [failure.message, target, failure.cause]),
    );
    const answers = JSON.stringify(shown, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    const sessionId = ada.cookie().slice("sid=".length);
    const secrets = [
      PASSWORD,
      "planted wrong",
      passwordHash!,
      sessionId,
      hashToken(sessionId),
      token,
      hashToken(token),
    ];
    for (const planted of [...secrets, secret, hashApiKey(secret)]) {
      expect(answers).not.toContain(planted);
      expect(logs).not.toContain(planted);
      expect(refusals).not.toContain(planted);
    }
    expect(logs).not.toContain("planted@example.com");
    expect(answers).toContain(key!.display);
  });
});

describe("a drain", () => {
  it("lets a call in flight end, and closes its connection", async () => {
    const ada = await site.signedUp("ada");
    const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const accounts = await site.access.store.list();
    site.access.store.list = async () => {
      reached.resolve();
      await goOn.promise;
      return accounts;
    };
    const asked = site.send("/parley.console.v1.AccountService/List", {
      headers: { "content-type": "application/json", cookie: ada.cookie(), connection: "keep-alive" },
      body: "{}",
    });
    await reached.promise;
    const drained = site.server.drain();
    goOn.resolve();
    expect((await asked).status).toBe(200);
    await drained;
  });
});

describe("the explanation of a route", () => {
  it("is that of any key that works, for administrators", async () => {
    const asked: string[] = [];
    site.close();
    site = await startConsole({
      signUp: "open",
      async explain({ model }, { principal }, mode) {
        asked.push(`${model} for ${principal.keyName}, ${mode}`);
        return create(RoutePlanSchema, { model: "chat" });
      },
    });
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const { key } = await bob.key.create({ name: "bob's" });
    const completion = { model: "gpt-5" };
    const { plan } = await ada.model.explainRoute({ keyId: key!.id, completion, stream: true });
    expect(plan?.model).toBe("chat");
    expect(asked).toEqual(["gpt-5 for bob's, stream"]);
    expect((await errorOf(bob.model.explainRoute({ keyId: key!.id, completion }))).code).toBe(Code.PermissionDenied);
    await bob.key.revoke({ id: key!.id });
    for (const [keyId, words] of [
      [key!.id, "is revoked"],
      ["key_none", "key_id: is not the ID of a key"],
    ] as const)
      expect((await errorOf(ada.model.explainRoute({ keyId, completion }))).rawMessage).toContain(words);
    expect(asked).toHaveLength(1);
  });
});
