import {
  type Dashboard,
  DashboardBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
} from "@grafana/grafana-foundation-sdk/dashboard";
import * as common from "@grafana/grafana-foundation-sdk/common";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as GraphBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

/** A query in PromQL, and the text of its series, such as `{{model}}`. */
export type Query = readonly [expr: string, legend: string];

interface PanelOptions {
  /** Grafana's name of the unit. Default: none. */
  readonly unit?: string;
  /** Meaning of the figures, where the title does not say it. */
  readonly about?: string;
  /** Series on top of each other. Default: lines. */
  readonly isStacked?: boolean;
  /** Width, of 24 columns. Default: 8. */
  readonly span?: number;
}

/** One panel of a dashboard. */
export type Panel = GraphBuilder | StatBuilder;

/** The data source that the reader has chosen. */
const SOURCE = { type: "prometheus", uid: "${source}" };
const HEIGHT = 8;

/** Values over time. */
export function graph(title: string, queries: readonly Query[], options: PanelOptions = {}): Panel {
  const { unit = "short", about, isStacked = false, span = 8 } = options;
  const panel = new GraphBuilder()
    .title(title)
    .datasource(SOURCE)
    .span(span)
    .height(HEIGHT)
    .unit(unit)
    .min(0)
    .lineWidth(1)
    .fillOpacity(isStacked ? 30 : 5)
    .showPoints(common.VisibilityMode.Never)
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi))
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true),
    )
    .targets(toTargets(queries));
  if (isStacked) panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal));
  return about === undefined ? panel : panel.description(about);
}

/** Current values, large. */
export function stat(title: string, queries: readonly Query[], options: Omit<PanelOptions, "isStacked"> = {}): Panel {
  const { unit = "short", about, span = 4 } = options;
  const panel = new StatBuilder()
    .title(title)
    .datasource(SOURCE)
    .span(span)
    .height(HEIGHT / 2)
    .unit(unit)
    .colorMode(common.BigValueColorMode.None)
    .graphMode(common.BigValueGraphMode.Area)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(["lastNotNull"]).values(false))
    .targets(toTargets(queries));
  return about === undefined ? panel : panel.description(about);
}

function toTargets(queries: readonly Query[]): DataqueryBuilder[] {
  return queries.map(([expr, legend], place) =>
    new DataqueryBuilder()
      .refId(String.fromCodePoint("A".codePointAt(0)! + place))
      .datasource(SOURCE)
      .expr(expr)
      .range()
      .legendFormat(legend),
  );
}

/** A part of a dashboard under a heading. */
interface Section {
  readonly title: string;
  readonly panels: readonly Panel[];
  /** Whether it is folded at first. Default: open. */
  readonly isFolded?: boolean;
}

interface DashboardParts {
  /** Part of its address, which never changes. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly sections: readonly Section[];
}

/** A dashboard with the variables `source`, a Prometheus, and `instance`, the replicas to show. */
export function dashboard({ uid, title, description, sections }: DashboardParts): Dashboard {
  const builder = new DashboardBuilder(`Parley: ${title}`)
    .uid(uid)
    .description(description)
    .tags(["parley"])
    .timezone("browser")
    .time({ from: "now-3h", to: "now" })
    .refresh("30s")
    .tooltip(1)
    .withVariable(new DatasourceVariableBuilder("source").label("Prometheus").type("prometheus"))
    .withVariable(
      new QueryVariableBuilder("instance")
        .label("Replica")
        .datasource(SOURCE)
        .query({ query: 'label_values(up{job="parley"}, instance)', refId: "instance" })
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .multi(true)
        .includeAll(true)
        .allValue(".+"),
    );
  for (const section of sections) {
    const row = new RowBuilder(section.title).collapsed(section.isFolded === true);
    if (section.isFolded === true) {
      for (const panel of section.panels) row.withPanel(panel);
      builder.withRow(row);
    } else {
      builder.withRow(row);
      for (const panel of section.panels) builder.withPanel(panel);
    }
  }
  return builder.build();
}

/** Label matchers of the chosen replicas, with `more` of them. */
export const of = (more = ""): string => `{job="parley",instance=~"$instance"${more === "" ? "" : `,${more}`}}`;

/** Rate of a counter by labels. */
export const rateBy = (labels: string, counter: string, more = ""): string =>
  `sum by (${labels}) (rate(${counter}${of(more)}[$__rate_interval]))`;

/** A quantile of a histogram by labels. */
export const quantileBy = (labels: string, [quantile, histogram]: readonly [number, string], more = ""): string =>
  `histogram_quantile(${quantile}, sum by (${labels === "" ? "le" : `${labels}, le`}) (rate(${histogram}_bucket${of(more)}[$__rate_interval])))`;
