import { describe, expect, it } from "vitest";
import type { Environment } from "../../src/config/environment.ts";
import { parseConfig } from "../../src/config/parse.ts";

const parse = (env: Environment) => parseConfig({ file: undefined, text: "", env }).tracing.export;
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

describe("the export of traces", () => {
  it.each<[Environment, object | undefined]>([
    [{}, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, undefined],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }, undefined],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }, undefined],
    [{ OTEL_TRACES_EXPORTER: "otlp" }, { protocol: "http/protobuf" }],
    [
      ENDPOINT,
      {
        protocol: "http/protobuf",
        sampler: "parentbased_always_on",
        ratio: 1,
        maxQueueSize: 2048,
        maxExportBatchSize: 512,
        scheduledDelayMillis: 5000,
      },
    ],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://collector.example/x" }, { protocol: "http/protobuf" }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, { protocol: "grpc" }],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" },
      { protocol: "http/json" },
    ],
    [
      {
        ...ENDPOINT,
        OTEL_TRACES_SAMPLER: "traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.1",
        OTEL_BSP_MAX_QUEUE_SIZE: "100",
      },
      { sampler: "traceidratio", ratio: 0.1, maxQueueSize: 100, maxExportBatchSize: 100 },
    ],
  ])("is by the variables %j: %j", (env, expected) => {
    expect([parse(env)]).toMatchObject([expected]);
  });

  it.each<[Environment, string]>([
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
      "OTEL_EXPORTER_OTLP_ENDPOINT: it must be an address such as http://",
    ],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "http" },
      "OTEL_EXPORTER_OTLP_PROTOCOL: it must be one of http/protobuf, ",
    ],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: "jaeger" }, "OTEL_TRACES_EXPORTER: it must be one of otlp, none"],
    [{ ...ENDPOINT, OTEL_TRACES_SAMPLER: "jaeger_remote" }, "OTEL_TRACES_SAMPLER: it must be one of always_on, "],
    [{ ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG: "10%" }, "OTEL_TRACES_SAMPLER_ARG: it must be a number from 0 to 1"],
    [
      { ...ENDPOINT, OTEL_BSP_MAX_QUEUE_SIZE: "1e12" },
      "OTEL_BSP_MAX_QUEUE_SIZE: it must be a number from 1 to 1000000",
    ],
  ])("is not by %j", (env, message) => {
    expect(() => parse(env)).toThrow(message);
  });
});
