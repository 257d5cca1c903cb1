import { request as sendRequest } from "node:http";
import { type Client, type ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect } from "vitest";
import { AccountService } from "../../../gen/parley/console/v1/account_pb.js";
import { AdminKeyService } from "../../../gen/parley/console/v1/admin_key_pb.js";
import { AlertService } from "../../../gen/parley/console/v1/alert_pb.js";
import { AttributionService } from "../../../gen/parley/console/v1/attribution_pb.js";
import { AuditService } from "../../../gen/parley/console/v1/audit_pb.js";
import { FactorService } from "../../../gen/parley/console/v1/factor_pb.js";
import { KeyService } from "../../../gen/parley/console/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/console/v1/model_pb.js";
import { PlaygroundService } from "../../../gen/parley/console/v1/playground_pb.js";
import { RequestService } from "../../../gen/parley/console/v1/request_pb.js";
import { RoleService } from "../../../gen/parley/console/v1/role_pb.js";
import { RoutingService } from "../../../gen/parley/console/v1/routing_pb.js";
import { SessionService } from "../../../gen/parley/console/v1/session_pb.js";
import { SettingsService } from "../../../gen/parley/console/v1/settings_pb.js";
import { StopService } from "../../../gen/parley/console/v1/stop_pb.js";
import { TeamService } from "../../../gen/parley/console/v1/team_pb.js";
import { OverviewService } from "../../../gen/parley/console/v1/overview_pb.js";
import { UsageService } from "../../../gen/parley/console/v1/usage_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { thresholdsInForce } from "../../../src/alerts/thresholds.ts";
import { createAuthenticator } from "../../../src/access/key-cache.ts";
import type { KeyStore } from "../../../src/access/key-store.ts";
import { type AuditLog, createAuditLog } from "../../../src/access/audit-log.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { Completions } from "../../../src/core/completions.ts";
import type { Model } from "../../../src/core/model.ts";
import type { Route } from "../../../src/core/route.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { bearerToken } from "../../../src/inbound/current-key.ts";
import { type ConsoleOptions, type ConsolePorts, createConsole } from "../../../src/inbound/dashboard/console.ts";
import { RequestFeed } from "../../../src/inbound/dashboard/request-feed.ts";
import { type HttpServer, startHttpServer } from "../../../src/inbound/http/server.ts";
import type { Refusal } from "../../../src/inbound/services.ts";
import type { Store } from "../../../src/store/store.ts";
import type { AttemptCount, KnownReplica, StepLatencies } from "../../../src/ledger/target-history.ts";
import { createHealthRecorder, type HealthRecorder, type Opening } from "../../../src/router/upstream-health.ts";
import { type AccessUnderTest, PASSWORD, setUpAccess } from "../../access/set-up.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import { roomyAdmission } from "../../support/admission.ts";
import { modelOf, ScriptedProvider } from "../../support/scripted-provider.ts";
import { errorOf } from "./errors.ts";
import { idleServices } from "../../support/idle-services.ts";

/** One browser: a client with a cookie of its own. */
export interface Browser {
  readonly session: Client<typeof SessionService>;
  readonly account: Client<typeof AccountService>;
  readonly factor: Client<typeof FactorService>;
  readonly audit: Client<typeof AuditService>;
  readonly key: Client<typeof KeyService>;
  readonly overview: Client<typeof OverviewService>;
  readonly usage: Client<typeof UsageService>;
  readonly request: Client<typeof RequestService>;
  readonly settings: Client<typeof SettingsService>;
  readonly model: Client<typeof ModelService>;
  readonly playground: Client<typeof PlaygroundService>;
  readonly routing: Client<typeof RoutingService>;
  readonly stop: Client<typeof StopService>;
  readonly attribution: Client<typeof AttributionService>;
  readonly team: Client<typeof TeamService>;
  readonly alert: Client<typeof AlertService>;
  readonly adminKey: Client<typeof AdminKeyService>;
  readonly role: Client<typeof RoleService>;
  /** The session's, as the browser would send it; empty without one. */
  readonly cookie: () => string;
  /** Every `Set-Cookie` header so far. */
  readonly setCookies: string[];
}

/** The stores of a console. */
export type ConsoleStores = Pick<
  Store,
  "accounts" | "attributedBudgets" | "audit" | "keys" | "ledger" | "usage" | "refusals" | "keyNotices" | "stops"
>;

