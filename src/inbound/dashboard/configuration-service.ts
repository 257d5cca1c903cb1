import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type ChangeConfigurationResponseSchema,
  ConfigurationSection,
  type ConfigurationService,
  type ConfigurationVersionSchema,
  CredentialState,
  EntryOrigin,
  EntryState,
  type NamedEntrySchema,
  type OfferedModelSchema,
} from "../../../gen/parley/console/v1/configuration_pb.js";
import type { TestFailureSchema } from "../../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { permitsEverywhere } from "../../access/permissions.ts";
import { requireEverywhere } from "../../access/sessions.ts";
import type { Clock } from "../../core/clock.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { actorOf, callOf, signedInOf } from "./call.ts";
import type {
  ChangeFacts,
  ChangeResult,
  ConfigurationPorts,
  DraftFailure,
  SectionName,
  ShownEntry,
  Version,
} from "./configuration-ports.ts";
import { answersInTurn } from "./large-answers.ts";

/** Limit of a provider's models in a response. */
const MAX_OFFERED = 1_000;

/** The stored configuration, for administrators. */
export function createConfigurationService(
  ports: ConfigurationPorts,
  clock: Clock,
): ServiceImpl<typeof ConfigurationService> {
  let isTesting = false;
  // They parse documents.
  const inTurn = answersInTurn(clock);
  return {
    async listEntries(_, context) {
      const { entries, version, latestVersion, ...facts } = await inTurn(context, () => ports.entries());
      return {
        ...facts,
        entries: entries.map(toEntryMessage),
        version: BigInt(version),
        latestVersion: BigInt(latestVersion),
      };
    },

    async changeEntries({ changes, ...request }, context) {
      const facts = factsOf(request, context);
      if (changes.some(({ apiKeys, removeCredential }) => apiKeys.length > 0 || removeCredential))
        requireEverywhere(signedInOf(context), "credentials.write");
      const read = changes.map(({ section, name, entry, apiKeys, removeCredential }, index) => ({
        section: readSection(section, `changes[${index}].section`),
        name,
        entry,
        apiKeys,
        removesCredential: removeCredential,
      }));
      return toChangeMessage(await ports.change({ ...facts, changes: read }), facts);
    },

    async export() {
      const { document, version } = await ports.read();
      return { document, version: BigInt(version) };
    },

    async import({ document, ...request }, context) {
      const facts = factsOf(request, context);
      return toChangeMessage(await ports.replace({ ...facts, document }), facts);
    },

    async listVersions({ limit, beforeVersion }) {
      if (limit < 0 || limit > 100) throw invalidField("limit", "must be 0 to 100; 0 stands for 20");
      const before = beforeVersion === 0n ? undefined : readNumber(beforeVersion, "before_version");
      return { versions: (await ports.versions({ before, limit: limit === 0 ? 20 : limit })).map(toVersionMessage) };
    },

    async getVersion({ version: asked, baseVersion }, context) {
      const base = baseVersion === 0n ? undefined : readNumber(baseVersion, "base_version");
      const number = readNumber(asked, "version");
      const { version, document, differences } = await inTurn(context, () => ports.version(number, base));
      return {
        version: toVersionMessage(version),
        document,
        differences: differences.map(({ section, name, before = "", after = "" }) => ({
          section: SECTIONS[section],
          name,
          before,
          after,
        })),
      };
    },

    async rollBack({ version, ...request }, context) {
      const facts = factsOf(request, context);
      return toChangeMessage(await ports.rollBack({ ...facts, to: readNumber(version, "version") }), facts);
    },

    listPresets: () => ({ presets: [...ports.presets] }),

    async testProvider({ name, entry, apiKeys, upstreamModel }, context) {
      if (isTesting)
        throw new Failure("rate_limited", "Another provider is being tested. Try again when that is done.", {
          retryAfterMs: 1_000,
        });
      isTesting = true;
      try {
        const { signal } = callOf(context).open;
        const { models, listFailure, completion } = await ports.test(
          { name, entry, apiKeys, upstreamModel, actor: actorOf(context) },
          signal,
        );
        return {
          models: (models ?? []).slice(0, MAX_OFFERED).map(toOfferedMessage),
          ...(listFailure !== undefined && { listFailure: toFailureMessage(listFailure) }),
          durationMs: completion?.durationMs ?? 0,
          ...(completion?.failure !== undefined && { failure: toFailureMessage(completion.failure) }),
        };
      } finally {
        isTesting = false;
      }
    },
  };
}

