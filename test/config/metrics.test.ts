import { describe, expect, it } from "vitest";
import type { Environment } from "../../src/config/environment.ts";
import { parseConfig } from "../../src/config/parse.ts";

const parse = (env: Environment) => parseConfig({ file: undefined, text: "", env }).metrics.export;
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

describe("the export of metrics", () => {
  it.each<[Environment, object | undefined]>([
    [{}, undefined],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: "true" }, undefined],
    [{ ...ENDPOINT, OTEL_METRICS_EXPORTER: "none" }, undefined],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:4318" }, undefined],
    [{ OTEL_METRICS_EXPORTER: "otlp" }, { protocol: "http/protobuf" }],
    [ENDPOINT, { protocol: "http/protobuf", exportIntervalMillis: 60_000, exportTimeoutMillis: 30_000 }],
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://collector.example/x" }, { protocol: "http/protobuf" }],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "grpc" },
      { protocol: "grpc" },
    ],
    // Longer than the interval is not possible.
    [
      { ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: "5000" },
      { exportIntervalMillis: 5_000, exportTimeoutMillis: 5_000 },
    ],
    [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "Cumulative" }, {}],
  ])("is by the variables %j: %j", (env, expected) => {
    expect([parse(env)]).toMatchObject([expected]);
  });

  it.each<[Environment, string]>([
    [{ ...ENDPOINT, OTEL_METRICS_EXPORTER: "prometheus" }, "OTEL_METRICS_EXPORTER: it must be one of otlp, none"],
    [
      { ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: "10" },
      "OTEL_METRIC_EXPORT_INTERVAL: it must be a number from 1000 to 3600000",
    ],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "delta" },
      "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: it must be cumulative",
    ],
  ])("refuses the variables %j", (env, message) => {
    expect(() => parse(env)).toThrow(message);
  });

  it("says once what is wrong with a variable that is for traces too", () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" };
    expect(() => parse(env)).toThrow(/^(?!.*must be an address.*must be an address).*must be an address/s);
  });

  it("has keys and tags with metrics of their own only where the file says so", () => {
    const text = "metrics: { keys: 20 }";
    expect(parseConfig({ file: "parley.yaml", text, env: {} }).metrics).toMatchObject({ keys: 20, tags: 0 });
    expect(() => parseConfig({ file: "parley.yaml", text: "metrics: { tags: 1001 }", env: {} })).toThrow("tags");
  });
});