export interface ConsoleUnderTest {
  readonly access: AccessUnderTest;
  readonly keys: KeyStore;
  readonly feed: RequestFeed;
  readonly models: (Model | Route)[];
  readonly health: HealthRecorder;
  /** By model ID. */
  readonly rests: Map<string, Opening>;
  /** Attempts and latencies in the history of targets, and the processes that wrote it. */
  readonly history: {
    counts: readonly AttemptCount[];
    latencies: readonly StepLatencies[];
    replicas: readonly KnownReplica[];
  };
  readonly refusals: Refusal[];
  readonly server: HttpServer;
  /** The calls in flight. */
  readonly calls: Calls;
  /** A browser without cookies, which sends these headers with each of its requests. */
  browser(headers?: Readonly<Record<string, string>>): Browser;
  /** A browser with a new account: the first one is the administrator. */
  signedUp(name: string): Promise<Browser & { readonly id: string }>;
  /** Sends one request exactly as it is. */
  send(path: string, options?: SendOptions): Promise<Answer>;
  close(): void;
}

/** The error of a call that is refused for too many others, a second late. */
export async function refusalOf(
  { access: { clock } }: ConsoleUnderTest,
  call: Promise<unknown>,
): Promise<ConnectError> {
  const { pending } = clock;
  const error = errorOf(call);
  await expect.poll(() => clock.pending).toBe(pending + 1);
  clock.advance(1_000);
  return error;
}

interface SendOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** What the console under test says of its configuration. */
export const CONFIGURATION = {
  file: "/etc/parley.yaml",
  entries: [{ key: "sign_up", value: "open", needsRestart: true }],
  providers: [{ name: "alpha", dialect: "openai", simulated: true, models: 2 }],
  nodeVersion: "26.0.0",
  database: "sqlite",
  databaseVersion: 5,
  rates: "memory",
};

/** Its tests are those of the running product. */
const NOTHING_STORED: ConsolePorts["stored"] = {
  entries: never,
  change: never,
  replace: never,
  rollBack: never,
  read: never,
  versions: never,
  version: never,
  presets: [],
  test: never,
};

/** Alerts and channels; what changes them has tests of its own. */
function alertsOf({ clock, log, stores: { alerts: store } }: AccessUnderTest): ConsolePorts["alerts"] {
  return {
    store,
    clock,
    log,
    cipher: { seal: never, open: never },
    addressProblem: never,
    hasMail: () => false,
    sealProblem: () => undefined,
    test: never,
    thresholds: async () => thresholdsInForce({}, {}),
  };
}

export const JSON_TYPE = { "content-type": "application/json" };

/** The console behind the real HTTP entrance on a free port, with a database in memory, or with parts of this one. */
export async function startConsole(
  options: Partial<ConsoleOptions> &
    Partial<
      Pick<ConsolePorts, "ledger" | "usage" | "admission" | "savedFilters" | "contents" | "contentKeptMs" | "traceUrl">
    > &
    Parameters<typeof setUpAccess>[0] & {
      readonly stream?: Completions["stream"];
      readonly explain?: Completions["explain"];
      readonly testModel?: ConsolePorts["testModel"];
      /** Default: a free one. */
      readonly port?: number;
      /** The OpenID provider, on the clock of the console. */
      readonly oidc?: (clock: FakeClock) => ConsolePorts["oidc"];
      /** In place of stores in memory. */
      readonly store?: ConsoleStores;
      /** Makes the alerts with the access of the console. Default: those of its database, without channels. */
      readonly alerts?: (access: AccessUnderTest) => ConsolePorts["alerts"];
    } = {},
): Promise<ConsoleUnderTest> {
  const {
    publicUrl,
    trustedProxies = [],
    files,
    store,
    ledger,
    usage,
    savedFilters,
    contents,
    contentKeptMs,
    traceUrl = () => undefined,
    stream = never,
    explain = never,
    testModel = never,
    oidc,
    port = 0,
    alerts = alertsOf,
    ...others
  } = options;
  const { admission = roomyAdmission(systemClock), ...changes } = others;
  const access = setUpAccess(changes);
  const { keys } = access.stores;
  const stores = { ...access.stores, ...store };
  const feed = new RequestFeed();
  const refusals: Refusal[] = [];
  const refused = (refusal: Refusal): void => void refusals.push(refusal);
  const provider = new ScriptedProvider(access.clock, {});
  const models: (Model | Route)[] = [
    modelOf("words", provider),
    modelOf("pictures", provider, { upstream: { outputModalities: new Set([Modality.TEXT, Modality.IMAGE]) } }),
  ];
  const health = createHealthRecorder({ find: (id) => models.find((model) => model.id === id) }, access.clock);
  const rests = new Map<string, Opening>();
  const history: ConsoleUnderTest["history"] = { counts: [], latencies: [], replicas: [] };
  const calls = new Calls(systemClock);
  const console = createConsole(
    {
      access: { ...access, ...(store !== undefined && { store: store.accounts, log: logOf(store, access.clock) }) },
      audit: stores.audit,
      auditStreams: { ...alertsOf(access), streams: stores.auditStreams, ends: never },
      keys: stores.keys,
      ledger: ledger ?? stores.ledger,
      usage: usage ?? stores.usage,
      refusals: stores.refusals,
      keyNotices: stores.keyNotices,
      savedFilters: savedFilters ?? stores.savedFilters,
      contents,
      contentKeptMs,
      stops: stores.stops,
      attributedBudgets: stores.attributedBudgets,
      traceUrl,
      database: "sqlite",
      installation: () => ({ providerConnected: false, addressSecured: true, database: "sqlite" }),
      feed,
      oidc: oidc?.(access.clock),
      models: () => models,
      health,
      openingOf: ({ id }) => rests.get(id),
      targets: {
        read: async ({ targets, sinceMs }) =>
          history.counts.filter(({ target, atMs }) => targets.includes(target) && atMs >= sinceMs),
        readLatencies: async () => history.latencies,
        replicas: async () => history.replicas,
      },
      configuration: () => CONFIGURATION,
      stored: NOTHING_STORED,
      alerts: alerts(access),
      accountLimits: () => ({ ...NO_LIMITS, requestsPerMinute: 600 }),
      completions: { stream },
      explain,
      credentials: { seal: (secret) => `sealed ${secret.length}`, providers: () => ["openai"] },
      testModel,
      adviceOnTest: ({ code }) => (code === "upstream_refused_us" ? "Check api_keys." : undefined),
      admission,
      calls,
      version: "1.2.3",
      refused,
      untrustedProxy: () => undefined,
    },
    { publicUrl, hasTls: false, trustedProxies, files },
  );
  const authenticator = createAuthenticator({ store: keys, clock: systemClock });
  const server = await startHttpServer(
    idleServices({
      limitsOf: () => ({ requests: undefined, tokens: undefined }),
      authenticate: ({ authorization }) => authenticator.authenticate(bearerToken(authorization)),
      calls,
      admission,
      refused,
    }),
    { host: "127.0.0.1", port, corsOrigins: ["*"], console },
  );
  const browser: ConsoleUnderTest["browser"] = (headers) => openBrowser(`http://127.0.0.1:${server.port}`, headers);
  return {
    access,
    keys,
    feed,
    models,
    health,
    rests,
    history,
    refusals,
    server,
    calls,
    browser,
    async signedUp(name) {
      const opened = browser();
      const { session } = await opened.session.signUp({ email: `${name}@example.com`, password: PASSWORD, name });
      return { ...opened, id: session!.account!.id };
    },
    send: (path, sent = {}) => send(server.port, path, sent),
    close: () => server.close(),
  };
}

