import type { IncomingMessage, ServerResponse } from "node:http";
import type { ConnectRouter } from "@connectrpc/connect";
import { AccountService } from "../../../gen/parley/console/v1/account_pb.js";
import { AdminKeyService } from "../../../gen/parley/console/v1/admin_key_pb.js";
import { AlertService } from "../../../gen/parley/console/v1/alert_pb.js";
import { AttributionService } from "../../../gen/parley/console/v1/attribution_pb.js";
import { AuditService } from "../../../gen/parley/console/v1/audit_pb.js";
import { ConfigurationService } from "../../../gen/parley/console/v1/configuration_pb.js";
import { FactorService } from "../../../gen/parley/console/v1/factor_pb.js";
import { KeyService } from "../../../gen/parley/console/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/console/v1/model_pb.js";
import { OverviewService } from "../../../gen/parley/console/v1/overview_pb.js";
import { PasswordService } from "../../../gen/parley/console/v1/password_pb.js";
import { PlaygroundService } from "../../../gen/parley/console/v1/playground_pb.js";
import { RequestService } from "../../../gen/parley/console/v1/request_pb.js";
import { RoleService } from "../../../gen/parley/console/v1/role_pb.js";
import { RoutingService } from "../../../gen/parley/console/v1/routing_pb.js";
import { SessionService } from "../../../gen/parley/console/v1/session_pb.js";
import { SettingsService } from "../../../gen/parley/console/v1/settings_pb.js";
import { StopService } from "../../../gen/parley/console/v1/stop_pb.js";
import { TeamService } from "../../../gen/parley/console/v1/team_pb.js";
import { UsageService } from "../../../gen/parley/console/v1/usage_pb.js";
import type { AccessContext } from "../../access/context.ts";
import type { AttributedBudgetStore } from "../../access/attributed-budgets.ts";
import type { AuditStore } from "../../access/audit-store.ts";
import type { SavedFilters } from "../../access/saved-filters.ts";
import type { KeyNotices } from "../../access/key-notices.ts";
import type { KeyStore } from "../../access/key-store.ts";
import type { StopStore } from "../../access/stops.ts";
import type { AdmissionControl } from "../../admission/admission-control.ts";
import type { Completions } from "../../core/completions.ts";
import type { Traces } from "../../core/trace.ts";
import type { Limits } from "../../core/principal.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import type { RefusalStore } from "../../ledger/refusal-store.ts";
import type { UsageStore } from "../../ledger/usage-store.ts";
import type { Calls } from "../calls.ts";
import type { Refusal } from "../services.ts";
import { createAccountService } from "./account-service.ts";
import { createAdminKeyService } from "./admin-key-service.ts";
import { type AlertServicePorts, createAlertService } from "./alert-service.ts";
import { createAttributionService } from "./attribution-service.ts";
import { type AuditStreamPorts, createAuditService } from "./audit-service.ts";
import type { BuiltFiles } from "./built-files.ts";
import { createNetworkFinder } from "./client-address.ts";
import type { ConfigurationPorts } from "./configuration-ports.ts";
import { createConfigurationService } from "./configuration-service.ts";
import { type Cookies, createCookies } from "./cookies.ts";
import { createCsrfCheck } from "./csrf.ts";
import { createFactorService } from "./factor-service.ts";
import { createKeyService } from "./key-service.ts";
import { createModelService, type ModelServicePorts } from "./model-service.ts";
import { createOidcRoutes, type OidcPorts } from "./oidc-routes.ts";
import { createOverviewService, type InstallationFacts } from "./overview-service.ts";
import { createPages } from "./pages.ts";
import { createPasswordService } from "./password-service.ts";
import { createPlaygroundService } from "./playground-service.ts";
import { createSiteFinder, type SiteFinder } from "./passkey-site.ts";
import { POLICIES, securityHeaders } from "./policy.ts";
import type { RequestFeed } from "./request-feed.ts";
import { ReportTurns } from "./report-turns.ts";
import { type ContentReader, createRequestService } from "./request-service.ts";
import { createRoleService } from "./role-service.ts";
import { createRpcs } from "./rpcs.ts";
import { createRoutingService, type RoutingServicePorts } from "./routing-service.ts";
import { createSessionService } from "./session-service.ts";
import { type ConfigurationInForce, createSettingsService } from "./settings-service.ts";
import { createStopService } from "./stop-service.ts";
import { Streams } from "./streams.ts";
import { createTeamService } from "./team-service.ts";
import { createUsageService } from "./usage-service.ts";

