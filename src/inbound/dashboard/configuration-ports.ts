import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ProviderPresetSchema } from "../../../gen/parley/console/v1/configuration_pb.js";
import type { Actor } from "../../access/accounts.ts";
import type { Failure } from "../../core/failure.ts";

/** Names of the sections, as in the configuration file. */
export type SectionName = "providers" | "models" | "aliases" | "timeouts" | "limits" | "retries" | "breaker";

/** An entry with its origin and its state. */
export interface ShownEntry {
  readonly section: SectionName;
  readonly name: string;
  readonly origin: "file" | "stored" | "environment" | "built in" | "imported";
  readonly state: "in force" | "overridden" | "left out" | "without credential";
  readonly entry: string;
  readonly problems: readonly string[];
  readonly models: number;
  readonly credential?: {
    readonly state: "usable" | "missing" | "unreadable" | "other address";
    readonly keys: number;
    readonly address?: string;
    readonly setAtMs?: number;
    readonly setBy?: string | undefined;
  };
}

/** Actor and reason of a change. */
export interface ChangeFacts {
  readonly expected: number;
  readonly comment: string;
  readonly validateOnly: boolean;
  /** Whether a change that removes a stored credential is refused. Default: false. */
  readonly keepsCredentials?: boolean;
  readonly actor: Actor;
}

/** Result of a change. */
export interface ChangeResult {
  /** Undefined when nothing has changed. */
  readonly version: number | undefined;
  readonly atMs: number;
  readonly comment: string;
  readonly warnings: readonly string[];
  /** Whether this process has put it in force. */
  readonly applied: boolean;
}

/** A version without its document. */
export interface Version {
  readonly version: number;
  readonly atMs: number;
  readonly createdBy: string;
  readonly comment: string;
}

/** Failure of a tested provider, and advice. */
export interface DraftFailure {
  readonly failure: Failure;
  readonly advice: string | undefined;
}

/** The stored configuration. All throw Failures: `invalid_request` with violations, and `conflict`. */
export interface ConfigurationPorts {
  entries(): Promise<{
    readonly entries: readonly ShownEntry[];
    readonly version: number;
    readonly latestVersion: number;
    readonly file: string;
    readonly enabled: boolean;
    readonly allowsPrivate: boolean;
  }>;
  change(
    change: ChangeFacts & {
      readonly changes: readonly {
        readonly section: SectionName;
        readonly name: string;
        readonly entry: string | undefined;
        readonly apiKeys: readonly string[];
        readonly removesCredential: boolean;
      }[];
    },
  ): Promise<ChangeResult>;
  replace(change: ChangeFacts & { readonly document: string }): Promise<ChangeResult>;
  rollBack(change: ChangeFacts & { readonly to: number }): Promise<ChangeResult>;
  read(): Promise<{ readonly document: string; readonly version: number }>;
  versions(page: { readonly before: number | undefined; readonly limit: number }): Promise<readonly Version[]>;
  version(
    number: number,
    base: number | undefined,
  ): Promise<{
    readonly version: Version;
    readonly document: string;
    readonly differences: readonly {
      readonly section: SectionName;
      readonly name: string;
      readonly before: string | undefined;
      readonly after: string | undefined;
    }[];
  }>;
  readonly presets: readonly MessageInitShape<typeof ProviderPresetSchema>[];
  test(
    draft: {
      readonly name: string;
      readonly entry: string | undefined;
      readonly apiKeys: readonly string[];
      readonly upstreamModel: string;
      readonly actor: Actor;
    },
    ending: AbortSignal,
  ): Promise<{
    readonly models:
      | readonly {
          readonly name: string;
          readonly contextWindow: number | undefined;
          readonly maxOutputTokens: number | undefined;
          readonly outputModalities?: readonly ("text" | "image" | "audio")[] | undefined;
        }[]
      | undefined;
    readonly listFailure: DraftFailure | undefined;
    readonly completion: { readonly durationMs: number; readonly failure: DraftFailure | undefined } | undefined;
  }>;
}
