import { useMutation } from "@tanstack/react-query";
import { Ban, CirclePlay, Pencil } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { AttributedBudget, BudgetHolder } from "../../gen/parley/console/v1/attribution_pb.js";
import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import { type Stop, StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { refreshStops, stops } from "../api/stops.ts";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { notify } from "../components/notify.ts";
import { Cell, None } from "../components/table.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatMicroUsd } from "../format/money.ts";
import { formatFromNow } from "../format/time.ts";
import { PATHS } from "../paths.ts";
import { StopCalls } from "../requests/stop-calls.tsx";

const SetBudget = lazy(() => import("./set-budget.tsx"));

/** Grid columns on wide screens, where an end user is one line. On phones it is a card. */
const GRID =
  "grid grid-cols-2 gap-x-4 gap-y-2 px-5 lg:grid-cols-[minmax(0,1fr)_7rem_7rem_7rem_7rem_5rem] lg:items-center lg:gap-y-0";

const AMOUNTS = ["Spent", "Held", "Budget", "Left"] as const;

/** Column headers. Not on phones. */
export function EndUserHead({ holders }: { readonly holders: "end users" | "sessions" }) {
  return (
    <div role="rowgroup" className="max-lg:hidden">
      <div role="row" className={`${GRID} border-b border-line py-1.5 font-medium text-muted`}>
        <span role="columnheader">{holders === "sessions" ? "Session" : "End user"}</span>
        {AMOUNTS.map((column) => (
          <span key={column} role="columnheader" className="text-right">
            {column}
          </span>
        ))}
        <span role="columnheader" className="text-right">
          Actions
        </span>
      </div>
    </div>
  );
}

interface EndUserRowProps {
  readonly value: AttributedBudget;
  readonly of: Key;
  readonly holder: BudgetHolder;
  readonly kind: StopKind.SESSION | StopKind.END_USER;
  readonly stop: Stop | undefined;
  /** Whether the key may be changed. */
  readonly isWritable: boolean;
}

/** One end user or session of a key. */
export function EndUserRow({ value: budget, of: key, holder, kind, stop, isWritable }: EndUserRowProps) {
  const [dialog, setDialog] = useState<"open" | "closed">();
  const { name, spentMicroUsd: spent, heldMicroUsd: held, budgetMicroUsd: limit, leftMicroUsd: left, isOwn } = budget;
  const end = useMutation({
    mutationFn: (ended: Stop) => stops.remove({ accountId: ended.accountId, id: ended.id }),
    async onSuccess() {
      await refreshStops();
      notify("Calls are allowed again.");
    },
  });
  const look = left === 0n ? "text-danger" : spent * 5n >= limit * 4n ? "text-warn" : "";
  return (
    <div role="row" className={`${GRID} py-3 tabular-nums hover:bg-sunken lg:min-h-9 lg:py-0.5`}>
      <Cell className="max-lg:col-span-2">
        <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          {name === "" ? (
            <span className="text-muted">Name not stored yet</span>
          ) : (
            <TextLink to={requestsOf(key, kind, name)} label={`Requests of ${name}`}>
              <bdi className="wrap-anywhere">{name}</bdi>
            </TextLink>
          )}
          {stop !== undefined && (
            <Badge look="danger">Stopped{stop.expireTime && `, ends ${formatFromNow(stop.expireTime)}`}</Badge>
          )}
        </span>
      </Cell>
      <Cell label="Spent" className="lg:text-right">
        {formatMicroUsd(spent)}
      </Cell>
      <Cell label="Held" className="lg:text-right">
        {held === 0n ? <None /> : formatMicroUsd(held)}
      </Cell>
      <Cell label="Budget" className="lg:text-right">
        {isOwn ? <abbr title="Its own, until the period ends">{formatMicroUsd(limit)}*</abbr> : formatMicroUsd(limit)}
      </Cell>
      <Cell label="Left" className={`font-medium lg:text-right ${look}`}>
        {formatMicroUsd(left)}
      </Cell>
      <Cell className="max-lg:col-span-2">
        {isWritable && name !== "" && (
          <span className="-mx-1.5 flex lg:mx-0 lg:justify-end" role="group" aria-label={name}>
            <IconButton name={`Change the budget of ${name}`} Icon={Pencil} onClick={() => setDialog("open")} />
            {stop === undefined ? (
              <StopCalls accountId={key.accountId} kind={kind} value={name}>
                {(open) => <IconButton name={`Stop ${name}`} Icon={Ban} onClick={open} />}
              </StopCalls>
            ) : (
              <IconButton name={`End the stop of ${name}`} Icon={CirclePlay} onClick={() => end.mutate(stop)} />
            )}
          </span>
        )}
        {dialog && (
          <Suspense>
            <SetBudget
              keyId={key.id}
              holder={holder}
              value={budget}
              open={dialog === "open"}
              onClose={() => setDialog("closed")}
            />
          </Suspense>
        )}
      </Cell>
    </div>
  );
}

function requestsOf({ id }: Key, kind: StopKind, name: string): string {
  const filter = { key: id, [kind === StopKind.SESSION ? "session" : "endUser"]: name };
  return `${PATHS.requests}?${new URLSearchParams(filter).toString()}`;
}
