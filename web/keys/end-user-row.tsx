import { useMutation } from "@tanstack/react-query";
import { Ban, CirclePlay, Pencil } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { AttributedBudget, BudgetHolder } from "../../gen/parley/console/v1/attribution_pb.js";
import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import { type Stop, StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { refreshStops, stops } from "../api/stops.ts";
import { Badge } from "../components/badge.tsx";
import { notify } from "../components/notify.ts";
import { ActionsHead, RowActions } from "../components/row-actions.tsx";
import { Cell, None, OnPhones } from "../components/table.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatBudget } from "../format/money.ts";
import { formatFromNow } from "../format/time.ts";
import { PATHS } from "../paths.ts";
import { StopCalls } from "../requests/stop-calls.tsx";

const SetBudget = lazy(() => import("./set-budget.tsx"));

/** Grid columns on wide screens, where an end user is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:gap-x-4 lg:px-5 lg:grid-cols-[minmax(0,1fr)_7rem_7rem_7rem_7rem_1.5rem] wide:grid-cols-[minmax(0,1fr)_7rem_7rem_7rem_7rem_5rem] lg:items-center";

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
          <ActionsHead />
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
  const amounts = formatBudget({ spent, held, budget: limit });
  const look = left === 0n ? "text-danger" : spent * 5n >= limit * 4n ? "text-warn" : "";
  return (
    <div role="row" className={`${GRID} py-2 tabular-nums hover:bg-sunken lg:min-h-7.5 lg:py-0`}>
      <Cell className="flex items-center gap-x-2">
        {name === "" ? (
          <span className="text-muted">Name not stored yet</span>
        ) : (
          <span className="truncate" title={name}>
            <TextLink to={requestsOf(key, kind, name)} label={`Requests of ${name}`}>
              <bdi>{name}</bdi>
            </TextLink>
          </span>
        )}
        {stop !== undefined && (
          <Badge look="danger">Stopped{stop.expireTime && `, ends ${formatFromNow(stop.expireTime)}`}</Badge>
        )}
      </Cell>
      <Cell className="truncate max-lg:order-3 max-lg:text-xs max-lg:text-muted lg:text-right">
        {amounts.spent}
        <OnPhones>
          {" "}
          of {amounts.budget} spent{held > 0n && `, ${amounts.held} held`}
        </OnPhones>
      </Cell>
      <Cell className="text-right max-lg:hidden">{held === 0n ? <None /> : amounts.held}</Cell>
      <Cell className="text-right max-lg:hidden">
        {isOwn ? <abbr title="Its own, until the period ends">{amounts.budget}*</abbr> : amounts.budget}
      </Cell>
      <Cell className={`text-right font-medium ${look}`}>
        {amounts.left}
        <OnPhones> left</OnPhones>
      </Cell>
      <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center lg:flex lg:justify-end">
        {isWritable && name !== "" && (
          <StopCalls accountId={key.accountId} kind={kind} value={name}>
            {(open) => (
              <RowActions
                of={name}
                actions={[
                  {
                    verb: "Change the budget",
                    name: `Change the budget of ${name}`,
                    Icon: Pencil,
                    onClick: () => setDialog("open"),
                  },
                  stop === undefined
                    ? { verb: "Stop", Icon: Ban, onClick: open }
                    : {
                        verb: "End the stop",
                        name: `End the stop of ${name}`,
                        Icon: CirclePlay,
                        onClick: () => end.mutate(stop),
                      },
                ]}
              />
            )}
          </StopCalls>
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
