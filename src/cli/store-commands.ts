import { resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { backUp } from "../store/backup.ts";
import { type MigrationPlan, planMigration, type PlannedStatement } from "../store/migration-plan.ts";
import { MIGRATIONS } from "../store/migrations.ts";
import { openStore } from "../store/store.ts";
import { type Command, CONFIG_FLAG, EXIT, JSON_FLAG, writeJson } from "./command.ts";

export const backup: Command = {
  name: "backup",
  summary: "copy the SQLite database to a new file, also while the gateway runs",
  positionals: ["FILE"],
  flags: CONFIG_FLAG,
  async run({ flags, positionals: [file = ""] }, { env, stdout }) {
    const config = loadConfig({ file: flags["config"], env, unused: ["providers"] });
    const target = resolve(file);
    await backUp(config, target);
    stdout.write(`Copied the database to ${target}.\n`);
    return EXIT.ok;
  },
};

export const migrate: Command = {
  name: "migrate",
  summary: "migrate the database to this version, as serve does at its start, or show what that would do",
  positionals: [],
  flags: {
    ...CONFIG_FLAG,
    ...JSON_FLAG,
    plan: { help: "print the pending migrations with their statements, and change nothing" },
  },
  async run({ flags, switches }, { env, stdout }) {
    const config = loadConfig({ file: flags["config"], env, unused: ["providers"] });
    if (switches.has("plan")) {
      const plan = await planMigration(config);
      if (switches.has("json")) writeJson(stdout, toPlanJson(plan));
      else stdout.write(`${describePlan(plan)}\n`);
      return EXIT.ok;
    }
    const store = await openStore(config);
    await store.close();
    const { before, after } = store.versions();
    if (switches.has("json")) writeJson(stdout, { version_before: before, version: after });
    else if (before === after) stdout.write(`The database already has version ${after}.\n`);
    else stdout.write(`Migrated the database from version ${before} to ${after}.\n`);
    return EXIT.ok;
  },
};

function toPlanJson({ version, target, usableFrom, replicasContinue, processes, pending }: MigrationPlan): object {
  return {
    version,
    target_version: target,
    usable_from: usableFrom,
    replicas_continue: replicasContinue,
    processes,
    pending: pending.map((migration) => ({
      version: migration.version,
      name: migration.name,
      statements: migration.statements.map(({ sql, table = null, kind, rows = null }) => ({
        sql,
        table,
        effect: kind,
        estimated_rows: rows,
      })),
    })),
  };
}

function describePlan(plan: MigrationPlan): string {
  const { where, version, target, pending } = plan;
  const known = MIGRATIONS.length;
  if (pending.length === 0) {
    const newer = target > known ? `, which is newer than this program's ${known} and usable for it` : "";
    return `${where} has version ${version}${newer}: nothing is pending.`;
  }
  const steps = pending.flatMap((migration) => [
    "",
    `${migration.version}  ${migration.name}`,
    ...migration.statements.flatMap((statement) => [`    ${statement.sql}`, `        ${describeEffect(statement)}`]),
  ]);
  return [
    `${where} has version ${version}; this program migrates it to ${target}, in one transaction.`,
    describeReplicas(plan),
    ...steps,
  ].join("\n");
}

function describeReplicas({ version, usableFrom, replicasContinue, processes }: MigrationPlan): string {
  if (version === 0) return "It is new.";
  if (replicasContinue)
    return `${describeUse(processes)}; programs that know version ${version} continue to work, during the migration and after it.`;
  return (
    `${describeUse(processes)}. Programs that do not know version ${usableFrom} stop working: ` +
    "update to the release before this one first, or stop them before you migrate."
  );
}

function describeUse(processes: number): string {
  return processes === 1 ? "1 process uses it" : `${processes} processes use it`;
}

function describeEffect({ kind, table, rows }: PlannedStatement): string {
  const count = rows === undefined ? "an unknown number of rows" : `about ${rows} rows`;
  switch (kind) {
    case "new":
      return "only new tables";
    case "moment":
      return `locks ${table} for a moment, and writes none of its rows`;
    case "index":
      return `writes to ${table} wait while its rows are read: ${count}`;
    case "rows":
      return `reads or writes rows of ${table}: ${count}`;
    case "breaking":
      return `locks ${table ?? "its table"}, and takes away or changes what earlier programs use: ${count}`;
  }
}
