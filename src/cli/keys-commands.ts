import { changedKeyEntry, newKeyEntry, revokedKeyEntry, transferredKeyEntries } from "../access/audit-fields.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { unknownId } from "../access/checks.ts";
import type { KeyRecord } from "../access/key-store.ts";
import { transferKey } from "../access/key-transfer.ts";
import {
  createKey,
  DEFAULT_GRACE,
  type Grace,
  GRACES,
  type KeyContext,
  keyState,
  requireContentStorage,
  revokeKey,
  rotateKey,
  updateKey,
} from "../access/keys.ts";
import { CAPABILITIES } from "../access/principal.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import type { LabelRequirements } from "../core/labels.ts";
import { type Capability, NO_LIMITS } from "../core/principal.ts";
import { PROVIDER_OPTIONS } from "../core/provider-options.ts";
import { nearest } from "../encoding/nearest.ts";
import type { Store } from "../store/store.ts";
import {
  type Command,
  CONFIG_FLAG,
  type Invocation,
  JSON_FLAG,
  UsageError,
  writeJson,
  parseDuration,
} from "./command.ts";
import {
  ATTRIBUTION_LIMIT_FLAGS,
  LIMIT_FLAGS,
  namesAttributionLimits,
  namesLimits,
  readAttributionLimits,
  readLimits,
} from "./limit-flags.ts";
import { formatTable, KEY_HEADING, toCreatedJson, toKeyJson, toKeyRow, writeSecret } from "./output.ts";
import { pagesOf, writeJsonPages, writeTablePages } from "./pages.ts";
import { commandLog, type DatabaseContext, findAccountByIdOrEmail, withStore } from "./with-store.ts";

const OPTIONS_FLAG = {
  options: {
    value: "A,B|all|none|default",
    help: `provider options that requests may use: ${PROVIDER_OPTIONS.join(", ")} (default: all without a budget, none with one)`,
  },
} as const;

const LABEL_FLAGS = {
  "require-region": { value: "A,B|any", help: "regions of which a model must have one, by its label (default: any)" },
  "require-retention": { value: "A,B|any", help: "the same for its label retention (default: any)" },
  tags: { value: "A,B|none", help: "tags, by which names with several models may choose among them (default: none)" },
} as const;

const CONTENT_FLAG = {
  "store-content": {
    value: "yes|no",
    help: "whether prompts and answers are stored, encrypted, for content.store_days of the configuration (default: no)",
  },
} as const;

export const keysCreate: Command = {
  name: "keys create",
  summary: "create an API key and print it; it is not shown again",
  positionals: [],
  flags: {
    name: { value: "NAME", help: "name of the key (required)" },
    models: { value: "A,B", help: "models that the key may use (default: all)" },
    capabilities: { value: CAPABILITIES.join(","), help: "permissions of the key (default: all)" },
    account: { value: "A", help: "owner, by the account's ID or e-mail address (default: the first account)" },
    ...LIMIT_FLAGS,
    ...ATTRIBUTION_LIMIT_FLAGS,
    ...OPTIONS_FLAG,
    ...LABEL_FLAGS,
    ...CONTENT_FLAG,
    expires: { value: "30d", help: "lifetime, in m, h, d or w (default: never expires)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, { ...context, createsDatabase: true }, async (keys, { config, store, log }) => {
      const { name, models, capabilities, options, expires, account } = invocation.flags;
      if (name === undefined) throw new UsageError("--name is required: --name NAME");
      const created = await createKey(keys, {
        name,
        models: models === undefined ? undefined : readModels(models, config),
        capabilities: capabilities === undefined ? undefined : readCapabilities(capabilities),
        limits: readLimits(invocation.flags, NO_LIMITS),
        attributionLimits: readAttributionLimits(invocation.flags),
        by: "administrator",
        options: options === undefined ? undefined : readOptions(options),
        requiredLabels: readRequiredLabels(invocation.flags, {}),
        tags: readList(invocation.flags["tags"], "none"),
        storesContent: readStoresContent(invocation.flags, config),
        accountId: account === undefined ? undefined : (await findAccountByIdOrEmail(store.accounts, account)).id,
        lifetimeMs: expires === undefined ? undefined : readLifetime(expires),
      });
      await log.record(newKeyEntry(created.record));
      if (invocation.switches.has("json")) writeJson(context.stdout, toCreatedJson(created));
      else writeSecret(context, created);
    }),
};

