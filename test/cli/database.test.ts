import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "parley-cli-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const run = (...argv: readonly string[]) => captureCli(argv, { env: { PARLEY_DATA_DIR: directory } });

describe("parley migrate", () => {
  it("prints the versions before and after, or that the database is up to date", async () => {
    const version = MIGRATIONS.length;
    expect(await run("migrate")).toMatchObject({
      code: 0,
      stdout: `Migrated the database from version 0 to ${version}.\n`,
    });
    expect(await run("migrate")).toMatchObject({ code: 0, stdout: `The database already has version ${version}.\n` });
    const { stdout } = await run("migrate", "--json");
    expect(JSON.parse(stdout)).toEqual({ version_before: version, version });
  });
});

describe("parley migrate --plan", () => {
  it("prints the statements that are pending, and then that none is", async () => {
    const version = MIGRATIONS.length;
    const file = join(directory, "parley.db");
    const { stdout } = await run("migrate", "--plan");
    expect(stdout).toContain(
      `${file} has version 0; this program migrates it to ${version}, in one transaction.\nIt is new.\n`,
    );
    expect(stdout).toContain(`\n${version}  `);
    expect(existsSync(file)).toBe(false);
    await run("migrate");
    expect(await run("migrate", "--plan")).toEqual({
      code: 0,
      stdout: `${file} has version ${version}: nothing is pending.\n`,
      stderr: "",
    });
    expect(JSON.parse((await run("migrate", "--plan", "--json")).stdout)).toEqual({
      version,
      target_version: version,
      usable_from: 23,
      replicas_continue: true,
      processes: 0,
      pending: [],
    });
  });
});

describe("a database that this user may not see", () => {
  it("is not reported as missing", async () => {
    // A loop of links, because root may enter every folder.
    symlinkSync("loop", join(directory, "loop"));
    const env = { PARLEY_DATA_DIR: join(directory, "loop") };
    for (const line of [
      ["keys", "list"],
      ["backup", join(directory, "copy.db")],
      ["migrate", "--plan"],
    ]) {
      const { code, stderr } = await captureCli(line, { env });
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining("parley.db cannot be opened: ELOOP"),
      });
    }
  });
});

describe("parley backup", () => {
  it("copies the database, for its owner only, and not over another file", async () => {
    await run("keys", "create", "--name", "a");
    const target = join(directory, "copy.db");
    expect(await run("backup", target)).toEqual({
      code: 0,
      stdout: `Copied the database to ${target}.\n`,
      stderr: "",
    });
    expect(statSync(target).mode & 0o777).toBe(0o600);
    const { code, stderr } = await run("backup", target);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `parley: ${target} exists already; a backup overwrites nothing.\n`,
    });
  });

  it("reports a missing folder", async () => {
    await run("keys", "create", "--name", "a");
    const target = join(directory, "none", "copy.db");
    expect((await run("backup", target)).stderr).toBe(`parley: ${target} cannot be written: there is no such folder\n`);
  });

  it("reports a missing database", async () => {
    const { code, stderr } = await run("backup", join(directory, "copy.db"));
    expect(code).toBe(1);
    expect(stderr).toContain("There is no database");
  });
});
