import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Code } from "@connectrpc/connect";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { StoredContentSchema } from "../../../gen/parley/console/v1/request_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import type { Permission } from "../../../src/access/permissions.ts";
import { Failure } from "../../../src/core/failure.ts";
import { requestTo } from "../../core/requests.ts";
import { entry } from "../../store/contracts/entries.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const ID = "chatcmpl-1";
const CONTENT = create(StoredContentSchema, { request: requestTo(), requestCut: true });

let site: ConsoleUnderTest;
let ada: Person;
let bob: Person;
/** The account of the completion. */
let owner: string;
let reads: [accountId: string, completionId: string][];
let answer: () => typeof CONTENT | undefined;

type Person = Browser & { readonly id: string };

beforeEach(async () => {
  reads = [];
  answer = () => CONTENT;
  site = await startConsole({
    signUp: "open",
    contentKeptMs: 7 * DAY_MS,
    contents: {
      async read(...asked) {
        reads.push(asked);
        return answer();
      },
    },
    ledger: {
      list: async () => ({ entries: [], next: undefined }),
      listSorted: async () => ({ entries: [], next: undefined, sortedSinceMs: undefined }),
      find: async (id, accountIds) =>
        id === ID && accountIds?.includes(owner) !== false ? entry({ completionId: ID, accountId: owner }) : undefined,
      spending: async (subjects) => subjects.map(() => ({ spentMicroUsd: 0, heldMicroUsd: 0 })),
    },
  });
  onTestFinished(() => site.close());
  ada = await site.signedUp("ada");
  bob = await site.signedUp("bob");
  owner = bob.id;
});

const codeOf = async (call: Promise<unknown>): Promise<Code | undefined> =>
  call.then(
    () => undefined,
    async () => (await errorOf(call)).code,
  );

/** Makes bob's role one with these permissions. */
async function giveRole(to: Person, permissions: readonly Permission[]): Promise<void> {
  const { role } = await ada.role.create({
    name: "a role",
    permissions: [...permissions],
    base: AccountRole.DEVELOPER,
  });
  await ada.account.update({ id: to.id, role: AccountRole.CUSTOM, customRoleId: role!.id });
}

describe("the stored prompt and answer of a completion", () => {
  it("is read by owners and administrators, each time with an entry of the audit log", async () => {
    const { content } = await ada.request.getContent({ id: ID });
    expect(content).toEqual(CONTENT);
    await ada.account.update({ id: bob.id, role: AccountRole.ADMINISTRATOR });
    expect((await bob.request.getContent({ id: ID })).content?.requestCut).toBe(true);
    expect(reads).toEqual([
      [owner, ID],
      [owner, ID],
    ]);
    const logged = site.access.logged.filter(({ action }) => action === "content_read");
    expect(logged).toMatchObject(
      [ada, bob].map(({ id }) => ({
        actor: { kind: "account", id },
        accountId: owner,
        object: { kind: "completion", id: ID },
      })),
    );
  });

  it("is not read by the account's own people without the permission", async () => {
    expect(await codeOf(bob.request.getContent({ id: ID }))).toBe(Code.PermissionDenied);
    const team = (await ada.team.create({ name: "Search" })).team!.account!.id;
    await ada.team.setMember({ teamId: team, accountId: bob.id, role: TeamRole.MAINTAINER });
    owner = team;
    const denied = await errorOf(bob.request.getContent({ id: ID }));
    expect([denied.code, denied.rawMessage]).toEqual([Code.PermissionDenied, expect.stringContaining("content.read")]);
    await giveRole(bob, ["requests.read", "audit.read"]);
    expect(await codeOf(bob.request.getContent({ id: ID }))).toBe(Code.PermissionDenied);
    expect(reads).toEqual([]);
  });

  it("is read with a role and an administration key that have the permission", async () => {
    await giveRole(bob, ["content.read"]);
    expect((await bob.request.getContent({ id: ID })).content).toEqual(CONTENT);
    const program = async (permission: Permission) => {
      const lifetime = durationFromMs(3_600_000);
      const { secret, key } = await ada.adminKey.create({ name: "program", permissions: [permission], lifetime });
      return { keyId: key!.id, ...site.browser({ authorization: `Bearer ${secret}` }) };
    };
    const reader = await program("content.read");
    expect((await reader.request.getContent({ id: ID })).content).toEqual(CONTENT);
    expect(site.access.logged.at(-1)).toMatchObject({
      action: "content_read",
      actor: { kind: "admin_key", id: reader.keyId },
    });
    const other = await program("requests.read");
    expect(await codeOf(other.request.getContent({ id: ID }))).toBe(Code.PermissionDenied);
  });

  it("is absent where none is stored, without an entry of the audit log", async () => {
    answer = () => undefined;
    expect((await ada.request.getContent({ id: ID })).content).toBeUndefined();
    expect(site.access.logged.some(({ action }) => action === "content_read")).toBe(false);
    const unknown = await errorOf(ada.request.getContent({ id: "chatcmpl-2" }));
    expect([unknown.code, unknown.rawMessage]).toEqual([Code.InvalidArgument, expect.stringContaining("not found")]);
    answer = () => {
      throw new Failure("overloaded", "Stored prompts and answers are unavailable; try again shortly.");
    };
    expect(await codeOf(ada.request.getContent({ id: ID }))).toBe(Code.Unavailable);
  });
});

describe("a key that stores content", () => {
  it("is made and changed by administrators only, with entries of the audit log", async () => {
    const { key } = await ada.key.create({ name: "a", accountId: bob.id, storeContent: true });
    expect(key).toMatchObject({ storeContent: true, limitedByAdministrator: false });
    expect(site.access.logged.at(-1)).toMatchObject({ action: "key_created" });
    expect(site.access.logged.at(-1)?.after).toContain('"store_content":true');
    const { id } = key!;
    for (const act of [
      bob.key.create({ name: "b", storeContent: true }),
      bob.key.update({ id, storeContent: false }),
      bob.key.update({ id, storeContent: true }),
    ]) {
      const { code, rawMessage } = await errorOf(act);
      expect([code, rawMessage]).toEqual([
        Code.PermissionDenied,
        "Only an administrator may choose a key's storage of prompts and answers.",
      ]);
    }
    expect((await bob.key.update({ id, name: "mine" })).key).toMatchObject({ name: "mine", storeContent: true });
    expect((await bob.key.rotate({ id })).key?.storeContent).toBe(true);
    expect((await bob.key.list({})).keys.map(({ storeContent }) => storeContent)).toEqual([true, true]);
    await ada.key.update({ id, storeContent: false });
    expect(site.access.logged.at(-1)).toMatchObject({
      action: "key_updated",
      before: '{"store_content":true}',
      after: '{"store_content":false}',
    });
    expect((await ada.settings.get({})).contentStoreDays).toBe(7);
  });

  it("needs the setting that says how long", async () => {
    const plain = await startConsole({ signUp: "open" });
    onTestFinished(() => plain.close());
    const eve = await plain.signedUp("eve");
    const { key } = await eve.key.create({ name: "a", storeContent: false });
    for (const act of [
      eve.key.create({ name: "b", storeContent: true }),
      eve.key.update({ id: key!.id, storeContent: true }),
    ]) {
      const error = await errorOf(act);
      expect(error.rawMessage).toContain("content.store_days");
      expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe("store_content");
    }
    expect((await eve.settings.get({})).contentStoreDays).toBe(0);
  });
});
