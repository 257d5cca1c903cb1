import type { SetupState } from "../access/setup-token.ts";
import { CREATE_FIRST } from "../access/sign-up.ts";
import { changedAtRestart } from "../config/applied.ts";
import type { Config } from "../config/config.ts";
import { formatPath } from "../config/config-error.ts";
import { type ConfigSource, parseConfig } from "../config/parse.ts";
import { UNREAD } from "../config/stored.ts";
import { systemClock } from "../core/clock.ts";
import type { ModelImports } from "../gateway/model-imports.ts";
import type { StoredWatch } from "../gateway/stored-watch.ts";
import type { Output } from "./command.ts";
import { readVersion } from "../config/version.ts";
import { listWarnings } from "../config/warnings.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import { formatAddress } from "../config/settings.ts";
import type { Gateway, SourceParts } from "../gateway/gateway.ts";
import { commandName } from "../installation/own-programs.ts";
import type { Role } from "../gateway/role.ts";
import { inTurn, requireAddresses, requireTlsOfGrpc } from "../gateway/starting.ts";

/** Dependencies of `serve` on its process. */
export interface ServeContext {
  readonly stdout: Output;
  /** Whether `stdout` is a terminal: a first key is made only then, because logs keep their contents. */
  readonly isTerminal: boolean;
  readonly role: Role;
  /** Reads the configuration again; throws with a message for people when it cannot be read. */
  readonly reread: () => Promise<ConfigSource>;
}

/** Runs the gateway until the process is stopped (`parley serve`). Answers with the exit code. */
export async function serve(source: ConfigSource, { stdout, isTerminal, role, reread }: ServeContext): Promise<number> {
  const parsed = parseConfig(role.name === "front" ? source : { ...source, stored: UNREAD });
  const log = createLogger(parsed.log.level);
  for (const { setting, text } of listWarnings(parsed)) if (isUsed(setting, role)) log.warn({ setting }, text);
  // From the beginning: without a listener the signal ends the process.
  let isReloadAsked = false;
  let applyReload = (): void => void (isReloadAsked = true);
  process.on("SIGHUP", () => applyReload());
  const models = new ImportedModels(log, role);
  // Lists that change before the gateway has started are applied when they are read again.
  let apply: (next: Config) => Promise<void> = async () => undefined;
  const stored = await openStored(parsed, role, log);
  const begin = async () => {
    const sources = new Sources(source, stored);
    const config = (await models.use(sources.inForce, (next) => apply(next))) ?? parsed;
    logUnusable(config, log);
    const latestStored = stored && (() => stored.latest());
    const gateway = await start(config, log, { role, source: sources.inForce, latestStored });
    return { sources, config, gateway };
  };
  const { sources, config, gateway } = await begin().catch(async (error: unknown) => {
    // An open connection would hold the process.
    models.close();
    await stored?.close();
    throw error;
  });
  const stopped = Promise.race([stopSignal(), fault(log), giveUp(gateway, log)]);
  models.keep();
  apply = (next) => gateway.reload(next, "lists");
  const reloadInTurn = inTurn((changed: "file" | "stored") =>
    reload(config, changed, { gateway, log, models, sources, reread }),
  );
  applyReload = () => void reloadInTurn("file");
  stored?.start(() => reloadInTurn("stored"));
  if (isReloadAsked) applyReload();
  // Needed without the launcher and its flags: on this signal Node would open its inspector, through which every local user
  // can run code and read every credential.
  process.on("SIGUSR1", () => undefined);
  // Sent out of habit when logs are rotated; by default it ends the process.
  process.on("SIGUSR2", () => undefined);
  const { httpPort, grpcPort, operationsPort } = gateway;
  const ports = { http_port: httpPort, grpc_port: grpcPort, operations_port: operationsPort };
  log.info({ role: role.name, version: readVersion(), ...ports }, "ready");
  try {
    // Last, because a reader of the greeting may send a signal at once.
    stdout.write(await greeting(config, role, { gateway, isTerminal }));
  } catch (error) {
    await stored?.close();
    await gateway.close();
    throw error;
  }
  const crash = await stopped;
  models.close();
  const closed = stored?.close();
  const hint = "a second signal ends the calls in flight at once";
  void stopSignal().then(() => gateway.abort());
  log.info({ active_calls: await gateway.activeCalls(), hint }, "draining");
  await gateway.drain();
  await gateway.close();
  await closed;
  log.info("stopped");
  return crash === undefined ? 0 : 1;
}

/** Whether a process of this role uses the setting of a warning. */
function isUsed(setting: string, role: Role): boolean {
  if (setting === "http.grpc") return role.name === "all";
  if (setting === "grpc.listen") return role.name !== "front";
  return role.name !== "core" || !setting.startsWith("http.");
}

