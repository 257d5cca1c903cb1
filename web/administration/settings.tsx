import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import type {
  ConfigurationEntry,
  GetConfigurationResponse,
  ReplicaSettings,
} from "../../gen/parley/console/v1/settings_pb.js";
import { configurationQuery } from "../api/settings.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { Administration } from "./administration.tsx";
import { processName } from "./process-name.ts";
import { describeValue, SETTING_GROUPS, settingName } from "./setting-names.ts";

/** Read-only page of the configuration, for administrators. */
export function Settings() {
  return (
    <Administration
      title="Settings"
      description="Read-only view of the active configuration, and what of it needs a restart."
    >
      {() => <Configuration />}
    </Administration>
  );
}

function Configuration() {
  const configuration = useQuery(configurationQuery);
  if (configuration.isPending) return <Loading what="the settings" />;
  if (configuration.isLoadingError) {
    return <Unavailable error={configuration.error} onRetry={() => void configuration.refetch()} />;
  }
  const { entries, replicas } = configuration.data;
  const groups = SETTING_GROUPS.map(([title, prefixes]) => {
    const own = entries.filter(({ key }) => prefixes.some((prefix) => key === prefix || key.startsWith(`${prefix}.`)));
    return [title, own] as const;
  });
  return (
    <div className="space-y-6">
      <Restarts replicas={replicas} />
      <Panel title="Installation">
        <Installation of={configuration.data} />
      </Panel>
      <Panel title="Providers" description="Providers in use. URLs and credentials are never shown.">
        <ul className="divide-y divide-line text-sm">
          {configuration.data.providers.map(({ name, dialect, simulated, models }) => (
            <li key={name} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2.5 first:pt-0 last:pb-0">
              <bdi className="font-medium wrap-anywhere">{name}</bdi>
              <span className="text-muted">
                {dialect} dialect, {models === 1 ? "1 model" : `${models} models`}
              </span>
              {simulated && <Badge look="warn">Simulated</Badge>}
            </li>
          ))}
        </ul>
      </Panel>
      {groups.map(([title, own]) => (
        <Panel key={title} title={title}>
          <dl className="divide-y divide-line text-sm">
            {own.map((entry) => (
              <SettingRow key={entry.key} entry={entry} replicas={replicas} />
            ))}
          </dl>
        </Panel>
      ))}
    </div>
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

interface SettingRowProps {
  readonly entry: ConfigurationEntry;
  readonly replicas: readonly ReplicaSettings[];
}

/** A setting in force, with the values that wait for a restart. */
function SettingRow({ entry: { key, value, needsRestart }, replicas }: SettingRowProps) {
  const waiting = replicas.flatMap(({ replica, pending }) =>
    pending.filter((each) => each.key === key).map((each) => ({ replica, value: each.value })),
  );
  const hint = needsRestart ? `${key} · changed by a restart` : key;
  return (
    <Row name={settingName(key)} hint={hint}>
      {describeValue(key, value)}
      {waiting.length > 0 && (
        <>
          {" "}
          <Badge look="warn">Restart needed</Badge>
          <ul className="mt-1 text-muted">
            {waiting.map(({ replica, value: next }) => (
              <li key={replica?.id}>
                {processName(replica)} read: {describeValue(key, next)}
              </li>
            ))}
          </ul>
        </>
      )}
    </Row>
  );
}

function Installation({ of }: { readonly of: GetConfigurationResponse }) {
  const { file, version, nodeVersion, database, databaseVersion, rates } = of;
  return (
    <dl className="divide-y divide-line text-sm">
      <Row name="Configuration file">{file === "" ? "None (using defaults)" : file}</Row>
      <Row name="Version">
        Parley {version} on Node {nodeVersion}
      </Row>
      <Row name="Database">
        {database === "postgres" ? "PostgreSQL" : "SQLite"}, schema {databaseVersion}
      </Row>
      <Row name="Rate limits stored in">{RATES[rates] ?? rates}</Row>
    </dl>
  );
}

const RATES: Readonly<Record<string, string>> = {
  memory: "Memory (shared by all workers)",
  redis: "Redis (shared by all processes)",
  postgres: "PostgreSQL (shared by all processes)",
};

/** One setting: name, configuration key and value. */
function Row({
  name,
  hint,
  children,
}: {
  readonly name: string;
  readonly hint?: string;
  readonly children: ReactNode;
}) {
  return (
    <div className="grid gap-x-6 gap-y-0.5 py-2.5 first:pt-0 last:pb-0 sm:grid-cols-2">
      <dt>
        {name}
        {hint !== undefined && <code className="block font-mono text-xs wrap-anywhere text-muted">{hint}</code>}
      </dt>
      <dd className="wrap-anywhere">{children}</dd>
    </div>
  );
}
