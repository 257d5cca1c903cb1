import type { ReactNode } from "react";
import { Tabs } from "@base-ui/react/tabs";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { Link } from "wouter";
import { TabList } from "../components/tab-list.tsx";
import { describeClamp } from "../format/clamp.ts";
import { formatDuration } from "../format/duration.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { Attempts, attemptsOf } from "./attempts.tsx";
import { Events } from "./events.tsx";
import { RequestCode } from "./request-code.tsx";
import type { Run } from "./run.ts";
import { useThread } from "./workspace.ts";

/** Details of the latest completion: response facts, request, events and attempts. */
export function Inspector() {
  const { run } = useThread();
  if (run === undefined) return null;
  const attempts = attemptsOf(run);
  const tabs: readonly (readonly [name: string, panel: ReactNode])[] = [
    ["Response", <Facts key="facts" run={run} />],
    ["Request", <RequestCode key="request" request={run.request} />],
    ["Events", <Events key="events" run={run} />],
    ...(attempts.length > 1 ? [["Attempts", <Attempts key="attempts" attempts={attempts} />] as const] : []),
  ];
  return (
    <section aria-label="Latest response" className="rounded-xl border border-line bg-surface p-4 sm:p-5">
      <Tabs.Root defaultValue="Response">
        <TabList label="Latest response" names={tabs.map(([name]) => name)} />
        {tabs.map(([name, panel]) => (
          <Tabs.Panel key={name} value={name} className="mt-4">
            {panel}
          </Tabs.Panel>
        ))}
      </Tabs.Root>
    </section>
  );
}

const STATES = { running: "Running", done: "Completed", stopped: "Stopped", failed: "Failed" } as const;

function Facts({ run }: { readonly run: Run }) {
  const { answer, state, requestId, startedMs, firstMs, endedMs } = run;
  const { usage, finish, report, model } = answer;
  const omitted = report?.omitted ?? [];
  const clamped = report?.clamped ?? [];
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-3 text-sm sm:grid-cols-4">
      <Fact name="Status">{STATES[state]}</Fact>
      <Fact name="Finish reason">{finish === undefined ? "–" : describeFinish(finish)}</Fact>
      <Fact name="Model">{model || "–"}</Fact>
      <Fact name="Cost">{report?.costMicroUsd === undefined ? "–" : formatMicroUsd(report.costMicroUsd)}</Fact>
      <Fact name="Prompt tokens">{usage === undefined ? "–" : formatCount(usage.inputTokens)}</Fact>
      <Fact name="Completion tokens">{usage === undefined ? "–" : formatCount(usage.outputTokens)}</Fact>
      <Fact name="Time to first token">{firstMs === undefined ? "–" : formatDuration(firstMs - startedMs)}</Fact>
      <Fact name="Duration">{endedMs === undefined ? "–" : formatDuration(endedMs - startedMs)}</Fact>
      {omitted.length > 0 && <Fact name="Omitted">{omitted.map(({ field }) => field).join(", ")}</Fact>}
      {clamped.length > 0 && <Fact name="Adjusted for the provider">{clamped.map(describeClamp).join(", ")}</Fact>}
      {requestId !== "" && (
        <Fact name="Request">
          <Link href={`/requests/${encodeURIComponent(requestId)}`} className="font-mono text-accent underline">
            {requestId}
          </Link>
        </Fact>
      )}
    </dl>
  );
}

function describeFinish({ finishReason, nativeFinishReason }: NonNullable<Run["answer"]["finish"]>): string {
  const name = FinishReason[finishReason].toLowerCase();
  return nativeFinishReason === "" || nativeFinishReason === name ? name : `${name} (${nativeFinishReason})`;
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-muted">{name}</dt>
      <dd className="mt-0.5 wrap-anywhere">{children}</dd>
    </div>
  );
}