/** Imports only the role's modules: the parent of workers needs few. */
async function start(
  config: Config,
  log: Logger,
  { role, source, latestStored }: { readonly role: Role } & SourceParts,
): Promise<Gateway> {
  requireTlsOfGrpc(config, role.name);
  await requireAddresses(config, role.name);
  if (config.workers > 1)
    return (await import("../workers/start.ts")).startWorkers(config, log, { role, source, latestStored });
  if (role.name === "front")
    return (await import("../gateway/front-gateway.ts")).startFrontGateway(config, log, role.core);
  return (await import("../gateway/gateway.ts")).startGateway(config, log, { role: role.name, source, latestStored });
}

/** Opens the stored configuration; undefined in a front, which has no providers. */
async function openStored(config: Config, role: Role, log: Logger): Promise<StoredWatch | undefined> {
  if (role.name === "front") return undefined;
  return (await import("../gateway/stored-watch.ts")).openStoredWatch(config, { clock: systemClock, log });
}

/** The file in force, and the stored configuration beside it. */
class Sources {
  readonly #stored: StoredWatch | undefined;
  #inForce: ConfigSource;

  constructor(file: ConfigSource, stored: StoredWatch | undefined) {
    this.#stored = stored;
    this.#inForce = this.with(file);
  }

  get inForce(): ConfigSource {
    return this.#inForce;
  }