/** Ports of the dashboard. */
export interface ConsolePorts {
  readonly access: AccessContext;
  readonly audit: Pick<AuditStore, "list">;
  readonly auditStreams: AuditStreamPorts;
  readonly keys: KeyStore;
  readonly keyNotices: KeyNotices;
  readonly ledger: Pick<LedgerStore, "spending" | "list" | "listSorted" | "find">;
  readonly usage: UsageStore;
  /** The database that reports are read from. */
  readonly database: "sqlite" | "postgres";
  readonly refusals: Pick<RefusalStore, "list" | "find">;
  readonly savedFilters: SavedFilters;
  /** Stored prompts and answers, and how long they are kept; undefined: none are stored. */
  readonly contents?: ContentReader | undefined;
  readonly contentKeptMs?: number | undefined;
  readonly stops: StopStore;
  readonly attributedBudgets: AttributedBudgetStore;
  /** Requests of this process as they end. */
  readonly feed: RequestFeed;
  /** Current models, in the order of the registry. */
  readonly models: ModelServicePorts["models"];
  readonly health: ModelServicePorts["health"];
  readonly openingOf: ModelServicePorts["openingOf"];
  readonly targets: ModelServicePorts["targets"];
  readonly configuration: () => ConfigurationInForce;
  /** Facts of the installation for the overview. */
  readonly installation: () => InstallationFacts;
  readonly stored: ConfigurationPorts;
  /** Sign-in at an OpenID provider; undefined where none is configured. */
  readonly oidc?: OidcPorts | undefined;
  readonly alerts: AlertServicePorts;
  /** Limits of accounts without their own. */
  readonly accountLimits: () => Limits;
  readonly completions: Pick<Completions, "stream">;
  /** Undefined where nothing is traced. */
  readonly traces?: Traces | undefined;
  /** The setting `tracing.url`. */
  readonly traceUrl: () => string | undefined;
  readonly explain: ModelServicePorts["explain"];
  /** Rules for accounts' credentials; the models are those of `models`. */
  readonly credentials: Omit<RoutingServicePorts["rules"], "models">;
  readonly testModel: ModelServicePorts["testModel"];
  readonly adviceOnTest: ModelServicePorts["adviceOnTest"];
  readonly admission: AdmissionControl;
  /** Calls in flight, which a drain waits for. */
  readonly calls: Calls;
  readonly version: string;
  /** Receives refused calls, for logs and metrics. */
  readonly refused: (refusal: Refusal) => void;
  /** Called once when requests come through a proxy and none is trusted: its clients then count as one network. */
  readonly untrustedProxy: () => void;
}

export interface ConsoleOptions {
  /** Public URL, such as `https://parley.example.com`; undefined: any address of this machine. */
  readonly publicUrl: string | undefined;
  /** Whether the listener itself has TLS. */
  readonly hasTls: boolean;
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  /**
   * The built pages. Undefined when they are not built: the response at their addresses then names the command that builds
   * them.
   */
  readonly files?: BuiltFiles | undefined;
}

/** The dashboard's pages and services, for the HTTP server. */
export interface Console {
  /** Whether a path, without a query, belongs to the dashboard. */
  handles(path: string): boolean;
  /** Answers any request. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, requestId: string): void;
  /** Answers a browser's request for a page that does not exist. Returns false, without an answer, for other requests. */
  handleMissing(request: IncomingMessage, response: ServerResponse, requestId: string): boolean;
  /** Ends streams without an end of their own, now and later ones; other calls are still answered. */
  drain(): void;
}

