import {
  createKey,
  DEFAULT_GRACE,
  GRACES,
  keyState,
  revokeKey,
  rotateKey,
  type Grace,
  type KeyContext,
} from "../access/keys.ts";
import { CAPABILITIES } from "../access/principal.ts";
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { nearest } from "../config/nearest.ts";
import { systemClock } from "../core/clock.ts";
import type { Capability } from "../core/principal.ts";
import { openStore } from "../store/store.ts";
import {
  CONFIG_FLAG,
  JSON_FLAG,
  UsageError,
  writeJson,
  type CliContext,
  type Command,
  type Invocation,
} from "./command.ts";
import { parseDuration } from "./duration.ts";
import { EXIT } from "./exit-code.ts";
import { KEY_HEADING, toCreatedJson, toKeyJson, toKeyRow, writeSecret } from "./key-output.ts";
import { formatTable } from "./table.ts";

export const keysCreate: Command = {
  name: "keys create",
  summary: "make an API key and print it, this once",
  positionals: [],
  flags: {
    name: { value: "NAME", help: "what it is for (required)" },
    models: { value: "A,B", help: "the models it may use (default: all)" },
    capabilities: { value: CAPABILITIES.join(","), help: "what it may be used for (default: both)" },
    expires: { value: "30d", help: "how long it lives, in m, h, d or w (default: for ever)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys, config) => {
      const { name, models, capabilities, expires } = invocation.flags;
      if (name === undefined) throw new UsageError("--name is required: --name NAME");
      const created = await createKey(keys, {
        name,
        models: models === undefined ? undefined : readModels(models, config),
        capabilities: capabilities === undefined ? undefined : readCapabilities(capabilities),
        lifetimeMs: expires === undefined ? undefined : readLifetime(expires),
      });
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
      const records = await store.list();
      if (invocation.switches.has("json")) {
        writeJson(
          context.stdout,
          records.map((record) => ({ ...toKeyJson(record), state: keyState(record, nowMs) })),
        );
      } else {
        context.stdout.write(`${formatTable([KEY_HEADING, ...records.map((record) => toKeyRow(record, nowMs))])}\n`);
      }
    }),
};

export const keysRotate: Command = {
  name: "keys rotate",
  summary: "make a key in place of another one, which goes on working for a while",
  positionals: ["ID"],
  flags: {
    grace: {
      value: Object.keys(GRACES).join("|"),
      help: `how long the old key goes on working (default: ${DEFAULT_GRACE})`,
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys) => {
      const id = invocation.positionals[0] ?? "";
      const grace = readGrace(invocation.flags["grace"] ?? DEFAULT_GRACE);
      const created = await rotateKey(keys, id, grace);
      if (invocation.switches.has("json"))
        writeJson(context.stdout, { ...toCreatedJson(created), replaces: id, grace });
      else {
        writeSecret(context, created);
        const end = grace === "0" ? "has ended" : `ends in ${grace}, or earlier if it was to expire before`;
        context.stderr.write(`${id} ${end}.\n`);
      }
    }),
};

export const keysRevoke: Command = {
  name: "keys revoke",
  summary: "end an API key for good; running servers refuse it within five seconds",
  positionals: ["ID"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withKeys(invocation, context, async (keys) => {
      const id = invocation.positionals[0] ?? "";
      await revokeKey(keys, id);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id, state: "revoked" });
      else context.stdout.write(`Revoked ${id}.\n`);
    }),
};

type KeysAction = (keys: KeyContext, config: Config) => Promise<void>;

async function withKeys({ flags }: Invocation, { env }: CliContext, action: KeysAction): Promise<number> {
  const config = loadConfig({ file: flags["config"], env });
  const store = await openStore({ dataDir: config.dataDir, databaseUrl: undefined });
  try {
    await action({ store: store.keys, clock: systemClock }, config);
    return EXIT.ok;
  } finally {
    await store.close();
  }
}

function readModels(list: string, config: Config): string[] {
  const known = config.models.map(({ id }) => id);
  return list.split(",").map((id) => {
    if (known.includes(id)) return id;
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
  return meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${meant}?`;
}
