import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { PASSWORD } from "../access/set-up.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-teams-"));
  await run("accounts create --email ada@example.com --role owner --password-stdin");
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const run = (line: string) => captureCli(line, { env: { PARLEY_DATA_DIR: dataDir }, readInput: async () => PASSWORD });

interface Printed {
  readonly id: string;
}

const json = async (line: string): Promise<Printed> => JSON.parse((await run(`${line} --json`)).stdout) as Printed;

describe("the commands about teams", () => {
  it("make a team with members and keys, transfer a key, and offboard a person", async () => {
    const bob = await json("accounts create --email bob@example.com --password-stdin");
    expect(bob).toMatchObject({ kind: "person", role: "developer" });
    const team = await json("teams create Search --budget 50");
    expect(team).toMatchObject({ kind: "team", role: null, state: "active", name: "Search" });
    expect((await run("teams create CI --service")).stdout).toMatch(/^Created acct_\w+ \(CI\)\.\n$/);
    const added = await run(`teams add ${team.id} bob@example.com --role maintainer`);
    expect(added.stdout).toBe(`${bob.id} is a maintainer of ${team.id}.\n`);
    expect((await run("teams list")).stdout).toMatch(/Search +team +1 +active\n.* CI +service +0 +active/);
    expect(await json("teams list")).toMatchObject([{ id: team.id, members: 1 }, { members: 0 }]);
    expect((await run(`teams members ${team.id}`)).stdout).toMatch(/bob@example\.com +bob +maintainer/);
    expect(await json(`teams members ${team.id}`)).toMatchObject([{ id: bob.id, role: "maintainer", disabled: false }]);
    expect((await run("accounts list")).stdout).toMatch(/Search +team +active/);

    const key = await json("keys create --name crawler --account bob@example.com");
    const moved = await run(`keys transfer ${key.id} --to ${team.id}`);
    expect(moved.stdout).toBe(`${key.id} belongs to ${team.id}.\n`);
    await run("keys create --name other --account bob@example.com");
    const done = await json(`accounts offboard bob@example.com --transfer-keys-to ${team.id}`);
    expect(done).toMatchObject({ id: bob.id, keys: [expect.any(String)], keys_to: team.id, teams: [team.id] });
    expect(await json(`teams members ${team.id}`)).toEqual([]);
    const again = await run("accounts offboard bob@example.com --revoke-keys");
    expect(again.stdout).toBe(`Offboarded ${bob.id}: 0 keys revoked, 0 teams left, 0 sessions ended.\n`);
    // Each of the twenty commands opens the database.
  }, 180_000);

  it.each([
    ["teams add acct_none ada@example.com", 1, "there is no team acct_none"],
    ["teams add acct_default ada@example.com", 1, "there is no team acct_default"],
    ["teams add acct_none nobody@example.com", 2, "there is no account nobody@example.com"],
    ["teams add acct_none ada@example.com --role boss", 2, "--role is one of maintainer, developer, viewer"],
    ["teams members acct_none", 1, "there is no team acct_none"],
    ["keys transfer key_none", 2, "--to is required"],
    ["keys transfer key_none --to acct_default", 1, "there is no key key_none"],
    ["accounts offboard ada@example.com", 2, "give one of --transfer-keys-to ID|EMAIL and --revoke-keys"],
    ["accounts offboard ada@example.com --revoke-keys", 1, "This is the last owner"],
  ])("refuse %j with %i", async (line, expected, text) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
    expect(stderr).toContain(text);
  });
});
