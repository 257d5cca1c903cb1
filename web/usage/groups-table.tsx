import type { UsageRow, UsageSums } from "../../gen/parley/console/v1/usage_pb.js";
import type { UsageFilter } from "../api/usage.ts";
import { Panel } from "../components/panel.tsx";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { Table, type TableContent } from "./data-table.tsx";
import { logLink, narrow } from "./log-link.ts";
import { GROUPING_NAMES, groupName } from "./names.ts";
import { fileName } from "./times.ts";
import type { Grouping } from "./view.ts";

interface GroupsTableProps {
  readonly rows: readonly UsageRow[];
  readonly total: UsageSums;
  readonly filter: UsageFilter;
  readonly by: Grouping;
  /** Whether the groups were chosen among the largest of each day. */
  readonly isChosenByDay: boolean;
}

/** Table of the totals per group. */
export function GroupsTable({ rows, total, filter, by, isChosenByDay }: GroupsTableProps) {
  const name = GROUPING_NAMES[by];
  const content: TableContent = {
    label: `Usage by ${name.toLowerCase()}`,
    columns: [name, ...MEASURES].map((column) => ({ id: column, name: column })),
    rows: rows.map((row) => {
      const narrowed = narrow(filter, by, row.group);
      return {
        id: row.group,
        name: groupName(by, row),
        href: narrowed && logLink(narrowed),
        cells: cellsOf(row.sums),
      };
    }),
    total: cellsOf(total),
    csv: {
      name: fileName([`by-${by}`], filter),
      rows: () => [
        [by, "name", ...CSV_COLUMNS],
        ...rows.map(({ group, name: own, sums }) => [group || "all others", own, ...numbersOf(sums)]),
      ],
    },
  };
  return (
    <Panel
      title={`By ${name.toLowerCase()}`}
      description={`Total for the period, highest cost first${isChosenByDay ? `, among the 500 ${name.toLowerCase()}s of each day with the highest cost in all models and statuses` : ""}. Click a name to see its requests.`}
    >
      <Table {...content} />
    </Panel>
  );
}

const MEASURES = ["Requests", "Errors", "Prompt tokens", "Completion tokens", "Cost"];

const CSV_COLUMNS = [
  "requests",
  "errors",
  "partial",
  "estimated",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "image_tokens",
  "cost_usd",
  "own_cost_usd",
];

function cellsOf(sums: UsageSums | undefined): string[] {
  if (sums === undefined) return [];
  const { completions, failed, promptTokens, completionTokens, costMicroUsd } = sums;
  return [...[completions, failed, promptTokens, completionTokens].map(formatCount), formatMicroUsd(costMicroUsd)];
}

function numbersOf(sums: UsageSums | undefined): number[] {
  if (sums === undefined) return [];
  const { completions, failed, partial, estimated, promptTokens, cachedTokens } = sums;
  const { completionTokens, reasoningTokens, imageTokens, costMicroUsd } = sums;
  const counts = [completions, failed, partial, estimated, promptTokens, cachedTokens, completionTokens];
  const costs = [costMicroUsd, sums.ownCostMicroUsd].map((cost) => Number(cost) / 1e6);
  return [...[...counts, reasoningTokens, imageTokens].map(Number), ...costs];
}
