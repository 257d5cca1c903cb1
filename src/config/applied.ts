import type { Config } from "./config.ts";
import { KEY_SETTINGS } from "./encryption-keys.ts";
import { HIDDEN, listSettings, type Setting } from "./settings.ts";

/** Whether a reload applies a section of the configuration. */
export const APPLIED: Readonly<Record<keyof Config, "on reload" | "at restart">> = {
  file: "on reload",
  secretsInFile: "on reload",
  providers: "on reload",
  models: "on reload",
  imports: "on reload",
  routes: "on reload",
  aliases: "on reload",
  timeouts: "on reload",
  access: "on reload",
  http: "at restart",
  grpc: "at restart",
  operations: "at restart",
  workers: "at restart",
  dataDir: "at restart",
  databaseUrl: "at restart",
  databaseListenUrl: "at restart",
  databaseReadUrl: "at restart",
  databaseConnections: "at restart",
  outage: "at restart",
  redis: "at restart",
  core: "at restart",
  limits: "on reload",
  burstMs: "at restart",
  signUp: "at restart",
  signIn: "at restart",
  ledger: "at restart",
  responses: "at restart",
  content: "at restart",
  accountCredentials: "on reload",
  keySources: "on reload",
  storedConfiguration: "on reload",
  stored: "on reload",
  alerts: "on reload",
  smtp: "on reload",
  log: "at restart",
  shutdown: "at restart",
  simulator: "at restart",
  retries: "on reload",
  breaker: "on reload",
  overload: "at restart",
  metrics: "at restart",
  tracing: "at restart",
};

/** The sections that differ, and that only a restart applies. */
export function changedAtRestart(before: Config, after: Config): (keyof Config)[] {
  const sections = Object.keys(APPLIED) as (keyof Config)[];
  return sections.filter(
    (section) =>
      APPLIED[section] === "at restart" && JSON.stringify(before[section]) !== JSON.stringify(after[section]),
  );
}

/** Sources of keys: settings in place of the key itself. */
const KEY_SOURCES: ReadonlySet<string> = new Set(
  KEY_SETTINGS.flatMap(([section, name]) => [`${section}.${name}_file`, `${section}.${name}_command`]),
);

/** The field of the configuration that a setting of `listSettings` belongs to. */
export function fieldOf(key: string): keyof Config {
  if (KEY_SOURCES.has(key)) return "keySources";
  if (key === "limits.burst_seconds") return "burstMs";
  const [section = ""] = key.split(".");
  const name = section === "database" ? key.replace(".", "_") : section;
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) as keyof Config;
}

/** Whether a change of a setting needs a restart. */
export function needsRestart(key: string): boolean {
  return APPLIED[fieldOf(key)] === "at restart";
}

/** Settings whose value in the configuration that was read last waits for a restart, with that value. */
export function pendingSettings(running: Config, read: Config): Setting[] {
  const before = new Map(listSettings(running).map(({ key, value }) => [key, value]));
  const next = listSettings(read);
  return changedAtRestart(running, read).flatMap((field) => {
    const own = next.filter(({ key }) => fieldOf(key) === field);
    const changed = own.filter(({ key, value }) => before.get(key) !== value);
    // Of secrets only a mark is listed.
    return changed.length > 0 ? changed : own.filter(({ value }) => value.includes(HIDDEN));
  });
}
