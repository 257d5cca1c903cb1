import type { Config } from "../config/config.ts";
import type { ConfigSource } from "../config/parse.ts";
import { PRESETS, type Preset } from "../config/presets.ts";
import { NOTHING_STORED, type StoredCredential } from "../config/stored.ts";
import { differencesOf, entriesOf } from "../config/stored-document.ts";
import { type ListedEntry, listEntries } from "../config/stored-entries.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { ConfigurationPorts } from "../inbound/dashboard/configuration-ports.ts";
import type { StoredRows } from "../store/configuration-store.ts";
import { testDraft } from "./provider-draft.ts";
import { type ChangeResult, LACKS, type StoredPorts } from "./stored-changes.ts";
import { changeEntries, findVersion, importDocument, rollBack } from "./stored-edits.ts";
import { toStored } from "./stored-watch.ts";

/** Longest that a change waits until this process has put it in force, and how often it looks. */
const APPLIED_LIMIT_MS = 5_000;
const APPLIED_EVERY_MS = 20;

/** The stored configuration for the dashboard's service. */
export function configurationPortsOf(ports: StoredPorts & { readonly clock: Clock }): ConfigurationPorts {
  const { store, cipher, inForce, source, clock, log } = ports;
  const waitFor = async (result: ChangeResult): Promise<boolean> => {
    const { version } = result;
    if (version === undefined) return false;
    const endMs = clock.monotonic() + APPLIED_LIMIT_MS;
    while ((inForce().stored?.version ?? 0) < version) {
      if (clock.monotonic() > endMs) return false;
      await sleep(clock, APPLIED_EVERY_MS);
    }
    return true;
  };
  const applied = async (change: Promise<ChangeResult>) => {
    const result = await change;
    return { ...result, applied: await waitFor(result) };
  };
  return {
    async entries() {
      const config = inForce();
      const rows = await store.read();
      const { credentials } = toStored(rows, cipher);
      return {
        entries: listEntries(config, source()).map((entry) => withCredential(entry, { config, rows, credentials })),
        version: config.stored?.version ?? 0,
        latestVersion: rows?.version.version ?? 0,
        file: config.file ?? "",
        enabled: config.storedConfiguration.enabled,
        allowsPrivate: config.storedConfiguration.allowPrivate,
      };
    },
    change: (change) => applied(changeEntries(ports, change)),
    replace: (change) => applied(importDocument(ports, change)),
    rollBack: (change) => applied(rollBack(ports, change)),
    async read() {
      const rows = await store.read();
      return { document: rows?.version.document ?? "", version: rows?.version.version ?? 0 };
    },
    versions: async (page) => (await store.list(page)).map(toVersion),
    async version(number, base) {
      const found = await findVersion(ports, number);
      const before = base === undefined ? await store.find(number - 1) : await findVersion(ports, base);
      return {
        version: toVersion(found),
        document: found.document,
        differences: differencesOf(entriesOf(before ?? NOTHING_STORED), entriesOf(found)),
      };
    },
    presets: Object.entries(PRESETS as Readonly<Record<string, Preset>>).map(([name, preset]) => ({
      name,
      dialect: preset.dialect,
      host: preset.host ?? "",
      baseUrl: preset.baseUrl ?? "",
      needsCredential: preset.credential !== undefined || preset.host === "azure",
      credentialName: preset.credential ?? "",
      isLocal: preset.isLocal === true,
    })),
    test: ({ actor, ...draft }, ending) =>
      testDraft(source(), draft, {
        clock,
        ending,
        begin: (address) =>
          log.record({
            action: "provider_tested",
            ...actor,
            object: { kind: "provider", id: draft.name },
            details: { address },
          }),
      }),
  };
}

/** The source of a configuration that was made without one, such as in tests. */
export const NO_SOURCE: ConfigSource = { file: undefined, text: "", env: {} };

interface CredentialParts {
  readonly config: Config;
  readonly rows: StoredRows | undefined;
  readonly credentials: readonly StoredCredential[];
}

function withCredential(entry: ListedEntry, { config, rows, credentials }: CredentialParts) {
  if (entry.section !== "providers" || entry.origin !== "stored") return entry;
  const row = rows?.credentials.find(({ provider }) => provider === entry.name);
  const provider = entry.state === "overridden" ? undefined : config.providers.find(({ name }) => name === entry.name);
  const lack = provider?.simulated === false ? provider.lack : undefined;
  const problems = lack === undefined ? entry.problems : [LACKS[lack]];
  if (row === undefined)
    return lack === undefined ? entry : { ...entry, problems, credential: { state: lack, keys: 0 } };
  const isReadable = credentials.find(({ provider: name }) => name === row.provider)?.apiKeys !== undefined;
  const credential = {
    state: lack ?? (isReadable ? ("usable" as const) : ("unreadable" as const)),
    address: row.address,
    setAtMs: row.set_at_ms,
    setBy: row.set_by ?? undefined,
    keys: row.keys,
  };
  return { ...entry, problems, credential };
}

function toVersion(row: { version: number; at_ms: number; actor_id: string | null; comment: string }) {
  return { version: row.version, atMs: row.at_ms, createdBy: row.actor_id ?? "", comment: row.comment };
}
