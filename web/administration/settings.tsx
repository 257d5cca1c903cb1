import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import type { GetConfigurationResponse } from "../../gen/parley/console/v1/settings_pb.js";
import { configurationQuery } from "../api/settings.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { Administration } from "./administration.tsx";
import { describeValue, SETTING_GROUPS, settingName } from "./setting-names.ts";

/** Read-only page of the configuration, for administrators. */
export function Settings() {
  return (
    <Administration title="Settings" description="Read-only view of the active configuration.">
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
  const { entries } = configuration.data;
  const groups = SETTING_GROUPS.map(([title, prefixes]) => {
    const own = entries.filter(({ key }) => prefixes.some((prefix) => key === prefix || key.startsWith(`${prefix}.`)));
    return [title, own] as const;
  });
  return (
    <div className="space-y-6">
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
            {own.map(({ key, value }) => (
              <Row key={key} name={settingName(key)} hint={key}>
                {describeValue(key, value)}
              </Row>
            ))}
          </dl>
        </Panel>
      ))}
    </div>
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
