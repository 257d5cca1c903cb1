import { lazy, Suspense, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type {
  ChangeConfigurationResponse,
  ListEntriesResponse,
  NamedEntry,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { Administration } from "../administration/administration.tsx";
import { entriesQuery } from "../api/configuration.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Loading } from "../components/page.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";
import type { EntryAct } from "./dialog-props.ts";
import { EntryTable } from "./entry-table.tsx";
import { Export } from "./export.tsx";
import { Notice } from "./notice.tsx";

const AddProvider = lazy(() => import("./add-provider.tsx"));
const EditEntry = lazy(() => import("./edit-entry.tsx"));
const Credential = lazy(() => import("./credential.tsx"));
const RemoveEntry = lazy(() => import("./remove-entry.tsx"));
const ViewEntry = lazy(() => import("./view-entry.tsx"));
const Import = lazy(() => import("./import.tsx"));

type Act =
  | { readonly what: "add provider" | "add entry" | "import" }
  | { readonly what: EntryAct | "view"; readonly target: NamedEntry };

/** Page of all providers, models, aliases and general settings that can be stored, for administrators. */
export default function Configuration() {
  return (
    <Administration
      title="Providers & models"
      description="Upstream providers, the model names that requests use, time limits, default limits of accounts, retries and circuit breakers. Changes apply to all replicas within a second."
    >
      {() => <Entries />}
    </Administration>
  );
}

function Entries() {
  const list = useQuery(entriesQuery);
  // The number makes each opening a new dialog, without the state of the one before.
  const [opened, setOpened] = useState<{ readonly act: Act; readonly number: number; readonly isOpen: boolean }>();
  const [saved, setSaved] = useState<ChangeConfigurationResponse>();
  if (list.isPending) return <Loading what="the configuration" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const open = (act: Act): void => {
    setSaved(undefined);
    setOpened({ act, number: (opened?.number ?? 0) + 1, isOpen: true });
  };
  const close = (): void => setOpened((now) => now && { ...now, isOpen: false });
  const done = (response: ChangeConfigurationResponse): void => {
    setSaved(response);
    close();
  };
  return (
    <>
      <Toolbar list={list.data} onOpen={(what) => open({ what })} />
      <Notice saved={saved} />
      <EntryTable list={list.data} onAct={(what, target) => open({ what, target })} />
      {opened !== undefined && (
        <Suspense>
          <ActDialog
            key={opened.number}
            act={opened.act}
            {...{ list: list.data, open: opened.isOpen, onClose: close, onSaved: done }}
          />
        </Suspense>
      )}
    </>
  );
}

interface ActDialogProps {
  readonly act: Act;
  readonly list: ListEntriesResponse;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onSaved: (response: ChangeConfigurationResponse) => void;
}

function ActDialog({ act, ...rest }: ActDialogProps) {
  switch (act.what) {
    case "add provider":
      return <AddProvider {...rest} />;
    case "add entry":
      return <EditEntry {...rest} />;
    case "import":
      return <Import {...rest} />;
    case "edit":
      return <EditEntry target={act.target} {...rest} />;
    case "credential":
      return <Credential target={act.target} {...rest} />;
    case "remove":
      return <RemoveEntry target={act.target} {...rest} />;
    case "view":
      return <ViewEntry target={act.target} open={rest.open} onClose={rest.onClose} />;
  }
}

interface ToolbarProps {
  readonly list: ListEntriesResponse;
  readonly onOpen: (what: "add provider" | "add entry" | "import") => void;
}

function Toolbar({ list: { enabled, file, version, latestVersion }, onOpen }: ToolbarProps) {
  return (
    <div className="mb-5 flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
      <p className="min-w-0 text-sm wrap-anywhere text-muted">
        {file !== "" && (
          <>
            Entries of <code className="font-mono">{file}</code> take precedence over stored ones.{" "}
          </>
        )}
        {!enabled && "The configuration file does not allow changes here (stored_configuration.enabled). "}
        {latestVersion === 0n ? (
          "No stored entries yet."
        ) : (
          <>
            Stored version {String(latestVersion)}
            {version !== latestVersion && `, of which this process has ${version}`}.{" "}
            <TextLink to={PATHS.adminVersions}>Versions</TextLink>
          </>
        )}
      </p>
      <div className="flex flex-wrap gap-2">
        {latestVersion !== 0n && <Export />}
        {enabled && (
          <>
            <Button look="secondary" size="small" onClick={() => onOpen("import")}>
              Import
            </Button>
            <Button look="secondary" size="small" onClick={() => onOpen("add entry")}>
              Add entry
            </Button>
            <Button size="small" onClick={() => onOpen("add provider")}>
              Add provider
            </Button>
          </>
        )}
      </div>
    </div>
  );
}
