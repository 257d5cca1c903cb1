import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AccountStore } from "../../src/access/account-store.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { hashToken } from "../../src/access/secret-token.ts";
import { captureCli } from "../support/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { PASSWORD } from "../access/set-up.ts";
import { makeDataDir } from "../support/data-dir.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = await makeDataDir("parley-accounts-");
});
afterEach(() => rmSync(dataDir, { recursive: true }));

/** Reads the database after the commands. */
async function look<T>(at: (accounts: AccountStore) => Promise<T>): Promise<T> {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  try {
    return await at(store.accounts);
  } finally {
    await store.close();
  }
}

const passwordHash = (): Promise<string | undefined> =>
  look(async (accounts) => (await accounts.find(DEFAULT_ACCOUNT_ID))?.passwordHash);

const run = (line: string, input = PASSWORD, env: Readonly<Record<string, string>> = {}) =>
  captureCli(line, { env: { PARLEY_DATA_DIR: dataDir, ...env }, readInput: async () => input });

const createOwner = () =>
  run("accounts create --email Ada@example.com --name Ada --role owner --password-stdin --json", `${PASSWORD}\n`);

describe("accounts create", () => {
  it("takes over the default account for the first owner, with the password from standard input", async () => {
    const { code, stdout } = await createOwner();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      id: DEFAULT_ACCOUNT_ID,
      email: "ada@example.com",
      role: "owner",
    });
    expect(stdout).not.toContain("argon2");
    expect(await passwordHash()).toContain("$m=47104,t=2,p=1$");
  });

  it("prints an invitation's token, and nothing else, on stdout", async () => {
    await createOwner();
    const { code, stdout, stderr } = await run("accounts create --email bob@example.com");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect(stderr).toContain("Invited bob@example.com as developer");
    expect(await look((accounts) => accounts.findInvitation(hashToken(stdout.trim())))).toMatchObject({
      email: "bob@example.com",
      role: "developer",
    });
    const json = await run("accounts create --email eve@example.com --role owner --json");
    expect(JSON.parse(json.stdout)).toMatchObject({ email: "eve@example.com", role: "owner" });
  });

  it.each([
    ["accounts create", 2, "--email is required"],
    [
      "accounts create --email a@example.com --role boss",
      2,
      "--role is one of owner, administrator, developer, viewer",
    ],
    ["accounts create --email a@example.com --role owner --name A", 2, "--name needs --password-stdin"],
    ["accounts create --email a@example.com", 1, "has to be owner for the first account"],
    ["accounts create --email nobody --role owner", 1, "must be an e-mail address"],
    ["accounts reset-password acct_default", 2, "--password-stdin is required"],
    ["accounts reset-password acct_default --password-stdin", 1, "has no e-mail address"],
    ["accounts reset-password a@example.com --password-stdin", 2, "there is no account a@example.com"],
    ["accounts disable acct_none", 2, "there is no account acct_none"],
    ["accounts", 2, 'unknown command "accounts"; known commands: accounts create, accounts list'],
  ])("%j is refused with %i", async (line, expected, text) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
    expect(stderr).toContain(text);
  });

  it.each(["", "\n", "two words\nin two lines", "short", "password1234"])("refuses the password %j", async (input) => {
    const { code, stderr } = await run("accounts create --email a@b --role owner --password-stdin", input);
    expect(code).toBe(1);
    expect(stderr).toMatch(/standard input|password:/);
  });
});

