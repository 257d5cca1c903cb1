import type { AccessContext } from "../access/context.ts";
import { needsRestart } from "../config/applied.ts";
import type { Config } from "../config/config.ts";
import type { ConfigSource } from "../config/parse.ts";
import { listSettings } from "../config/settings.ts";
import { readVersion } from "../config/version.ts";
import type { Completions } from "../core/completions.ts";
import { builtFilesOf } from "../inbound/dashboard/built-files.ts";
import { type Console, createConsole } from "../inbound/dashboard/console.ts";
import type { InstallationFacts } from "../inbound/dashboard/overview-service.ts";
import type { RequestFeed } from "../inbound/dashboard/request-feed.ts";
import type { ConfigurationInForce } from "../inbound/dashboard/settings-service.ts";
import { createDocuments, type Documents } from "../inbound/http/documents.ts";
import { readOwnFolder } from "../installation/own-files.ts";
import type { EdgeServices, Refusal } from "../inbound/services.ts";
import type { OwnedRouter } from "../router/router.ts";
import type { HealthRecorder } from "../router/upstream-health.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CredentialCipher, providersForAccounts } from "./account-credentials.ts";
import { alertPortsOf, auditStreamPortsOf } from "./alerts.ts";
import { oidcOf } from "./oidc.ts";
import { adviceOn, testModel } from "./provider-test.ts";
import type { Rates } from "./rates.ts";
import type { StoredContents } from "./stored-contents.ts";
import { configurationPortsOf } from "./stored-service.ts";

interface ConsoleParts extends Pick<EdgeServices, "completions" | "calls" | "admission" | "traces"> {
  /** As of `completions`, without counting a request. */
  readonly explain: Completions["explain"];
  readonly access: AccessContext;
  readonly store: Store;
  readonly contents: StoredContents | undefined;
  readonly router: OwnedRouter;
  readonly health: HealthRecorder;
  readonly rates: Pick<Rates, "place">;
  /** The configuration in force, which a reload changes. */
  readonly inForce: () => Config;
  /** The source that it was read from. */
  readonly source: () => ConfigSource;
  readonly credentials: Pick<CredentialCipher, "seal" | "sealKeys" | "openKeys" | "sealChannel" | "openChannel">;
  readonly feed: RequestFeed;
  readonly observer: { refused(refusal: Refusal): void };
  readonly log: Logger;
}

/** Folder in which `npm start` builds the dashboard's pages. */
const PAGES_FOLDER = "dist/console";

const UNTRUSTED_PROXY =
  "requests carry x-forwarded-for, but no proxy is trusted: sign-in limits count all clients behind it as one network; " +
  "if it is your proxy, list its address in http.trusted_proxies";

/** Builds the dashboard from the parts of this gateway. */
export async function consoleOf(
  { http, signIn, content }: Config,
  {
    access,
    store,
    contents,
    router,
    health,
    rates,
    inForce,
    source,
    credentials,
    feed,
    observer,
    log,
    completions,
    explain,
    calls,
    admission,
    traces,
  }: ConsoleParts,
): Promise<{ readonly console: Console; readonly hasPages: boolean }> {
  const files = builtFilesOf(await readOwnFolder(PAGES_FOLDER));
  const console = createConsole(
    {
      access,
      audit: store.audit,
      auditStreams: auditStreamPortsOf({ store, credentials, inForce }, access),
      keys: store.keys,
      keyNotices: store.keyNotices,
      ledger: store.ledger,
      usage: store.usage,
      database: store.kind,
      refusals: store.refusals,
      savedFilters: store.savedFilters,
      contents,
      contentKeptMs: content.keptMs,
      stops: store.stops,
      attributedBudgets: store.attributedBudgets,
      feed,
      models: () => router.list(),
      health,
      openingOf: (model) => router.openingOf(model),
      targets: store.targetHistory,
      configuration: () => describeConfiguration(inForce(), { store, rates }),
      installation: () => installationOf(inForce(), store),
      stored: configurationPortsOf({
        store: store.configuration,
        cipher: credentials,
        inForce,
        source,
        clock: access.clock,
        log: access.log,
      }),
      oidc: oidcOf(signIn, access.clock, log),
      alerts: alertPortsOf({ store, credentials, inForce }, access),
      accountLimits: () => inForce().limits,
      completions,
      explain,
      credentials: { seal: credentials.seal, providers: () => providersForAccounts(inForce()) },
      testModel: async (model) => (await testModel(model)).durationMs,
      adviceOnTest: (failure, { providerName }) => {
        const provider = inForce().providers.find(({ name }) => name === providerName);
        return provider?.simulated === false ? adviceOn(failure, provider.host) : undefined;
      },
      calls,
      admission,
      traces,
      traceUrl: () => inForce().tracing.url,
      version: readVersion(),
      refused: (refusal) => observer.refused(refusal),
      untrustedProxy: () => log.warn({ setting: "http.trusted_proxies" }, UNTRUSTED_PROXY),
    },
    { ...http, hasTls: http.tls !== undefined, files },
  );
  return { console, hasPages: files !== undefined };
}

function installationOf({ http: { publicUrl, tls }, providers }: Config, { kind }: Store): InstallationFacts {
  return {
    providerConnected: providers.some(({ simulated }) => !simulated),
    addressSecured: publicUrl === undefined ? tls !== undefined : publicUrl.startsWith("https:"),
    database: kind,
  };
}

function describeConfiguration(
  config: Config,
  { store, rates }: Pick<ConsoleParts, "store" | "rates">,
): ConfigurationInForce {
  return {
    file: config.file ?? "",
    entries: listSettings(config).map((setting) => ({ ...setting, needsRestart: needsRestart(setting.key) })),
    providers: config.providers.map(({ name, dialect, simulated }) => {
      const models = config.models.filter(({ provider }) => provider === name).length;
      return { name, dialect, simulated, models };
    }),
    nodeVersion: process.versions.node,
    database: store.kind,
    databaseVersion: store.versions().after,
    rates: rates.place,
  };
}

/** Folder in which `npm start` puts the proto files. */
const DOWNLOADS_FOLDER = "dist/console/proto";

/**
 * Builds the API's documents: `/openapi.json`, and the proto files where they are built.
 * `grpcPort` is undefined in a front, whose cores serve gRPC elsewhere.
 */
export async function documentsOf(grpcPort: (() => number) | undefined): Promise<Documents> {
  return createDocuments(await readOwnFolder(DOWNLOADS_FOLDER), grpcPort);
}
