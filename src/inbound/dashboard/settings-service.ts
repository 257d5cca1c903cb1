import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { GetConfigurationResponseSchema, SettingsService } from "../../../gen/parley/console/v1/settings_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { AccessContext } from "../../access/context.ts";
import { type ListedModel, makes } from "../../core/model.ts";
import type { Limits } from "../../core/principal.ts";
import type { TargetHistoryStore } from "../../ledger/target-history.ts";
import { toLimitsMessage } from "./account-messages.ts";
import { SIGN_UP_MODES } from "./session-service.ts";
import { toReplicaMessage } from "./target-history.ts";

/** The configuration in force, without secrets. */
export type ConfigurationInForce = Required<
  Pick<
    MessageInitShape<typeof GetConfigurationResponseSchema>,
    "file" | "entries" | "providers" | "nodeVersion" | "database" | "databaseVersion" | "rates"
  >
>;

/** Ports of the settings service. */
export interface SettingsServicePorts {
  readonly access: Pick<AccessContext, "signUp">;
  readonly models: () => readonly ListedModel[];
  readonly version: string;
  /** Limits of accounts without their own. */
  readonly accountLimits: () => Limits;
  readonly configuration: () => ConfigurationInForce;
  /** Processes of the installation. */
  readonly targets: Pick<TargetHistoryStore, "replicas">;
  /** How long prompts and answers are kept; undefined: none are stored. */
  readonly contentKeptMs?: number | undefined;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Settings of this installation. */
export function createSettingsService(ports: SettingsServicePorts): ServiceImpl<typeof SettingsService> {
  const { access, models, version, accountLimits, configuration, targets, contentKeptMs = 0 } = ports;
  return {
    get: () => ({
      signUpMode: SIGN_UP_MODES[access.signUp],
      models: models().map((model) => ({
        id: model.id,
        images: makes(model, Modality.IMAGE),
        embeddings: makes(model, Modality.EMBEDDING),
      })),
      version,
      accountLimits: toLimitsMessage(accountLimits()),
      contentStoreDays: contentKeptMs / DAY_MS,
    }),

    async getConfiguration() {
      const replicas = await targets.replicas();
      return {
        ...configuration(),
        version,
        replicas: replicas.map((replica) => ({
          replica: toReplicaMessage(replica),
          pending: (replica.pending ?? []).map(({ key, value }) => ({ key, value })),
        })),
      };
    },
  };
}
