import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Breaker, BreakerState } from "../../gen/parley/console/v1/model_pb.js";
import { formatTime, formatMoment } from "../format/time.ts";
import { Badge } from "./badge.tsx";

interface BreakerBadgeProps {
  readonly breaker: Breaker | undefined;
  /** How often it was asked lately, and how often that failed. */
  readonly attempts: bigint;
  readonly failures: bigint;
}

/** Whether an upstream model is called, in words. One that is called and always fails does not count as working. */
export function BreakerBadge({ breaker, attempts, failures }: BreakerBadgeProps) {
  const { state, restStartTime } = breaker ?? { state: BreakerState.UNSPECIFIED };
  if (state === BreakerState.OPEN || state === BreakerState.HALF_OPEN) {
    const since = restStartTime === undefined ? undefined : formatSince(restStartTime);
    return (
      <span title={restStartTime && formatMoment(restStartTime)}>
        {state === BreakerState.OPEN ? (
          <Badge look="danger">Resting{since}</Badge>
        ) : (
          <Badge look="warn">Being probed{since && `, resting${since}`}</Badge>
        )}
      </span>
    );
  }
  if (state !== BreakerState.CLOSED) return <Badge look="plain">Not known</Badge>;
  const isFailing = failures > 0n && failures === attempts;
  return isFailing ? <Badge look="warn">Failing</Badge> : <Badge look="good">Working</Badge>;
}

function formatSince(start: Timestamp): string {
  return ` since ${formatTime(start)}`;
}
