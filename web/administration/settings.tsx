import { useMemo } from "react";
import { useQuery } from "@tanstack/react-query";
import type { GetConfigurationResponse, ReplicaSettings } from "../../gen/parley/console/v1/settings_pb.js";
import { configurationQuery } from "../api/settings.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { SearchField } from "../components/field.tsx";
import { Loading } from "../components/page.tsx";
import { ANCHOR, Panel } from "../components/panel.tsx";
import { Sections } from "../components/sections.tsx";
import { useFind } from "../components/use-find.ts";
import { hasWords } from "../format/search.ts";
import { Administration } from "./administration.tsx";
import { processName } from "./process-name.ts";
import { describeValue, NOT_SET, SETTING_GROUPS, settingName } from "./setting-names.ts";

/** Read-only page of the configuration, for administrators. */
export function Settings() {
  return (
    <Administration title="Settings" description="Read-only view of the active configuration.">
      {() => <Configuration />}
    </Administration>
  );
}

/** A setting, or a fact of the installation, which has no key. */
interface Setting {
  readonly name: string;
  /** Its key in the configuration file. */
  readonly key?: string;
  readonly value: string;
  readonly needsRestart?: boolean;
  /** Values that wait for a restart, by process. */
  readonly waiting?: readonly { readonly process: string; readonly value: string }[];
}

interface Section {
  readonly title: string;
  readonly settings: readonly Setting[];
}

function Configuration() {
  const configuration = useQuery(configurationQuery);
  if (configuration.isPending) return <Loading what="the settings" />;
  if (configuration.isLoadingError) {
    return <Unavailable error={configuration.error} onRetry={() => void configuration.refetch()} />;
  }
  return <AllSettings of={configuration.data} />;
}

function AllSettings({ of }: { readonly of: GetConfigurationResponse }) {
  const [searchText, setSearchText] = useFind();
  const all = useMemo(() => sectionsOf(of), [of]);
  const found = all.flatMap(({ title, settings }) => {
    const matching = settings.filter(({ name, key = "", value }) =>
      hasWords(`${title} ${name} ${key} ${value}`, searchText),
    );
    return matching.length === 0 ? [] : [{ title, settings: matching }];
  });
  const providers = of.providers.filter(({ name, dialect }) => hasWords(`Providers ${name} ${dialect}`, searchText));
  const titles = found.map(({ title }) => title);
  if (providers.length > 0) titles.splice(titles[0] === INSTALLATION ? 1 : 0, 0, PROVIDERS);
  return (
    <Sections
      titles={titles}
      search={<SearchField label="Find a setting" value={searchText} onChange={setSearchText} />}
    >
      <Restarts replicas={of.replicas} />
      <p role="status" className={titles.length === 0 ? "py-8 text-muted" : "sr-only"}>
        {titles.length === 0 ? "No setting matches." : describeFound(found, all)}
      </p>
      {titles.map((title) => (
        <Panel key={title} title={title} {...(title === PROVIDERS && { description: PROVIDERS_NOTE })}>
          {title === PROVIDERS ? (
            <ProviderList providers={providers} />
          ) : (
            <dl className="divide-y divide-line text-sm">
              {found
                .find((section) => section.title === title)!
                .settings.map((setting) => (
                  <Row key={setting.key ?? setting.name} setting={setting} />
                ))}
            </dl>
          )}
        </Panel>
      ))}
    </Sections>
  );
}

const INSTALLATION = "Installation";
const PROVIDERS = "Providers";
const PROVIDERS_NOTE = "Providers in use. URLs and credentials are never shown.";

function describeFound(found: readonly Section[], all: readonly Section[]): string {
  const count = (sections: readonly Section[]): number => sections.flatMap(({ settings }) => settings).length;
  return `${count(found)} of ${count(all)} settings`;
}

