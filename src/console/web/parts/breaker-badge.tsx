import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Breaker, BreakerState } from "../../../../gen/parley/console/v1/model_pb.js";
import { formatTime, formatMoment } from "../text/time.ts";
import { Badge } from "./badge.tsx";

/** Whether an upstream model is called, in words. */
export function BreakerBadge({ breaker }: { readonly breaker: Breaker | undefined }) {
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
  return state === BreakerState.CLOSED ? <Badge look="good">Working</Badge> : <Badge look="plain">Not known</Badge>;
}

function formatSince(start: Timestamp): string {
  return ` since ${formatTime(start)}`;
}
