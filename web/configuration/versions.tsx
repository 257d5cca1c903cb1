import { useState } from "react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type {
  ChangeConfigurationResponse,
  ConfigurationVersion,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { Administration } from "../administration/administration.tsx";
import { accountsQuery } from "../api/accounts.ts";
import { entriesQuery, versionsQuery } from "../api/configuration.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";
import { Notice } from "./notice.tsx";
import { RollBack } from "./roll-back.tsx";
import { VersionItem } from "./version-item.tsx";

/** Page of the versions of the stored configuration, for administrators. */
export default function Versions() {
  return (
    <Administration title="Versions" description="Changes of the stored configuration. The latest 100 are kept.">
      {() => (
        <>
          <p className="mb-5 text-sm">
            <TextLink to={PATHS.adminConfiguration}>Back to providers & models</TextLink>
          </p>
          <VersionList />
        </>
      )}
    </Administration>
  );
}

function VersionList() {
  const list = useInfiniteQuery(versionsQuery);
  const entries = useQuery(entriesQuery);
  const accounts = useQuery(accountsQuery);
  // The number makes each opening a new dialog, without the error of the one before.
  const [target, setTarget] = useState<{
    readonly version: ConfigurationVersion;
    readonly number: number;
    readonly isOpen: boolean;
  }>();
  const [saved, setSaved] = useState<ChangeConfigurationResponse>();
  if (list.isPending || entries.isPending) return <Loading what="the versions" />;
  const failed = [list, entries].find(({ isLoadingError }) => isLoadingError);
  if (failed !== undefined || list.data === undefined || entries.data === undefined) {
    return <Unavailable error={failed?.error} onRetry={() => void failed?.refetch()} />;
  }
  const versions = list.data.pages.flatMap((page) => page.versions);
  const { latestVersion, enabled } = entries.data;
  const names = new Map(accounts.data?.map(({ id, name }) => [id, name]));
  if (versions.length === 0) return <Empty title="No versions">Nothing has been stored yet.</Empty>;
  const rollBackTo = (version: ConfigurationVersion): void => {
    setSaved(undefined);
    setTarget({ version, number: (target?.number ?? 0) + 1, isOpen: true });
  };
  const close = (): void => setTarget((now) => now && { ...now, isOpen: false });
  return (
    <>
      <Notice saved={saved} />
      <ol aria-label="Versions" className="divide-y divide-line rounded-xl border border-line bg-surface">
        {versions.map((version) => (
          <VersionItem
            key={String(version.version)}
            value={version}
            author={version.createdBy === "" ? "Command line" : (names.get(version.createdBy) ?? version.createdBy)}
            isLatest={version.version === latestVersion}
            onRollBack={enabled ? () => rollBackTo(version) : undefined}
          />
        ))}
      </ol>
      {list.hasNextPage && (
        <div className="mt-4 text-center">
          <Button look="secondary" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
      {target !== undefined && (
        <RollBack
          key={target.number}
          target={target.version}
          latestVersion={latestVersion}
          open={target.isOpen}
          onClose={close}
          onSaved={(response) => {
            setSaved(response);
            close();
          }}
        />
      )}
    </>
  );
}
