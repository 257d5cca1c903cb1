import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { hashToken } from "../../src/access/secret-token.ts";
import { runCli } from "../../src/cli/cli.ts";
import { type MemoryAccounts, memoryAccountStore, memoryThrottleStore } from "../access/memory-accounts.ts";
import { PASSWORD } from "../access/set-up.ts";

let accounts: MemoryAccounts;
let closed: number;
const throttles = memoryThrottleStore();
beforeEach(() => {
  accounts = memoryAccountStore();
  closed = 0;
});

async function run(line: string, input = PASSWORD) {
  let [stdout, stderr] = ["", ""];
  const code = await runCli(
    line.split(" ").filter((word) => word !== ""),
    {
      env: { PARLEY_DATA_DIR: join(tmpdir(), "parley-never-made") },
      stdout: { write: (text) => (stdout += text) },
      stderr: { write: (text) => (stderr += text) },
      serve: () => Promise.resolve(0),
      openAccounts: async () => ({ accounts, throttles, close: async () => void (closed += 1) }),
      readInput: async () => input,
    },
  );
  return { code, stdout, stderr };
}

const createAdministrator = () =>
  run(
    "accounts create --email Ada@example.com --name Ada --role administrator --password-stdin --json",
    `${PASSWORD}\n`,
  );

describe("accounts create", () => {
  it("takes over the default account for the first administrator, with the password from standard input", async () => {
    const { code, stdout } = await createAdministrator();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      id: DEFAULT_ACCOUNT_ID,
      email: "ada@example.com",
      role: "administrator",
    });
    expect(stdout).not.toContain("argon2");
    expect(accounts.accounts.get(DEFAULT_ACCOUNT_ID)?.passwordHash).toContain("$m=47104,t=2,p=1$");
    expect(closed).toBe(1);
  });

  it("prints an invitation's token, and nothing else, on stdout", async () => {
    await createAdministrator();
    const { code, stdout, stderr } = await run("accounts create --email bob@example.com");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect(stderr).toContain("Invited bob@example.com as member");
    expect(accounts.invitations.get(hashToken(stdout.trim()))).toMatchObject({
      email: "bob@example.com",
      role: "member",
    });
    const json = await run("accounts create --email eve@example.com --role administrator --json");
    expect(JSON.parse(json.stdout)).toMatchObject({ email: "eve@example.com", role: "administrator" });
  });

  it.each([
    ["accounts create", 2, "--email is required"],
    ["accounts create --email a@example.com --role boss", 2, "--role is one of administrator, member"],
    ["accounts create --email a@example.com --role administrator --name A", 2, "--name needs --password-stdin"],
    ["accounts create --email a@example.com", 1, "has to be administrator for the first account"],
    ["accounts create --email nobody --role administrator", 1, "must be an e-mail address"],
    ["accounts reset-password acct_default", 2, "--password-stdin is required"],
    ["accounts reset-password acct_default --password-stdin", 1, "it has no address"],
    ["accounts reset-password a@example.com --password-stdin", 1, "no account with the address a@example.com"],
    ["accounts disable acct_none", 1, "there is no account acct_none"],
    ["accounts", 2, 'unknown command "accounts"; there are: accounts create, accounts list'],
  ])("%j is refused with %i", async (line, expected, text) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
    expect(stderr).toContain(text);
  });

  it.each(["", "\n", "two words\nin two lines", "short", "password1234"])("takes no password %j", async (input) => {
    const { code, stderr } = await run("accounts create --email a@b --role administrator --password-stdin", input);
    expect(code).toBe(1);
    expect(stderr).toMatch(/standard input|password:/);
  });
});

describe("accounts list, disable, enable and reset-password", () => {
  it("show and change accounts", async () => {
    expect((await run("accounts list")).stdout).toMatch(/acct_default .* unclaimed /);
    await createAdministrator();
    await run("accounts create --email bob@example.com --password-stdin");
    const list = JSON.parse((await run("accounts list --json")).stdout) as { id: string; state: string }[];
    const bob = list.find(({ id }) => id !== DEFAULT_ACCOUNT_ID)!;
    expect((await run(`accounts disable ${bob.id}`)).stdout).toBe(`Disabled ${bob.id}.\n`);
    expect((await run("accounts list")).stdout).toMatch(/bob@example\.com +bob +member +disabled/);
    expect((await run(`accounts enable ${bob.id}`)).stdout).toBe(`Enabled ${bob.id}.\n`);
    const last = await run(`accounts disable ${DEFAULT_ACCOUNT_ID}`);
    expect({ code: last.code, stderr: last.stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("This is the last administrator"),
    });
  });

  it("end all sessions with a new password, by ID or address", async () => {
    await createAdministrator();
    const session = { accountId: DEFAULT_ACCOUNT_ID, createdAtMs: 0, lastSeenAtMs: 0, authenticatedAtMs: 0 };
    for (const who of [DEFAULT_ACCOUNT_ID, "ADA@example.com"]) {
      await accounts.insertSession({ ...session, hash: "h" });
      const before = accounts.accounts.get(DEFAULT_ACCOUNT_ID)?.passwordHash;
      const { stdout } = await run(`accounts reset-password ${who} --password-stdin`, "another set of words\n");
      expect(stdout).toBe("ada@example.com has a new password.\n");
      expect(accounts.sessions.size).toBe(0);
      expect(accounts.accounts.get(DEFAULT_ACCOUNT_ID)?.passwordHash).not.toBe(before);
    }
  });
});
