import { rmSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { auditEntry } from "../store/contracts/audit-store.ts";
import { makeDataDir } from "../support/data-dir.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = await makeDataDir("parley-audit-");
  const store = await openStore({ dataDir, databaseUrl: undefined });
  await store.audit.append(auditEntry({ action: "sign_in_failed", result: "failed", object: undefined }));
  await store.audit.append(auditEntry({ client: '=HYPERLINK("x"), 1' }));
  await store.close();
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const run = (line: string) => captureCli(line, { env: { PARLEY_DATA_DIR: dataDir } });

const edit = (sql: string): void => {
  const database = new DatabaseSync(join(dataDir, "parley.db"));
  database.exec(sql);
  database.close();
};

describe("audit list", () => {
  it("has who did what, with the change, newest first", async () => {
    await run("keys create --name ci");
    const { code, stdout } = await run("audit list");
    expect(code).toBe(0);
    const [heading, ...rows] = stdout.trimEnd().split("\n");
    expect(heading).toMatch(/^SEQUENCE +TIME +ACTION +ACTOR +OBJECT +NETWORK +CHANGE$/);
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatch(/^3 .* key_created +command line \S+ +key key_\w+ +\{"name":"ci",/);
    expect(rows[1]).toMatch(/^2 .* acct_ada +key key_1 +192\.0\.2\.0\/24 +\{"name":"old"\} -> \{"name":"new"\}$/);
  });

  it("is narrowed by flags, and is JSON for programs", async () => {
    await run("keys create --name ci");
    const list = async (flags: string) =>
      (JSON.parse((await run(`audit list --json ${flags}`)).stdout) as { sequence: number; actor: object }[]).map(
        ({ sequence }) => sequence,
      );
    expect(await list("--failed")).toEqual([1]);
    expect(await list("--action key_updated")).toEqual([2]);
    expect(await list("--object key_1")).toEqual([2]);
    expect(await list("--object key")).toEqual([3, 2]);
    expect(await list("--actor command_line")).toEqual([3]);
    expect(await list("--account acct_default")).toEqual([3]);
    expect(await list("--since 1h")).toEqual([3]);
    expect(await list("--until 2023-11-15")).toEqual([2, 1]);
    const [entry] = JSON.parse((await run("audit list --limit 1 --json")).stdout) as object[];
    expect(entry).toMatchObject({
      action: "key_created",
      actor: { kind: "command_line", id: userInfo().username },
      network: null,
      account: "acct_default",
      result: "done",
      before: null,
      after: { name: "ci", models: "all" },
    });
  });

  it.each([
    ["--action key_revoke", 'there is no action "key_revoke"; did you mean key_revoked?'],
    ["--actor comand_line", 'there is no kind of actor "comand_line"; did you mean command_line?'],
    ["--actor acct_none", "there is no account acct_none; parley accounts list shows all"],
    ["--since yesterday", "--since is a date in UTC such as 2026-11-01"],
    ["--limit 5000", "--limit is a number of entries, 1 to 1000"],
  ])("with %s says what is wrong", async (flags, problem) => {
    const { code, stderr } = await run(`audit list ${flags}`);
    expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
  });
});

describe("audit export", () => {
  it("writes JSON lines, or CSV that no spreadsheet runs", async () => {
    const lines = (await run("audit export")).stdout.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { sequence: number }).sequence)).toEqual([2, 1]);
    const { stdout } = await run("audit export --format csv --action key_updated");
    const [heading, row, end] = stdout.split("\r\n");
    expect(heading).toBe(
      "sequence,time,action,actor_kind,actor_id,network,client,object_kind,object_id,account,result,before,after,details,hash",
    );
    expect(row).toMatch(
      /^2,2023-11-14T22:13:20\.000Z,key_updated,account,acct_ada,192\.0\.2\.0\/24,"'=HYPERLINK\(""x""\), 1",key,key_1,acct_bob,done,"\{""name"":""old""\}",/,
    );
    expect(end).toBe("");
    expect(await run("audit export --format xml")).toMatchObject({ code: 2 });
  });
});

describe("audit verify", () => {
  it("prints the head, with which the next run finds a cut end", async () => {
    const { code, stdout } = await run("audit verify");
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^The audit log is intact: 2 entries\.\nHead: 2:\w{64}\n$/),
    ]);
    const head = /2:\w{64}/.exec(stdout)![0];
    expect(await run(`audit verify --head ${head}`)).toMatchObject({ code: 0 });
    edit(
      "delete from audit_entries where sequence = 2; update audit_chain set head_sequence = 1, head_hash = (select hash from audit_entries)",
    );
    expect(await run("audit verify")).toMatchObject({ code: 0 });
    expect(await run(`audit verify --head ${head}`)).toMatchObject({
      code: 1,
      stdout: "",
      stderr:
        "parley: the audit log is not intact: the log ends with entry 1, the kept head is entry 2: entries were cut off the end\n",
    });
  });

  it("prints the anchor of a pruned log, and says when its beginning was cut off", async () => {
    const hashes = (await run("audit export")).stdout
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { hash: string }).hash);
    const cut = `delete from audit_entries where sequence = 1; update audit_chain set anchor_sequence = 1, anchor_hash = '${hashes[1]}'`;
    edit(cut);
    expect((await run("audit verify")).stdout).toContain(
      `1 earlier ones are pruned.\nAnchor: 1:${hashes[1]}\nHead: 2:`,
    );
    await run("keys create --name ci");
    edit(
      `delete from audit_entries where sequence = 2; update audit_chain set anchor_sequence = 2, anchor_hash = '${hashes[0]}'`,
    );
    expect(await run("audit verify")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("entries up to 2 were cut off the beginning, not pruned"),
    });
  });

  it("names the first problem, and fails", async () => {
    edit("update audit_entries set actor_id = 'acct_eve'");
    const { code, stderr } = await run("audit verify");
    expect([code, stderr]).toEqual([1, expect.stringContaining("not intact: entry 1 was changed")]);
    const { code: failed, stdout } = await run("audit verify --json");
    expect([failed, JSON.parse(stdout)]).toMatchObject([
      1,
      { intact: false, problem: expect.stringContaining("entry 1") },
    ]);
  });

  it("refuses a head that is none", async () => {
    const { code, stderr } = await run("audit verify --head 12");
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("--head is what parley audit verify prints as the head"),
    ]);
  });
});
