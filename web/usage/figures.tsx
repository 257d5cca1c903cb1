import type { UsageSums } from "../../gen/parley/console/v1/usage_pb.js";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount, formatPercent, formatShort } from "../format/number.ts";
import { type Change, changeOf, ChangeText, failedShare, pointsOf, UNKNOWN } from "./change.tsx";
import { errorsOf, requestsOf, tokensOf } from "./measures.ts";

interface FiguresProps {
  readonly now: UsageSums;
  /** Sums of the previous period of the same length: undefined until they are known, null without comparison. */
  readonly before: UsageSums | undefined | null;
  /** Length of the period: `30 days`. */
  readonly length: string;
}

/** The four key figures of a period, with their change since the previous period. */
export function Figures({ now, before, length }: FiguresProps) {
  const change = (of: (now: UsageSums, before: UsageSums) => Change): Change | undefined =>
    before === null ? undefined : before === undefined ? UNKNOWN : of(now, before);
  const relative = (of: (sums: UsageSums) => bigint): Change | undefined =>
    change((after, ago) => changeOf(Number(of(after)), Number(of(ago))));
  return (
    <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Figure
        name="Requests"
        value={formatCount(requestsOf(now))}
        note={now.refused > 0n ? `${formatCount(now.refused)} refused` : undefined}
        change={relative(requestsOf)}
        length={length}
      />
      <Figure
        name="Tokens"
        value={formatShort(tokensOf(now))}
        title={formatCount(tokensOf(now))}
        change={relative(tokensOf)}
        length={length}
      />
      <Figure
        name="Cost"
        value={formatMicroUsd(now.costMicroUsd)}
        note={
          now.ownCostMicroUsd > 0n ? `${formatMicroUsd(now.ownCostMicroUsd)} with accounts’ own credentials` : undefined
        }
        change={relative((sums) => sums.costMicroUsd)}
        length={length}
      />
      <Figure
        name="Error rate"
        value={formatPercent(failedShare(now))}
        title={formatCount(errorsOf(now))}
        change={change(pointsOf)}
        length={length}
        isFailure
      />
    </dl>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly title?: string;
  readonly note?: string | undefined;
  readonly change: Change | undefined;
  readonly length: string;
  readonly isFailure?: boolean;
}

function Figure({ name, value, title, note, change, length, isFailure = false }: FigureProps) {
  return (
    <div className="rounded-xl border border-line bg-surface p-4 sm:p-5">
      <dt className="text-sm text-muted">{name}</dt>
      <dd className="mt-1 text-2xl font-semibold tracking-tight tabular-nums" title={title}>
        {value}
      </dd>
      {note !== undefined && <dd className="mt-1 text-sm text-muted">{note}</dd>}
      {change !== undefined && (
        <dd className={`mt-1 text-sm ${colourOf(change, isFailure)}`}>
          <ChangeText change={change}>
            <span className="text-muted"> vs previous {length}</span>
          </ChangeText>
        </dd>
      )}
    </div>
  );
}

function colourOf({ direction }: Change, isFailure: boolean): string {
  return !isFailure || direction === "none" ? "text-muted" : direction === "up" ? "text-danger" : "text-good";
}
