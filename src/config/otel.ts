import type { Environment } from "./environment.ts";

/** Protocols of OTLP. */
const OTLP_PROTOCOLS = ["http/protobuf", "http/json", "grpc"] as const;

export type OtlpProtocol = (typeof OTLP_PROTOCOLS)[number];

/** Reports a mistake in the value of a variable. */
export type ReportVariable = (variable: string, text: string) => void;

/**
 * Reads variables of "OpenTelemetry Environment Variable Specification" 1.56.0. An empty variable counts as unset, as that
 * specification says. A wrong value is reported, where OpenTelemetry's own libraries would fall back silently.
 */
export class OtelVariables {
  readonly #env: Environment;
  readonly #report: ReportVariable;

  constructor(env: Environment, report: ReportVariable) {
    this.#env = env;
    this.#report = report;
  }

  textOf(variable: string): string | undefined {
    return this.#env[variable]?.trim() || undefined;
  }

  choiceOf<T extends string>(variable: string, choices: readonly T[], standard: T): T {
    const text = this.textOf(variable) ?? standard;
    const found = choices.find((choice) => choice === text);
    if (found === undefined) this.#report(variable, `it must be one of ${choices.join(", ")}`);
    return found ?? standard;
  }

  numberOf(variable: string, standard: number, { min = 1, max = 1_000_000 } = {}): number {
    const value = Number(this.textOf(variable) ?? standard);
    if (value >= min && value <= max) return value;
    this.#report(variable, `it must be a number from ${min} to ${max}`);
    return standard;
  }

  /** The protocol for a signal; undefined when it is not to be exported. */
  protocolOf(signal: "TRACES" | "METRICS"): OtlpProtocol | undefined {
    if (this.textOf("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return undefined;
    const endpoint = this.#firstOf(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, "OTEL_EXPORTER_OTLP_ENDPOINT");
    const address = this.textOf(endpoint);
    const standard = address === undefined ? "none" : "otlp";
    if (this.choiceOf(`OTEL_${signal}_EXPORTER`, ["otlp", "none"], standard) === "none") return undefined;
    const protocol = this.choiceOf(
      this.#firstOf(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"),
      OTLP_PROTOCOLS,
      "http/protobuf",
    );
    // Over gRPC an address needs no scheme. The library would replace one that it cannot read by its default.
    if (address !== undefined && protocol !== "grpc" && !/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
      this.#report(endpoint, "it must be an address such as http://127.0.0.1:4318");
    return protocol;
  }

  #firstOf(...variables: string[]): string {
    return variables.find((one) => this.textOf(one) !== undefined) ?? variables[0]!;
  }
}
