import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { makeDataDir } from "../support/data-dir.ts";

let dataDir: string;
beforeAll(async () => {
  dataDir = await makeDataDir("parley-roles-");
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const run = (...argv: readonly string[]) => captureCli(argv, { env: { PARLEY_DATA_DIR: dataDir } });

it("roles are created, listed and removed, with entries in the audit log", async () => {
  const made = await run("roles", "create", "Auditors", "--permissions", "audit.read, usage.read", "--base", "viewer");
  expect(made.stdout).toMatch(/^Created role_\w+ \(Auditors\)\.\n$/);
  // As an owner: also what administrators may not give.
  expect((await run("roles", "create", "Security", "--permissions", "owners.write,accounts.write")).code).toBe(0);
  expect(JSON.parse((await run("roles", "list", "--json")).stdout)).toMatchObject([
    { name: "Auditors", base: "viewer", permissions: ["usage.read", "audit.read"] },
    { name: "Security", base: "developer" },
  ]);
  expect((await run("roles", "list")).stdout).toMatch(/role_\w+ +viewer +Auditors +usage\.read,audit\.read\n/);
  expect((await run("roles", "remove", "Auditors")).stdout).toMatch(/^Removed role_\w+ \(Auditors\)\.\n$/);
  expect(JSON.parse((await run("roles", "list", "--json")).stdout)).toHaveLength(1);
  const { stdout: audit } = await run("audit", "list", "--json");
  expect(audit).toMatch(/role_removed[^]*role_created[^]*role_created/);
});

it.each([
  ["--permissions LIST is required", "create", "X"],
  ["--base is one of developer, viewer", "create", "X", "--permissions", "usage.read", "--base", "owner"],
  ["has an unknown permission", "create", "X", "--permissions", "usage.reed"],
  ["is that of a built-in role", "create", "Owner", "--permissions", "usage.read"],
  ["is that of another role", "create", "security", "--permissions", "usage.read"],
  ["there is no role nobody; parley roles list shows all", "remove", "nobody"],
  ["viewer is built in", "remove", "viewer"],
])("says %s", async (problem, ...argv) => {
  const { code, stderr } = await run("roles", ...argv);
  expect(stderr).toContain(problem);
  expect(code).not.toBe(0);
});