function logOf({ audit: store }: Pick<Store, "audit">, clock: Clock): AuditLog {
  return createAuditLog({ store, clock, actor: { kind: "nobody", id: undefined }, listener: () => undefined });
}

function never(): never {
  throw new Error("nothing is completed here");
}

function openBrowser(baseUrl: string, headers: Readonly<Record<string, string>> = {}): Browser {
  const jar = new Map<string, string>();
  const setCookies: string[] = [];
  const keepCookies: Interceptor = (next) => async (request) => {
    if (jar.size > 0) request.header.set("cookie", [...jar].map((pair) => pair.join("=")).join("; "));
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    const response = await next(request);
    for (const line of response.header.getSetCookie()) {
      setCookies.push(line);
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes("Max-Age=0")) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  };
  const transport: Transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [keepCookies] });
  return {
    session: createClient(SessionService, transport),
    account: createClient(AccountService, transport),
    factor: createClient(FactorService, transport),
    audit: createClient(AuditService, transport),
    key: createClient(KeyService, transport),
    overview: createClient(OverviewService, transport),
    usage: createClient(UsageService, transport),
    request: createClient(RequestService, transport),
    settings: createClient(SettingsService, transport),
    model: createClient(ModelService, transport),
    playground: createClient(PlaygroundService, transport),
    routing: createClient(RoutingService, transport),
    attribution: createClient(AttributionService, transport),
    stop: createClient(StopService, transport),
    team: createClient(TeamService, transport),
    alert: createClient(AlertService, transport),
    adminKey: createClient(AdminKeyService, transport),
    role: createClient(RoleService, transport),
    cookie: () => [...jar].flatMap(([name, value]) => (name.endsWith("sid") ? [`${name}=${value}`] : [])).join("; "),
    setCookies,
  };
}

function send(port: number, path: string, { method = "POST", headers = {}, body = "" }: SendOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isMeasured = method !== "GET" && headers["transfer-encoding"] === undefined;
    const length = isMeasured ? { "content-length": String(Buffer.byteLength(body)) } : {};
    const request = sendRequest({ port, host: "127.0.0.1", path, method, headers: { ...length, ...headers } });
    request.on("error", reject).on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
    request.end(body);
  });
}
