import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { startConsole } from "../inbound/dashboard/set-up.ts";
import { PASSWORD } from "../access/set-up.ts";

let dataDir: string;
let team = "";
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-invitations-"));
  await run("accounts create --email ada@example.com --role owner --password-stdin");
  team = (JSON.parse((await run("teams create Search --json")).stdout) as { id: string }).id;
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const run = (line: string) => captureCli(line, { env: { PARLEY_DATA_DIR: dataDir }, readInput: async () => PASSWORD });

it("an invitation into a team makes an account that is a member with this role", async () => {
  const invited = await run(`teams invite ${team} eve@example.com --role maintainer --account-role viewer`);
  expect(invited.stderr).toContain(`Invited eve@example.com as viewer and maintainer of ${team}.`);
  const listed = JSON.parse((await run("invitations list --json")).stdout) as object[];
  expect(listed).toMatchObject([
    { email: "eve@example.com", role: "viewer", team: { id: team, role: "maintainer" }, state: "pending" },
  ]);
  const store = await openStore({ dataDir, databaseUrl: undefined });
  const site = await startConsole({ store });
  try {
    const invitationToken = invited.stdout.trim();
    const { session } = await site
      .browser()
      .session.signUp({ email: "eve@example.com", password: PASSWORD, invitationToken });
    const { id } = session!.account!;
    expect((await store.accounts.find(id))?.role).toBe("viewer");
    expect(await store.accounts.memberships(id)).toMatchObject([{ teamId: team, role: "maintainer" }]);
  } finally {
    site.close();
    await store.close();
  }
  expect((await run("invitations list")).stdout).toMatch(/eve@example\.com +viewer +acct_\w+ \(maintainer\) +used +2/);
});

it("a revoked invitation is no longer listed, and is in the audit log", async () => {
  const { id } = JSON.parse((await run("accounts create --email fay@example.com --json")).stdout) as { id: string };
  expect((await run("invitations list")).stdout).toMatch(/fay@example\.com +developer +- +pending +2/);
  expect((await run(`invitations revoke ${id}`)).stdout).toBe(`Revoked ${id}.\n`);
  expect((await run("invitations list")).stdout).not.toContain("fay@");
  expect((await run("audit list --json")).stdout).toContain("invitation_revoked");
});

it.each([
  ["teams invite acct_none eve@example.org", 1, "there is no team acct_none"],
  ["teams invite acct_default eve@example.org", 1, "there is no team acct_default"],
  ["teams invite TEAM ada@example.com", 1, "already has an account"],
  ["teams invite TEAM eve@example.org --role boss", 2, "--role is one of maintainer, developer, viewer"],
  ["teams invite TEAM eve@example.org --account-role boss", 2, "--account-role is one of"],
  ["invitations revoke inv_none", 1, "there is no invitation inv_none"],
])("refuses %j with %i", async (line, expected, text) => {
  const { code, stdout, stderr } = await run(line.replace("TEAM", team));
  expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
  expect(stderr).toContain(text);
});
