import { fromBinary, toJson } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { type AttributesJson, COMMON, describe, valuesOf } from "./otlp-messages.ts";

/** One series of a metric as a collector got it. */
export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  /** Of sums and histograms: cumulative temporality, and whether the value only grows. */
  readonly isCumulative: boolean;
  readonly isMonotonic: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly startMs: number;
  readonly endMs: number;
  /** Of a gauge or sum. */
  readonly value: number | undefined;
  readonly histogram: {
    readonly count: number;
    readonly sum: number;
    readonly bounds: number[];
    readonly counts: number[];
  };
}

/** The series of an `ExportMetricsServiceRequest`. */
export function decodeMetrics(body: Uint8Array): ReceivedMetric[] {
  return metricsOf(toJson(REQUEST, fromBinary(REQUEST, body)) as unknown as MetricsJson);
}

interface Points {
  readonly aggregationTemporality?: number;
  readonly isMonotonic?: boolean;
  readonly dataPoints: readonly {
    readonly attributes?: AttributesJson;
    readonly startTimeUnixNano: string;
    readonly timeUnixNano: string;
    readonly asDouble?: number;
    readonly count?: string | number;
    readonly sum?: number;
    readonly bucketCounts?: readonly (string | number)[];
    readonly explicitBounds?: readonly number[];
  }[];
}

/** An `ExportMetricsServiceRequest` as JSON. */
export interface MetricsJson {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: AttributesJson };
    readonly scopeMetrics: readonly {
      readonly metrics: readonly ({ readonly name: string; readonly unit?: string } & {
        readonly [kind in ReceivedMetric["kind"]]?: Points;
      })[];
    }[];
  }[];
}

const KINDS = ["gauge", "sum", "histogram"] as const;
/** `AGGREGATION_TEMPORALITY_CUMULATIVE`. */
const CUMULATIVE = 2;

export function metricsOf({ resourceMetrics }: MetricsJson): ReceivedMetric[] {
  return resourceMetrics.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) =>
      metrics.flatMap((metric) => {
        const kind = KINDS.find((one) => metric[one] !== undefined)!;
        const { dataPoints, aggregationTemporality, isMonotonic = false } = metric[kind]!;
        return dataPoints.map((point) => ({
          name: metric.name,
          unit: metric.unit ?? "",
          kind,
          isCumulative: aggregationTemporality === CUMULATIVE,
          isMonotonic,
          attributes: valuesOf(point.attributes),
          resource: valuesOf(resource.attributes),
          startMs: Number(point.startTimeUnixNano) / 1e6,
          endMs: Number(point.timeUnixNano) / 1e6,
          // The JSON encoding omits zero.
          value: kind === "histogram" ? undefined : (point.asDouble ?? 0),
          histogram: {
            count: Number(point.count ?? 0),
            sum: point.sum ?? 0,
            bounds: [...(point.explicitBounds ?? [])],
            counts: (point.bucketCounts ?? []).map(Number),
          },
        }));
      }),
    ),
  );
}

/** The messages that are read here, with the numbers of `metrics/v1/metrics.proto` (opentelemetry-proto 1.9.0). */
const REQUEST = describe({
  Request: { resourceMetrics: [1, ["ResourceMetrics"]] },
  ResourceMetrics: { resource: [1, "Resource"], scopeMetrics: [2, ["ScopeMetrics"]] },
  ...COMMON,
  ScopeMetrics: { metrics: [2, ["Metric"]] },
  Metric: {
    name: [1, Type.STRING],
    description: [2, Type.STRING],
    unit: [3, Type.STRING],
    gauge: [5, "Gauge"],
    sum: [7, "Sum"],
    histogram: [9, "Histogram"],
  },
  Gauge: { dataPoints: [1, ["NumberDataPoint"]] },
  Sum: {
    dataPoints: [1, ["NumberDataPoint"]],
    aggregationTemporality: [2, Type.INT32],
    isMonotonic: [3, Type.BOOL],
  },
  Histogram: { dataPoints: [1, ["HistogramDataPoint"]], aggregationTemporality: [2, Type.INT32] },
  NumberDataPoint: {
    startTimeUnixNano: [2, Type.FIXED64],
    timeUnixNano: [3, Type.FIXED64],
    asDouble: [4, Type.DOUBLE],
    attributes: [7, ["KeyValue"]],
  },
  HistogramDataPoint: {
    startTimeUnixNano: [2, Type.FIXED64],
    timeUnixNano: [3, Type.FIXED64],
    count: [4, Type.FIXED64],
    sum: [5, Type.DOUBLE],
    bucketCounts: [6, [Type.FIXED64]],
    explicitBounds: [7, [Type.DOUBLE]],
    attributes: [9, ["KeyValue"]],
  },
});