export const keysList: Command = {
  name: "keys list",
  summary: "list all API keys, without their secrets",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withKeys(invocation, context, async ({ store, clock }) => {
      const nowMs = clock.now();
      const pages = pagesOf((page) => store.list(undefined, page));
      const toJson = (record: KeyRecord): object => ({ ...toKeyJson(record), state: keyState(record, nowMs) });
      if (invocation.switches.has("json")) await writeJsonPages(context.stdout, pages, toJson);
      else {
        const toRow = (record: KeyRecord): string[] => toKeyRow(record, nowMs);
        await writeTablePages(context.stdout, pages, { heading: KEY_HEADING, toRow });
      }
    }),
};

export const keysRotate: Command = {
  name: "keys rotate",
  summary: "create a replacement for a key; the old key keeps working for a grace period",
  positionals: ["ID"],
  flags: {
    grace: {
      value: Object.keys(GRACES).join("|"),
      help: `grace period of the old key (default: ${DEFAULT_GRACE})`,
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys, { log }) => {
      const id = invocation.positionals[0] ?? "";
      const grace = readGrace(invocation.flags["grace"] ?? DEFAULT_GRACE);
      const before = await keys.store.find(id);
      const created = await rotateKey(keys, id, { grace, by: "administrator" });
      await log.record(changedKeyEntry("key_rotated", before!, (await keys.store.find(id))!));
      if (invocation.switches.has("json"))
        writeJson(context.stdout, { ...toCreatedJson(created), replaces: id, grace });
      else {
        writeSecret(context, created);
        const end =
          grace === "0" ? "no longer works" : `stops working in ${grace}, or at its expiry if that is earlier`;
        context.stderr.write(`${id} ${end}.\n`);
      }
    }),
};

export const keysUpdate: Command = {
  name: "keys update",
  summary: "change a key's name, permissions or limits; settings without a flag stay",
  positionals: ["ID"],
  flags: {
    name: { value: "NAME", help: "name of the key" },
    models: { value: "A,B|all", help: "models that the key may use" },
    capabilities: { value: CAPABILITIES.join(","), help: "permissions of the key" },
    ...LIMIT_FLAGS,
    ...ATTRIBUTION_LIMIT_FLAGS,
    ...OPTIONS_FLAG,
    ...LABEL_FLAGS,
    ...CONTENT_FLAG,
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys, { config, log }) => {
      const id = invocation.positionals[0] ?? "";
      const { flags } = invocation;
      const { name, models, capabilities, options } = flags;
      const storesContent = readStoresContent(flags, config);
      const before = await keys.store.find(id);
      await updateKey(keys, id, {
        by: "administrator",
        ...(name !== undefined && { name }),
        ...(models !== undefined && { models: models === "all" ? ("all" as const) : readModels(models, config) }),
        ...(capabilities !== undefined && { capabilities: readCapabilities(capabilities) }),
        ...(namesLimits(flags) && { limits: readLimits(flags, before?.limits ?? NO_LIMITS) }),
        ...(namesAttributionLimits(flags) && {
          attributionLimits: readAttributionLimits(flags, before?.attributionLimits),
        }),
        ...(options !== undefined && { options: readOptions(options) }),
        ...((flags["require-region"] ?? flags["require-retention"]) !== undefined && {
          requiredLabels: readRequiredLabels(flags, before?.requiredLabels ?? {}),
        }),
        ...(flags["tags"] !== undefined && { tags: readList(flags["tags"], "none")! }),
        ...(storesContent !== undefined && { storesContent }),
      });
      const after = (await keys.store.find(id))!;
      await log.record(changedKeyEntry("key_updated", before!, after));
      if (invocation.switches.has("json")) writeJson(context.stdout, toKeyJson(after));
      else context.stdout.write(`${formatTable([KEY_HEADING, toKeyRow(after, keys.clock.now())])}\n`);
    }),
};