function sectionsOf(of: GetConfigurationResponse): readonly Section[] {
  const { entries, replicas, file, version, nodeVersion, database, databaseVersion, rates } = of;
  const installation: readonly Setting[] = [
    { name: "Configuration file", value: file === "" ? "None (using defaults)" : file },
    { name: "Version", value: `Parley ${version} on Node ${nodeVersion}` },
    { name: "Database", value: `${database === "postgres" ? "PostgreSQL" : "SQLite"}, schema ${databaseVersion}` },
    { name: "Rate limits stored in", value: RATES[rates] ?? rates },
  ];
  const groups = SETTING_GROUPS.map(([title, prefixes]) => ({
    title,
    settings: entries
      .filter(({ key }) => prefixes.some((prefix) => key === prefix || key.startsWith(`${prefix}.`)))
      .map(({ key, value, needsRestart }) => ({
        name: settingName(key),
        key,
        value: describeValue(key, value),
        needsRestart,
        waiting: replicas.flatMap(({ replica, pending }) =>
          pending
            .filter((each) => each.key === key)
            .map((each) => ({ process: processName(replica), value: describeValue(key, each.value) })),
        ),
      })),
  }));
  return [{ title: INSTALLATION, settings: installation }, ...groups];
}

const RATES: Readonly<Record<string, string>> = {
  memory: "Memory (shared by all workers)",
  redis: "Redis (shared by all processes)",
  postgres: "PostgreSQL (shared by all processes)",
};

function ProviderList({ providers }: Pick<GetConfigurationResponse, "providers">) {
  return (
    <ul className="divide-y divide-line text-sm">
      {providers.map(({ name, dialect, simulated, models }) => (
        <li key={name} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5 first:pt-0 last:pb-0">
          <bdi className="font-medium wrap-anywhere">{name}</bdi>
          <span className="text-muted">
            {dialect} dialect, {models === 1 ? "1 model" : `${models} models`}
          </span>
          {simulated && <Badge look="warn">Simulated</Badge>}
        </li>
      ))}
    </ul>
  );
}

/** The processes that run with other values than their configuration file has. */
function Restarts({ replicas }: { readonly replicas: readonly ReplicaSettings[] }) {
  const waiting = replicas.filter(({ pending }) => pending.length > 0);
  if (waiting.length === 0) return null;
  return (
    <Panel
      title="Restart needed"
      description="These processes have read other values from their configuration file than they run with. A restart applies them."
    >
      <ul className="divide-y divide-line text-sm">
        {waiting.map(({ replica, pending }) => (
          <li key={replica?.id} className="py-2.5 first:pt-0 last:pb-0">
            <bdi className="font-medium wrap-anywhere">{processName(replica)}</bdi>
            <span className="text-muted wrap-anywhere">: {pending.map(({ key }) => key).join(", ")}</span>
          </li>
        ))}
      </ul>
      <p className="mt-3 text-sm text-muted">
        {replicas.length === 1 ? "The only process" : `${waiting.length} of ${replicas.length} processes`}
      </p>
    </Panel>
  );
}

/** One setting: name, value, and its key, which is the anchor of its address. */
function Row({ setting: { name, key, value, needsRestart, waiting } }: { readonly setting: Setting }) {
  return (
    <div
      id={key}
      className={`-mx-2 grid grid-cols-[minmax(0,1fr)_fit-content(50%)] gap-x-4 px-2 py-1.5 target:bg-accent-soft xl:gap-x-6 xl:grid-cols-[minmax(0,1.1fr)_minmax(0,0.9fr)_minmax(0,1.1fr)] ${ANCHOR}`}
    >
      <dt>{name}</dt>
      <dd
        className={`wrap-anywhere max-xl:text-right ${key === undefined ? "xl:col-span-2" : value === NOT_SET ? "text-muted" : ""}`}
      >
        {value}
        {waiting !== undefined && waiting.length > 0 && (
          <>
            {" "}
            <Badge look="warn">Restart needed</Badge>
            <span className="block text-muted">
              {waiting.map((each) => `${each.process} read: ${each.value}`).join(", ")}
            </span>
          </>
        )}
      </dd>
      {key !== undefined && (
        <dd className="leading-5 max-xl:col-span-2">
          <a
            href={`#${key}`}
            title="Link to this setting"
            className="font-mono text-xs wrap-anywhere text-muted underline-offset-2 hover:text-accent hover:underline"
          >
            {key}
          </a>
          {needsRestart && <span className="text-xs text-muted"> · changed by a restart</span>}
        </dd>
      )}
    </div>
  );
}