/** Builds the dashboard. Throws a TypeError for invalid options. */
export function createConsole(
  ports: ConsolePorts,
  { publicUrl, hasTls, trustedProxies, files }: ConsoleOptions,
): Console {
  const address = publicUrl === undefined ? undefined : new URL(publicUrl);
  const isSecure = address?.protocol === "https:";
  const headers = securityHeaders(isSecure);
  const cookies = createCookies(isSecure || hasTls, ports.access.signIn);
  const pages = createPages(files, address);
  const { access, admission, calls, refused, untrustedProxy } = ports;
  const findNetwork = createNetworkFinder({ trustedProxies, onUntrusted: untrustedProxy });
  const networkOf = ({ socket, headers: { "x-forwarded-for": forwardedFor } }: IncomingMessage): string =>
    findNetwork({ remoteAddress: socket.remoteAddress, forwardedFor: forwardedFor?.toString() });
  const oidc =
    ports.oidc &&
    createOidcRoutes(
      { ...ports.oidc, oidcRefused: ports.oidc.refused, access, calls, cookies, refused, findNetwork: networkOf },
      { address, hasTls },
    );
  const siteOf = createSiteFinder(address, { hasTls });
  const providerSignOut: SignOutAtProvider = async (hash, host) => oidc?.signOutUrl(hash, host);
  const reports = new ReportTurns(ports.database);
  const rpcs = createRpcs(
    {
      access,
      admission,
      calls,
      refused,
      csrf: createCsrfCheck(address),
      findNetwork: networkOf,
      cookies,
      reports,
    },
    {
      policies: POLICIES,
      addRoutes: (router) => addRoutes(router, ports, { cookies, siteOf, providerSignOut, reports }),
    },
  );

  return {
    handles: (path) => path.startsWith(PREFIX) || oidc?.handles(path) === true || pages.handles(path),
    handle(request, response, requestId) {
      response.setHeader("x-request-id", requestId);
      const path = pathOf(request.url!);
      if (pages.handles(path)) return pages.handle(path, request, response);
      for (const [name, value] of headers) response.setHeader(name, value);
      const exchange = { request, response, path, requestId };
      void (oidc?.handles(path) ? oidc.answer(exchange) : rpcs.answer(exchange));
    },
    handleMissing(request, response, requestId) {
      response.setHeader("x-request-id", requestId);
      return pages.handleMissing(request, response);
    },
    drain: () => rpcs.drain(),
  };
}

const PREFIX = "/parley.console.v1.";

/** The path of a request target, which may be an absolute URL. */
function pathOf(target: string): string {
  const [path = ""] = target.split("?", 1);
  return path.startsWith("/") || !URL.canParse(target) ? path : new URL(target).pathname;
}

type SignOutAtProvider = Parameters<typeof createSessionService>[0]["providerSignOut"];

interface RouteParts {
  readonly cookies: Cookies;
  readonly siteOf: SiteFinder;
  readonly providerSignOut: SignOutAtProvider;
  readonly reports: ReportTurns;
}

function addRoutes(
  router: ConnectRouter,
  ports: ConsolePorts,
  { cookies, siteOf, providerSignOut, reports }: RouteParts,
): void {
  const { access, keys, ledger, usage, models, completions, traces } = ports;
  const ids = (): ReadonlySet<string> => new Set(models().map(({ id }) => id));
  const streams = new Streams(access.clock);
  router.service(SessionService, createSessionService({ access, cookies, siteOf, providerSignOut }));
  router.service(FactorService, createFactorService({ access, cookies, siteOf }));
  router.service(PasswordService, createPasswordService(access));
  router.service(AccountService, createAccountService({ access, keys }));
  router.service(AuditService, createAuditService({ ...ports, streams, reports }));
  router.service(TeamService, createTeamService({ access, keys, ledger }));
  router.service(RoleService, createRoleService(access));
  router.service(AdminKeyService, createAdminKeyService(access));
  router.service(
    KeyService,
    createKeyService({ access, keys, ledger, models: ids, contentKeptMs: ports.contentKeptMs }),
  );
  router.service(StopService, createStopService(ports));
  router.service(AttributionService, createAttributionService({ access, keys, budgets: ports.attributedBudgets }));
  router.service(RoutingService, createRoutingService({ access, rules: { ...ports.credentials, models: ids } }));
  router.service(OverviewService, createOverviewService(ports));
  router.service(UsageService, createUsageService({ usage, ledger, clock: access.clock }));
  router.service(RequestService, createRequestService({ ...ports, streams, reports, clock: access.clock }));
  router.service(ModelService, createModelService({ ...ports, clock: access.clock }));
  router.service(SettingsService, createSettingsService(ports));
  router.service(ConfigurationService, createConfigurationService(ports.stored, access.clock));
  router.service(AlertService, createAlertService(ports.alerts));
  router.service(
    PlaygroundService,
    createPlaygroundService({ keys, completions, streams, clock: access.clock, traces }),
  );
}