const SECTIONS: Readonly<Record<SectionName, ConfigurationSection>> = {
  providers: ConfigurationSection.PROVIDERS,
  models: ConfigurationSection.MODELS,
  aliases: ConfigurationSection.ALIASES,
  timeouts: ConfigurationSection.TIMEOUTS,
  limits: ConfigurationSection.LIMITS,
  retries: ConfigurationSection.RETRIES,
  breaker: ConfigurationSection.BREAKER,
};

const ORIGINS: Readonly<Record<ShownEntry["origin"], EntryOrigin>> = {
  file: EntryOrigin.FILE,
  stored: EntryOrigin.STORED,
  environment: EntryOrigin.ENVIRONMENT,
  "built in": EntryOrigin.BUILT_IN,
  imported: EntryOrigin.IMPORTED,
};

const STATES: Readonly<Record<ShownEntry["state"], EntryState>> = {
  "in force": EntryState.IN_FORCE,
  overridden: EntryState.OVERRIDDEN,
  "left out": EntryState.LEFT_OUT,
  "without credential": EntryState.WITHOUT_CREDENTIAL,
};

const CREDENTIAL_STATES: Readonly<Record<NonNullable<ShownEntry["credential"]>["state"], CredentialState>> = {
  usable: CredentialState.USABLE,
  missing: CredentialState.MISSING,
  unreadable: CredentialState.UNREADABLE,
  "other address": CredentialState.OTHER_ADDRESS,
};

const MODALITIES = { text: Modality.TEXT, image: Modality.IMAGE, audio: Modality.AUDIO } as const;

interface ChangeRequest {
  readonly expectedVersion: bigint;
  readonly comment: string;
  readonly validateOnly: boolean;
}

function factsOf(
  { expectedVersion, comment, validateOnly }: ChangeRequest,
  context: Pick<HandlerContext, "values">,
): ChangeFacts {
  return {
    expected: readNumber(expectedVersion, "expected_version"),
    comment,
    validateOnly,
    keepsCredentials: !permitsEverywhere(signedInOf(context), "credentials.write"),
    actor: actorOf(context),
  };
}

function readNumber(value: bigint, field: string): number {
  if (value >= 0n && value < 2n ** 31n) return Number(value);
  throw invalidField(field, "must be the number of a version");
}

function readSection(section: ConfigurationSection, field: string): SectionName {
  const found = Object.entries(SECTIONS).find(([, number]) => number === section);
  if (found === undefined) throw invalidField(field, "is not one of ConfigurationSection");
  return found[0] as SectionName;
}

function toEntryMessage(shown: ShownEntry): MessageInitShape<typeof NamedEntrySchema> {
  const { section, name, origin, state, entry, problems, models, credential } = shown;
  return {
    section: SECTIONS[section],
    name,
    origin: ORIGINS[origin],
    state: STATES[state],
    entry,
    problems: [...problems],
    models,
    ...(credential !== undefined && {
      credential: {
        state: CREDENTIAL_STATES[credential.state],
        keys: credential.keys,
        address: credential.address ?? "",
        setBy: credential.setBy ?? "",
        ...(credential.setAtMs !== undefined && { setTime: timestampFromMs(credential.setAtMs) }),
      },
    }),
  };
}

function toChangeMessage(
  { version, atMs, comment, warnings, applied }: ChangeResult,
  { actor }: ChangeFacts,
): MessageInitShape<typeof ChangeConfigurationResponseSchema> {
  return {
    applied,
    warnings: [...warnings],
    ...(version !== undefined && {
      version: toVersionMessage({ version, atMs, comment, createdBy: actor.actorId ?? "" }),
    }),
  };
}

function toVersionMessage({
  version,
  atMs,
  createdBy,
  comment,
}: Version): MessageInitShape<typeof ConfigurationVersionSchema> {
  return { version: BigInt(version), createTime: timestampFromMs(atMs), createdBy, comment };
}

function toOfferedMessage({
  name,
  contextWindow = 0,
  maxOutputTokens = 0,
  outputModalities = [],
}: NonNullable<Awaited<ReturnType<ConfigurationPorts["test"]>>["models"]>[number]): MessageInitShape<
  typeof OfferedModelSchema
> {
  return { name, contextWindow, maxOutputTokens, outputModalities: outputModalities.map((one) => MODALITIES[one]) };
}

function toFailureMessage({ failure, advice = "" }: DraftFailure): MessageInitShape<typeof TestFailureSchema> {
  const { code, message, upstreamStatus } = failure;
  return {
    outcome: code,
    reason: message,
    advice,
    ...(upstreamStatus !== undefined && { httpStatusCode: upstreamStatus }),
  };
}
