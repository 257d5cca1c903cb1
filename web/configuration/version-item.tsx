import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type { ConfigurationVersion, EntryDifference } from "../../gen/parley/console/v1/configuration_pb.js";
import { versionQuery } from "../api/configuration.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import { kindOf } from "./entry-words.ts";
import { lineChanges } from "./line-changes.ts";

interface VersionItemProps {
  readonly value: ConfigurationVersion;
  readonly author: string;
  readonly isLatest: boolean;
  /** Undefined where changes are not allowed. */
  readonly onRollBack: (() => void) | undefined;
}

/** One version: author, time and comment, and on demand its changes. */
export function VersionItem({
  value: { version, createTime, comment },
  author,
  isLatest,
  onRollBack,
}: VersionItemProps) {
  const [isShown, setShown] = useState(false);
  return (
    <li className="px-5 py-4 text-sm">
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <div className="min-w-0">
          <h2 className="flex flex-wrap items-center gap-x-3 text-base font-semibold">
            Version {String(version)} {isLatest && <Badge look="good">Latest</Badge>}
          </h2>
          {comment !== "" && (
            <p className="wrap-anywhere">
              <bdi>{comment}</bdi>
            </p>
          )}
          <p className="wrap-anywhere text-muted">
            <bdi>{author}</bdi>
            {createTime && <span title={formatMoment(createTime)}>, {formatFromNow(createTime)}</span>}
          </p>
        </div>
        <div className="flex flex-wrap gap-2">
          <Button
            look="secondary"
            size="small"
            aria-expanded={isShown}
            aria-label={`${isShown ? "Hide" : "Show"} changes of version ${version}`}
            onClick={() => setShown(!isShown)}
          >
            {isShown ? "Hide changes" : "Show changes"}
          </Button>
          {!isLatest && onRollBack && (
            <Button look="secondary" size="small" aria-label={`Roll back to version ${version}`} onClick={onRollBack}>
              Roll back …
            </Button>
          )}
        </div>
      </div>
      {isShown && <Changes version={version} />}
    </li>
  );
}

function Changes({ version }: { readonly version: bigint }) {
  const found = useQuery(versionQuery(version));
  if (found.isPending) {
    return (
      <p role="status" className="mt-3 text-muted">
        Loading…
      </p>
    );
  }
  if (found.isLoadingError) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const differences = found.data.differences;
  if (differences.length === 0) return <p className="mt-3 text-muted">No entry. An API key was set or removed.</p>;
  return (
    <div className="mt-3 space-y-3">
      {differences.map((difference) => (
        <Difference key={`${difference.section} ${difference.name}`} of={difference} />
      ))}
    </div>
  );
}

const MARKS = { "-": "bg-danger-soft text-danger", "+": "bg-good-soft text-good", " ": "text-muted" } as const;

function Difference({ of: { section, name, before, after } }: { readonly of: EntryDifference }) {
  const what = before === "" ? "added" : after === "" ? "removed" : "changed";
  const title = `${kindOf(section)} ${name} ${what}`;
  return (
    <section aria-label={title} className="overflow-hidden rounded-lg border border-line">
      <p className="border-b border-line bg-sunken px-4 py-2 font-medium wrap-anywhere">{title}</p>
      <pre tabIndex={0} aria-label={title} className="overflow-x-auto py-2 font-mono text-[0.8125rem]">
        {Array.from(lineChanges(before, after).entries(), ([index, [mark, text]]) => (
          <span key={`${index} ${mark}`} className={`block w-max min-w-full px-4 ${MARKS[mark]}`}>
            {mark} {text}
          </span>
        ))}
      </pre>
    </section>
  );
}
