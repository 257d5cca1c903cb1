import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { PASSWORD } from "../access/set-up.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-admin-keys-"));
  await run("accounts create --email ada@example.com --role owner --password-stdin");
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const run = (line: string) => captureCli(line, { env: { PARLEY_DATA_DIR: dataDir }, readInput: async () => PASSWORD });

it("the commands about administration keys make, list and revoke them", async () => {
  const made = await run(
    "admin-key create ci --account ada@example.com --permissions keys.read,keys.write --expires 30d",
  );
  expect(made.stdout).toMatch(/^sk_parley_admin_[0-9A-Za-z]{46}\n$/);
  const id = /akey_\w+/.exec(made.stderr)![0];
  expect(JSON.parse((await run("admin-key list --json")).stdout)).toMatchObject([
    { id, name: "ci", permissions: ["keys.read", "keys.write"], state: "active", last_used: null },
  ]);
  expect((await run(`admin-key revoke ${id}`)).stdout).toBe(`Revoked ${id}.\n`);
  expect((await run("admin-key list")).stdout).toMatch(/revoked +never +acct_default +ci\n$/);
  expect((await run(`admin-key revoke ${id}`)).stderr).toContain(`there is no administration key in use ${id}`);
  const { stdout } = await run("audit list --action admin_key_revoked --json");
  expect(JSON.parse(stdout)).toMatchObject([{ actor: { kind: "command_line" }, object: { kind: "admin_key", id } }]);
});

it("a key of the command line has what its account has, and a lifetime that can be", async () => {
  await run("accounts create --email bob@example.com --password-stdin");
  for (const [line, problem] of [
    ["--account bob@example.com --permissions accounts.read", "has more than the account itself: accounts.read"],
    ["--account bob@example.com --permissions everything", "has an unknown permission; there are keys.read, "],
    ["--account bob@example.com", "--permissions LIST are required"],
    ["--account bob@example.com --permissions keys.read --expires never", "--expires is a lifetime"],
  ] as const)
    expect((await run(`admin-key create ci ${line}`)).stderr).toContain(problem);
  expect((await run("admin-key create ci --account bob@example.com --permissions keys.read")).code).toBe(0);
});