describe("accounts list, disable, enable and reset-password", () => {
  it("show and change accounts", async () => {
    expect((await run("accounts list")).stdout).toMatch(/acct_default .* unclaimed /);
    await createOwner();
    await run("accounts create --email bob@example.com --password-stdin");
    const list = JSON.parse((await run("accounts list --json")).stdout) as { id: string; state: string }[];
    const bob = list.find(({ id }) => id !== DEFAULT_ACCOUNT_ID)!;
    expect((await run(`accounts disable ${bob.id}`)).stdout).toBe(`Disabled ${bob.id}.\n`);
    expect((await run("accounts list")).stdout).toMatch(/bob@example\.com +bob +developer +disabled/);
    expect((await run("accounts enable Bob@example.com")).stdout).toBe(`Enabled ${bob.id}.\n`);
    expect((await run("accounts disable bob")).stderr).toMatch(
      "there is no account bob; parley accounts list shows all",
    );
    const last = await run(`accounts disable ${DEFAULT_ACCOUNT_ID}`);
    expect({ code: last.code, stderr: last.stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("This is the last owner"),
    });
  });

  it("limit an account, field by field", async () => {
    await createOwner();
    await run(`accounts limit ada@example.com --rpm 100 --budget 2.50`);
    const { stdout } = await run(`accounts limit ${DEFAULT_ACCOUNT_ID} --rpm none --concurrency 4`);
    expect(stdout).toBe("acct_default has the limits: 4 at once, 2.5 USD/month.\n");
    expect(await look((accounts) => accounts.find(DEFAULT_ACCOUNT_ID))).toMatchObject({
      limits: { requestsPerMinute: undefined, concurrentRequests: 4, monthlyBudgetMicroUsd: 2_500_000 },
    });
  });

  it("end all sessions with a new password, by ID or address", async () => {
    await createOwner();
    const at = { createdAtMs: 0, lastSeenAtMs: 0, authenticatedAtMs: 0 };
    const session = {
      accountId: DEFAULT_ACCOUNT_ID,
      ...at,
      method: "password" as const,
      network: undefined,
      browser: undefined,
    };
    for (const who of [DEFAULT_ACCOUNT_ID, "ADA@example.com"]) {
      await look((accounts) => accounts.insertSession({ ...session, hash: "h" }));
      const before = await passwordHash();
      const { stdout } = await run(`accounts reset-password ${who} --password-stdin`, "another set of words\n");
      expect(stdout).toBe("ada@example.com has a new password.\n");
      expect(await look((accounts) => accounts.findSession("h"))).toBeUndefined();
      expect(await passwordHash()).not.toBe(before);
    }
  });
});

describe("accounts sign-in-link", () => {
  it("prints a link for one use, whatever the sign-in of the configuration", async () => {
    await createOwner();
    const { code, stdout } = await run("accounts sign-in-link ada@example.com");
    expect(code).toBe(0);
    const [, token = ""] = /^http:\/\/127\.0\.0\.1:8080\/sign-in#link=([\w-]{43})\n$/.exec(stdout) ?? [];
    const take = () => look((accounts) => accounts.takeSignInLink(hashToken(token), Date.now()));
    expect(await take()).toMatchObject({ accountId: DEFAULT_ACCOUNT_ID });
    expect(await take()).toBeUndefined();
  });

  it("refuses accounts that cannot sign in", async () => {
    expect((await run("accounts sign-in-link acct_default")).stderr).toContain("has no e-mail address");
    await createOwner();
    await run("accounts create --email bob@example.com --password-stdin");
    await run("accounts disable bob@example.com");
    expect((await run("accounts sign-in-link bob@example.com")).stderr).toContain("is disabled");
  });
});

describe("accounts link and unlink", () => {
  const env = {
    PARLEY_SIGN_IN_OIDC_ISSUER: "https://id.example",
    PARLEY_SIGN_IN_OIDC_CLIENT_ID: "parley",
    PARLEY_SIGN_IN_OIDC_CLIENT_SECRET: "0Z7-of-the-client",
  };
  const link = (words: string) => run(words, "", env);
  const ownerOf = (subject: string) =>
    look((accounts) => accounts.findByIdentity({ issuer: "https://id.example", subject }));

  it("replace the person of an account, who has one account only", async () => {
    await createOwner();
    await run("accounts create --email bob@example.com --password-stdin");
    expect((await link("accounts link ada@example.com --subject 00u1")).stdout).toBe(
      "Linked acct_default to 00u1 of https://id.example.\n",
    );
    expect(await ownerOf("00u1")).toMatchObject({ id: DEFAULT_ACCOUNT_ID });
    expect((await link("accounts link bob@example.com --subject 00u1")).stderr).toContain(
      "is linked to the account acct_default already",
    );
    await link("accounts link ada@example.com --subject 00u2");
    expect([await ownerOf("00u1"), (await ownerOf("00u2"))?.id]).toEqual([undefined, DEFAULT_ACCOUNT_ID]);
    expect((await link("accounts unlink ada@example.com")).stdout).toContain("is no longer linked");
    expect((await link("accounts unlink ada@example.com")).stdout).toContain("was not linked");
    expect(await ownerOf("00u2")).toBeUndefined();
  });

  it("need a provider, and a subject", async () => {
    await createOwner();
    expect((await run("accounts link ada@example.com --subject x")).stderr).toContain("has no sign_in.oidc");
    expect((await link("accounts link ada@example.com")).stderr).toContain("--subject is required");
  });
});
