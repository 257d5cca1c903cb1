import { useInfiniteQuery } from "@tanstack/react-query";
import { KeyOrder } from "../../gen/parley/console/v1/key_pb.js";
import { keyListQuery } from "../api/keys.ts";
import { useOwnerNames } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { TextLink } from "../components/text-link.tsx";
import { keyPath, PATHS } from "../paths.ts";

/** Number of keys that are listed. */
const LISTED = 8;

interface ModelKeysProps {
  readonly modelId: string;
  /** Whether the account sees the keys of all accounts. */
  readonly isOfAll: boolean;
}

/** Keys that may use a model, the last used first. */
export function ModelKeys({ modelId, isOfAll }: ModelKeysProps) {
  const account = useAccount();
  const names = useOwnerNames();
  const view = { order: KeyOrder.LAST_USE, descending: true, active: true, accountId: "", find: "", modelId };
  const list = useInfiniteQuery(keyListQuery(view, LISTED));
  const keys = list.data?.pages.flatMap((page) => page.keys).slice(0, LISTED) ?? [];
  return (
    <Panel
      title="Keys that may use it"
      description={`${isOfAll ? "Active keys of all accounts" : "Your active keys and those of your teams"}, the last used first.`}
    >
      {list.isPending ? (
        <Loading what="the keys" shape="lines" />
      ) : list.isLoadingError ? (
        <Unavailable error={list.error} onRetry={() => void list.refetch()} />
      ) : keys.length === 0 ? (
        <p className="text-sm text-muted">None.</p>
      ) : (
        <ul className="-my-2 divide-y divide-line text-sm">
          {keys.map((key) => (
            <li key={key.id} className="flex flex-wrap items-center gap-x-4 gap-y-0.5 py-2">
              <span className="min-w-0 flex-1 basis-40 wrap-anywhere">
                <TextLink to={keyPath(key.id)}>
                  <bdi>{key.name}</bdi>
                </TextLink>
                {key.accountId !== account.id && (
                  <span className="text-muted">
                    {" "}
                    of <bdi>{names.get(key.accountId) ?? key.accountId}</bdi>
                  </span>
                )}
              </span>
              <span className="text-muted">
                {key.lastUseTime === undefined ? "Never used" : <RelativeTime time={key.lastUseTime} />}
              </span>
            </li>
          ))}
        </ul>
      )}
      <p className="mt-5 text-sm">
        <TextLink to={`${PATHS.keys}?${new URLSearchParams({ model: modelId }).toString()}`}>
          All keys that may use it
        </TextLink>
      </p>
    </Panel>
  );
}
