import type { DescMethod } from "@bufbuild/protobuf";
import { serviceConfig } from "./gen/service-config.js";

/** A gRPC service config, as far as the published one goes: an entry that it does not fit fails to compile. */
export interface ServiceConfig {
  readonly methodConfig: readonly MethodConfig[];
}

/** Timeout and retries of the methods of some services. Durations are in JSON form, such as `0.5s`. */
export interface MethodConfig {
  readonly name: readonly { readonly service: string }[];
  readonly timeout: string;
  readonly retryPolicy: RetryPolicy;
}

/** When and how often a failed call is repeated. */
export interface RetryPolicy {
  /** The first attempt included. */
  readonly maxAttempts: number;
  readonly initialBackoff: string;
  readonly maxBackoff: string;
  readonly backoffMultiplier: number;
  readonly retryableStatusCodes: readonly string[];
}

/** The published timeout and retry policy of a method; `undefined` for services that are not part of the contract. */
export function methodConfig(method: DescMethod): MethodConfig | undefined {
  return serviceConfig.methodConfig.find(({ name }) => name.some(({ service }) => service === method.parent.typeName));
}

/** Converts a duration in JSON form, such as `0.5s`. */
export function toMs(duration: string): number {
  return Number(duration.slice(0, -1)) * 1000;
}
