import { useMemo } from "react";
import { create } from "@bufbuild/protobuf";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { UsageSumsSchema } from "../../gen/parley/console/v1/usage_pb.js";
import { previousQuery, usageQuery } from "../api/usage.ts";
import { Unavailable } from "../components/alert.tsx";
import { SelectField } from "../components/field.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";
import { useComparison } from "./comparison.tsx";
import { Figures } from "./figures.tsx";
import { MEASURES, requestsOf } from "./measures.ts";
import { isRange, type Range, RANGES } from "./period.ts";
import { SumsPlot } from "./sums-plot.tsx";
import { DEFAULTS, type Grouping, usePieces } from "./view.ts";

const NOTHING = create(UsageSumsSchema);

interface UsageSectionProps {
  /** Whose usage it is: parameters of the usage page. */
  readonly of: { readonly key: string } | { readonly model: string };
  readonly by: Grouping;
}

/** Requests, tokens and cost of one key or model in a period of the URL, `?range=30d`. */
export function UsageSection({ of, by }: UsageSectionProps) {
  const [search, setSearch] = useSearchParams();
  const asked = search.get("range") ?? "";
  const range = isRange(asked) ? asked : DEFAULTS.range;
  const setRange = (next: string): void =>
    setSearch(
      (before) => {
        before.set("range", next);
        return before;
      },
      { replace: true },
    );
  const usage = `${PATHS.usage}?${new URLSearchParams({ range, by, ...of }).toString()}`;
  return (
    <section aria-labelledby="usage" className="space-y-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <h2 id="usage" className="text-base font-semibold">
          Usage
        </h2>
        <div className="flex items-center gap-4 text-sm">
          <TextLink to={usage}>Full report</TextLink>
          <SelectField label="Period" isLabelHidden value={range} onChange={(event) => setRange(event.target.value)}>
            {Object.entries(RANGES).map(([name, { text }]) => (
              <option key={name} value={name}>
                Last {text}
              </option>
            ))}
          </SelectField>
        </div>
      </div>
      <Report of={of} by={by} range={range} />
    </section>
  );
}

function Report({ of, by, range }: UsageSectionProps & { readonly range: Range }) {
  const [isCompared] = useComparison();
  const sums = useQuery(usageQuery(usePieces({ ...DEFAULTS, ...of, by, range })));
  const { data: previous } = useQuery(previousQuery(isCompared ? sums.data?.asked : undefined));
  const order = useMemo(() => sums.data?.groups.map(({ group }) => group) ?? [], [sums.data]);
  if (sums.isPending) return <Loading what="the usage" shape="charts" />;
  if (sums.isLoadingError) return <Unavailable error={sums.error} onRetry={() => void sums.refetch()} />;
  const { asked, total = NOTHING, steps } = sums.data;
  const { filter, step, grouping, length } = asked;
  return (
    <div className="space-y-3" aria-busy={sums.isPlaceholderData}>
      <Figures now={total} before={isCompared ? previous && (previous.total ?? NOTHING) : null} length={length} />
      {requestsOf(total) === 0n ? (
        <Empty title="No usage yet">No requests in this period.</Empty>
      ) : (
        <div className="grid gap-3 xl:grid-cols-2">
          {MEASURES.filter(({ title }) => title !== "Tokens").map((measure) => (
            <SumsPlot
              key={measure.title}
              measure={measure}
              rows={steps}
              order={order}
              filter={filter}
              step={step}
              by={grouping}
              previous={previous}
            />
          ))}
        </div>
      )}
    </div>
  );
}