export const keysTransfer: Command = {
  name: "keys transfer",
  summary: "make another account the owner of a key, which keeps working; past usage stays with the account before",
  positionals: ["ID"],
  flags: {
    to: { value: "ID|EMAIL", help: "the new owner, such as a team (required)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys, { store, log }) => {
      const { to: receiver } = invocation.flags;
      if (receiver === undefined) throw new UsageError("--to is required: --to ID|EMAIL");
      const id = invocation.positionals[0] ?? "";
      const key = await keys.store.find(id);
      if (key === undefined) throw unknownId("key", id);
      const { id: to } = await findAccountByIdOrEmail(store.accounts, receiver);
      await transferKey({ ...keys, accounts: store.accounts }, key, { to, by: "administrator" });
      for (const entry of transferredKeyEntries(id, { from: key.accountId, to })) await log.record(entry);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id, account: to, from: key.accountId });
      else context.stdout.write(`${id} belongs to ${to}.\n`);
    }),
};

export const keysRevoke: Command = {
  name: "keys revoke",
  summary: "revoke an API key and the keys it has replaced, for good; running servers refuse them within five seconds",
  positionals: ["ID"],
  flags: {
    only: { help: "keep the replaced keys until their grace period ends" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys, { log }) => {
      const id = invocation.positionals[0] ?? "";
      const revoked = await revokeKey(keys, id, invocation.switches.has("only") ? "key only" : "with predecessors");
      const { accountId } = (await keys.store.find(id))!;
      for (const each of revoked) await log.record(revokedKeyEntry({ id: each, accountId }, keys.clock.now()));
      const predecessors = revoked.slice(1);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id, state: "revoked", predecessors });
      else context.stdout.write(revoked.map((each) => `Revoked ${each}.\n`).join(""));
    }),
};

interface KeyCommandContext {
  readonly config: Config;
  readonly store: Store;
  readonly log: AuditLog;
}

function withKeys(
  invocation: Invocation,
  context: DatabaseContext,
  action: (keys: KeyContext, command: KeyCommandContext) => Promise<void>,
): Promise<number> {
  const clock = systemClock;
  return withStore(invocation, context, (store, config) =>
    action({ store: store.keys, clock }, { config, store, log: commandLog(store.audit, context) }),
  );
}

function readModels(list: string, config: Config): string[] {
  const known = [...config.models, ...config.routes].map(({ id }) => id);
  return list.split(",").map((id) => {
    // Imported models are known to the running server only.
    if (known.includes(id) || config.imports.length > 0) return id;
    throw new UsageError(`--models: there is no model "${id}"; ${suggest(id, known)}`);
  });
}

function readCapabilities(list: string): Capability[] {
  return list.split(",").map((word) => {
    const capability = CAPABILITIES.find((known) => known === word);
    if (capability !== undefined) return capability;
    throw new UsageError(`--capabilities: there is no capability "${word}"; ${suggest(word, CAPABILITIES)}`);
  });
}

function readOptions(list: string): KeyRecord["options"] {
  if (list === "default") return list;
  if (list === "all") return PROVIDER_OPTIONS;
  if (list === "none") return [];
  return list.split(",").map((word) => {
    const option = PROVIDER_OPTIONS.find((known) => known === word);
    if (option !== undefined) return option;
    throw new UsageError(`--options: there is no option "${word}"; ${suggest(word, PROVIDER_OPTIONS)}`);
  });
}

/** The required labels given by flags, over the previous ones. */
function readRequiredLabels(flags: Invocation["flags"], before: LabelRequirements): LabelRequirements {
  return {
    region: readList(flags["require-region"], "any") ?? before.region ?? [],
    retention: readList(flags["require-retention"], "any") ?? before.retention ?? [],
  };
}

/** A list; `empty` stands for an empty one. */
function readList(text: string | undefined, empty: string): string[] | undefined {
  if (text === undefined) return undefined;
  return text === empty ? [] : text.split(",");
}

/** Undefined without the flag. */
function readStoresContent(flags: Invocation["flags"], { content }: Config): boolean | undefined {
  const word = flags["store-content"];
  if (word === undefined) return undefined;
  if (word !== "yes" && word !== "no") throw new UsageError("--store-content is yes or no");
  return requireContentStorage(word === "yes", content.keptMs);
}

function readLifetime(text: string): number {
  const lifetimeMs = parseDuration(text);
  if (lifetimeMs !== undefined) return lifetimeMs;
  throw new UsageError("--expires is a number and m, h, d or w, such as 30d, and at most ten years");
}

function readGrace(text: string): Grace {
  const grace = (Object.keys(GRACES) as Grace[]).find((known) => known === text);
  if (grace !== undefined) return grace;
  throw new UsageError(`--grace is one of ${Object.keys(GRACES).join(", ")}`);
}

function suggest(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
}
