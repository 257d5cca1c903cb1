import type { KeyNotice } from "../../gen/parley/console/v1/overview_pb.js";
import { Badge } from "../components/badge.tsx";
import { Panel } from "../components/panel.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatBudget, formatShareOfBudget } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { keyPath, PATHS } from "../paths.ts";

/** Keys that expire soon, or are near or over a limit. */
export function KeyNotices({ keys }: { readonly keys: readonly KeyNotice[] }) {
  return (
    <Panel title="Keys near a limit or their expiry">
      {keys.length === 0 ? (
        <p className="text-sm text-muted">
          No key expires within 14 days, has used 80% of its budget, or was refused for a limit in the last 24 hours.
        </p>
      ) : (
        <ul className="-my-3 divide-y divide-line">
          {keys.map((key) => (
            <li key={key.keyId} className="flex flex-wrap items-center gap-x-4 gap-y-2 py-3">
              <span className="min-w-0 flex-1 basis-48 font-medium wrap-anywhere">
                <TextLink to={keyPath(key.keyId)}>
                  <bdi>{key.name || key.keyId}</bdi>
                </TextLink>
              </span>
              <Notices notice={key} />
            </li>
          ))}
        </ul>
      )}
      <p className="mt-5 text-sm">
        <TextLink to={PATHS.keys}>All keys</TextLink>
      </p>
    </Panel>
  );
}

function Notices({ notice }: { readonly notice: KeyNotice }) {
  const { expireTime, monthSpentMicroUsd: spent, budgetMicroUsd: budget, limitedRequests } = notice;
  const amounts = formatBudget({ spent, budget });
  return (
    <>
      {budget > 0n && (
        <span title={`${amounts.spent} of ${amounts.budget} this month`}>
          <Badge look={spent >= budget ? "danger" : "warn"}>
            {formatShareOfBudget({ spent, budget })} of its budget
          </Badge>
        </span>
      )}
      {limitedRequests > 0n && <Badge look="warn">{formatCount(limitedRequests)} refused for a limit</Badge>}
      {expireTime && (
        <Badge look="warn">
          Expires <RelativeTime time={expireTime} />
        </Badge>
      )}
    </>
  );
}