  /** The file with the present stored configuration. Throws ConfigError. */
  with(file: ConfigSource): ConfigSource {
    if (this.#stored === undefined) return file;
    return { ...file, stored: this.#stored.readBy(parseConfig({ ...file, stored: UNREAD })) };
  }

  keep(source: ConfigSource): void {
    this.#inForce = source;
  }
}

/** Logs what is stored and cannot be used: the start must not depend on it. */
function logUnusable({ stored, providers }: Config, log: Logger): void {
  for (const { path, problems } of stored?.leftOut ?? [])
    log.error({ entry: formatPath(path), problems }, "a part of the stored configuration is not valid and is left out");
  for (const provider of providers)
    if (!provider.simulated && provider.lack !== undefined)
      log.warn({ provider: provider.name, lack: provider.lack }, "the credential of a stored provider cannot be used");
}

interface ReloadParts extends Pick<ServeContext, "reread"> {
  readonly gateway: Gateway;
  readonly log: Logger;
  readonly models: ImportedModels;
  readonly sources: Sources;
}

/**
 * Applies a changed file, or a changed stored configuration beside the file in force. Resolves with whether it is in force now: an invalid
 * file changes nothing.
 */
async function reload(
  before: Config,
  changed: "file" | "stored",
  { gateway, log, models, sources, reread }: ReloadParts,
): Promise<boolean> {
  const apply = (complete: Config): Promise<void> => gateway.reload(complete, "lists");
  try {
    const source = sources.with(changed === "file" ? await reread() : sources.inForce);
    const next = await models.use(source, apply, { waits: changed === "file" });
    // The gateway stops.
    if (next === undefined) return false;
    await gateway.reload(next, changed, source);
    models.keep();
    sources.keep(source);
    if (changed === "stored") log.info({ version: next.stored?.version }, "stored configuration applied");
    else log.info("configuration reloaded");
    logUnusable(next, log);
    if (changed === "stored") return true;
    const sections = changedAtRestart(before, next);
    if (sections.length > 0) log.warn({ sections }, "these sections have changed and need a restart");
    return true;
  } catch (error) {
    models.revert(apply);
    const reason = error instanceof Error ? error.message : String(error);
    log.error({ reason }, "configuration not reloaded; the old one stays");
    return false;
  }
}

/** The imports of models, of which a front has none. Their modules are loaded only for a configuration that has some. */
class ImportedModels {
  readonly #log: Logger;
  readonly #role: Role;
  #imports: ModelImports | undefined;

  constructor(log: Logger, role: Role) {
    this.#log = log;
    this.#role = role;
  }

  /** As `ModelImports.use`. */
  async use(
    source: ConfigSource,
    apply: (config: Config) => Promise<void>,
    options?: { readonly waits?: boolean },
  ): Promise<Config | undefined> {
    const config = parseConfig(source);
    if (this.#imports === undefined) {
      if (config.imports.length === 0 || this.#role.name === "front") return config;
      const { ModelImports: Imports } = await import("../gateway/model-imports.ts");
      this.#imports ??= new Imports({ log: this.#log, clock: systemClock });
    }
    return this.#imports.use(source, apply, options);
  }

  /** As `ModelImports.keep`. */
  keep(): void {
    this.#imports?.keep();
  }

  /** As `ModelImports.revert`. */
  revert(apply: (config: Config) => Promise<void>): void {
    this.#imports?.revert(apply);
  }

  close(): void {
    this.#imports?.close();
  }
}

/** Uncaught exception: the process can no longer be trusted with new work, but its calls in flight may end. */
function fault(log: Logger): Promise<Error> {
  return new Promise((resolve) => {
    process.on("uncaughtException", (error: Error) => {
      log.fatal({ cause: String(error), stack: error?.stack }, "unexpected fault");
      resolve(error);
    });
  });
}

/** Logs why the gateway cannot continue, so that the process ends with an error. */
async function giveUp({ failed }: Gateway, log: Logger): Promise<Error> {
  const error = await (failed ?? new Promise<never>(() => undefined));
  log.fatal({ reason: error.message }, "giving up");
  return error;
}

function stopSignal(): Promise<undefined> {
  return new Promise((resolve) => {
    const stop = (): void => {
      process.off("SIGTERM", stop).off("SIGINT", stop);
      resolve(undefined);
    };
    process.on("SIGTERM", stop).on("SIGINT", stop);
  });
}

const NOT_BUILT = "not built; run `npm run build:web`";

/**
 * Text for a person at the terminal: addresses, and on a fresh data directory how to make the first account, a key and
 * a first request.
 */
async function greeting(
  config: Config,
  role: Role,
  { gateway, isTerminal }: { readonly gateway: Gateway; readonly isTerminal: boolean },
): Promise<string> {
  const { httpPort, grpcPort, operationsPort, hasPages } = gateway;
  const at = (listen: Config["http"]["listen"], port: number): string => formatAddress({ host: listen.host, port });
  const schemeOf = (name: "http" | "operations"): string => (config[name].tls === undefined ? "http" : "https");
  const grpcHost = config.http.grpc && role.name === "all" ? config.http.listen : config.grpc.listen;
  const base = `${schemeOf("http")}://${at(config.http.listen, httpPort)}`;
  const simulated = config.providers.filter((provider) => provider.simulated).map((provider) => provider.name);
  const lines = [
    `Parley is ready${role.name === "all" ? "" : ` as a ${role.name}`}.`,
    "",
    ...(role.name === "core" ? [] : [`  OpenAI-compatible HTTP   ${base}/v1`]),
    ...(role.name === "all" ? [`  dashboard                ${hasPages ? `${base}/` : NOT_BUILT}`] : []),
    ...(role.name === "front"
      ? [`  core                     ${role.core}`]
      : [`  gRPC                     ${at(grpcHost, grpcPort)}`]),
    `  metrics, health          ${schemeOf("operations")}://${at(config.operations.listen, operationsPort)}`,
  ];
  if (role.name === "front") return `${lines.join("\n")}\n\n`;
  if (simulated.length > 0) {
    lines.push(
      "",
      `No credential for ${new Intl.ListFormat("en-GB").format(simulated)}: the built-in simulator answers in their place. README.md says how to use real providers.`,
    );
  }
  lines.push(...setupLines(config, base, await gateway.prepareSetup()));
  const firstKey = isTerminal ? await gateway.makeFirstKey() : undefined;
  if (firstKey !== undefined) {
    const model =
      config.models.find(({ id }) => id === "alpha-haiku-4.5") ??
      config.models.find(({ modalities }) => !modalities.output.includes("embedding"));
    const body = JSON.stringify({
      model: model?.id,
      messages: [{ role: "user", content: "Hello, who are you?" }],
    });
    lines.push("", "Your first API key, shown this once:", "", `export KEY=${firstKey}`, "");
    if (role.name === "core")
      lines.push(`Serve HTTP with: ${commandName()} serve --role front --core ${at(config.grpc.listen, grpcPort)}`);
    else if (model !== undefined)
      lines.push(
        "Try it:",
        "",
        // Over standard input: arguments of a program are visible to all users of a machine.
        `printf 'authorization: Bearer %s' "$KEY" | curl ${base}/v1/chat/completions -H @- -H 'content-type: application/json' -d '${body}'`,
      );
  } else lines.push("", `Keys are made with: ${commandName()} keys create --name "what it is for"`);
  return `${lines.join("\n")}\n\n`;
}

/** How to make the first account, where opening the dashboard is not enough. */
function setupLines(config: Config, base: string, setup: SetupState | undefined): string[] {
  if (setup === undefined || setup.hasOwner) return [];
  if (config.signUp === "closed")
    return ["", "There is no owner yet, and sign-up is closed. Make one with:", "", `  npx ${CREATE_FIRST}`];
  if (setup.token === undefined) return [];
  const link = `${config.http.publicUrl ?? base}/sign-up#setup=${setup.token}`;
  return [
    "",
    "There is no owner yet. The first person who signs up by this link, within seven days, becomes the owner:",
    "",
    `  ${link}`,
  ];
}
