import type { DescMethod } from "@bufbuild/protobuf";
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
import { lacks, type Permission, permitsSomewhere } from "../../access/permissions.ts";
import { isSecondFactorDue, requireFresh, type SignedIn } from "../../access/sessions.ts";
import type { AccessContext } from "../../access/context.ts";
import { Failure } from "../../core/failure.ts";

/**
 * Which callers may call an RPC, and how. The service checks in which accounts the caller has the permission, where it looks
 * up their objects.
 */
export interface Policy {
  readonly who: "anybody" | "signed in" | Permission;
  /**
   * Whether it takes administration keys. Default: keys that have the permission; an RPC without a permission takes none.
   * False: it is for people only.
   */
  readonly takesKeys?: boolean;
  /** Whether the password must have been entered recently. */
  readonly fresh?: true;
  /** Whether it can be called before a required second factor is set up. */
  readonly beforeSecondFactor?: true;
  /** Whether it writes to the database for a signed-in caller: the rate of such calls is limited. */
  readonly changes?: true;
  /** Size limit of requests. Default: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** Whether its request is one for a completion, which takes a slot before it is read. */
  readonly isCompletion?: true;
  /** Whether it reads a report, for which accounts take turns. */
  readonly reports?: true;
  /** Whether a drain ends its calls at once: for streams without an end of their own. */
  readonly endsWithDrain?: true;
}

/** The policy of one RPC with facts of its descriptor. */
export interface RpcPolicy extends Policy {
  readonly maxBodyBytes: number;
  /** Whether it is a server stream. */
  readonly streams: boolean;
}

/** Default size limit of requests. */
export const MAX_BODY_BYTES = 64 * 1024;

const ANYBODY: Policy = { who: "anybody" };
const SIGNED_IN: Policy = { who: "signed in" };
/** What every caller may read, also a program. */
const EVERY_CALLER: Policy = { who: "signed in", takesKeys: true };
/** Changes stored data, without a recent password. */
const PLAIN_CHANGE: Policy = { who: "signed in", changes: true };
/** Concerns the own account, and is allowed before a second factor is set up. */
const OWN: Policy = { who: "signed in", beforeSecondFactor: true };
const OWN_CHANGE: Policy = { ...OWN, changes: true };
const OWN_FRESH_CHANGE: Policy = { ...OWN_CHANGE, fresh: true };
/** Prompts may contain images. */
const PROMPT = { maxBodyBytes: 16 * 1024 * 1024, isCompletion: true } as const;

/** Reads, with a permission. */
function reading(permission: Permission): Policy {
  return { who: permission };
}

/** Reads a report, with a permission. */
function reporting(permission: Permission): Policy {
  return { who: permission, reports: true };
}

/** Changes stored data, with a permission and a recent password. */
function changing(permission: Permission): Policy {
  return { who: permission, changes: true, fresh: true };
}

/** The document may have 256 KiB, in UTF-8 and with its quotation marks escaped in JSON. */
const DOCUMENT_CHANGE: Policy = { ...changing("configuration.write"), maxBodyBytes: 1024 * 1024 };

/** The services of the dashboard. */
export const SERVICES = [
  SessionService,
  PasswordService,
  FactorService,
  AccountService,
  AuditService,
  TeamService,
  RoleService,
  AdminKeyService,
  KeyService,
  RoutingService,
  StopService,
  AttributionService,
  OverviewService,
  UsageService,
  RequestService,
  SettingsService,
  ConfigurationService,
  ModelService,
  PlaygroundService,
  AlertService,
] as const;

/** All RPCs by path; others cannot be called. */
export const POLICIES: ReadonlyMap<string, RpcPolicy> = new Map([
  ...entries(SessionService.method, {
    signUp: ANYBODY,
    signIn: ANYBODY,
    signInByLink: ANYBODY,
    signOut: ANYBODY,
    getSession: ANYBODY,
    getInvitation: ANYBODY,
    reauthenticate: OWN_CHANGE,
    // The request contains the password, or a passkey.
    changePassword: OWN_CHANGE,
    listSessions: OWN,
    signOutElsewhere: OWN_CHANGE,
  }),
  ...entries(PasswordService.method, { requestReset: ANYBODY, reset: ANYBODY }),
  ...entries(FactorService.method, {
    getPasskeyOptions: ANYBODY,
    signInByPasskey: ANYBODY,
    list: OWN,
    beginPasskey: OWN_FRESH_CHANGE,
    addPasskey: OWN_FRESH_CHANGE,
    removePasskey: OWN_FRESH_CHANGE,
    beginTotp: OWN_FRESH_CHANGE,
    confirmTotp: OWN_FRESH_CHANGE,
    removeTotp: OWN_FRESH_CHANGE,
    renewRecoveryCodes: OWN_FRESH_CHANGE,
    // The service compares the roles. A stolen key must not take second factors away.
    reset: { ...changing("accounts.write"), takesKeys: false },
  }),
  ...entries(AccountService.method, {
    list: reading("accounts.read"),
    // The permission for the name; the service checks the rest.
    update: { who: "profile.write", changes: true },
    offboard: changing("accounts.write"),
    createInvitation: changing("accounts.write"),
    listInvitations: reading("accounts.read"),
    revokeInvitation: changing("accounts.write"),
  }),
  ...entries(TeamService.method, {
    list: reading("members.read"),
    create: changing("teams.write"),
    listMembers: reading("members.read"),
    setMember: changing("members.write"),
    removeMember: changing("members.write"),
  }),
  ...entries(RoleService.method, {
    list: reading("accounts.read"),
    create: changing("roles.write"),
    update: changing("roles.write"),
    remove: changing("roles.write"),
  }),
  ...entries(AdminKeyService.method, {
    list: reading("admin_keys.read"),
    // A key that makes keys would outlive its own end.
    create: { ...changing("admin_keys.write"), takesKeys: false },
    revoke: changing("admin_keys.write"),
  }),
  ...entries(AuditService.method, {
    list: reporting("audit.read"),
    export: reading("audit.read"),
    listStreams: reading("audit.stream"),
    // Entries about all accounts go to an address of the caller's choice.
    createStream: changing("audit.stream"),
    removeStream: changing("audit.stream"),
  }),
  ...entries(KeyService.method, {
    list: reading("keys.read"),
    get: reading("keys.read"),
    create: changing("keys.write"),
    update: changing("keys.write"),
    rotate: changing("keys.write"),
    transfer: changing("keys.write"),
    revoke: changing("keys.write"),
  }),
  ...entries(RoutingService.method, {
    getRouting: reading("routing.read"),
    setCredential: changing("credentials.write"),
    removeCredential: changing("credentials.write"),
    setAliases: changing("routing.write"),
  }),
  ...entries(StopService.method, {
    list: reading("keys.read"),
    create: changing("keys.write"),
    remove: changing("keys.write"),
  }),
  ...entries(AttributionService.method, {
    // Reads all end users of a key, which may be millions.
    listBudgets: reporting("keys.read"),
    setBudget: changing("keys.write"),
  }),
  ...entries(OverviewService.method, { get: reporting("usage.read") }),
  ...entries(UsageService.method, {
    summarize: reporting("usage.read"),
    getLatency: reporting("usage.read"),
    getSpending: reading("usage.read"),
  }),
  ...entries(RequestService.method, {
    list: reporting("requests.read"),
    get: reading("requests.read"),
    // Each reading has an entry in the audit log.
    getContent: { who: "content.read", changes: true },
    watch: { who: "requests.read", endsWithDrain: true },
    export: reading("requests.read"),
    listSavedFilters: SIGNED_IN,
    saveFilter: PLAIN_CHANGE,
    removeSavedFilter: PLAIN_CHANGE,
  }),
  ...entries(SettingsService.method, { get: EVERY_CALLER, getConfiguration: reading("configuration.read") }),
  ...entries(ConfigurationService.method, {
    listEntries: reading("configuration.read"),
    changeEntries: DOCUMENT_CHANGE,
    export: reading("configuration.read"),
    import: DOCUMENT_CHANGE,
    listVersions: reading("configuration.read"),
    getVersion: reading("configuration.read"),
    rollBack: changing("configuration.write"),
    listPresets: reading("configuration.read"),
    // Sends a credential to an address of the caller's choice.
    testProvider: changing("configuration.write"),
  }),
  ...entries(ModelService.method, {
    list: EVERY_CALLER,
    listUpstreams: reading("configuration.read"),
    listTargetHistory: reading("configuration.read"),
    explainRoute: { who: "models.test", ...PROMPT },
    // Asks a provider, and has an entry in the audit log.
    testModel: { who: "models.test", changes: true },
  }),
  ...entries(PlaygroundService.method, {
    // Programs send completions with a key of their own.
    stream: { who: "playground.use", takesKeys: false, ...PROMPT },
  }),
  ...entries(AlertService.method, {
    list: reading("alerts.read"),
    getCount: reading("alerts.read"),
    // The service checks whose alert it is.
    acknowledge: { who: "alerts.write", changes: true },
    mute: { who: "alerts.manage", changes: true },
    listChannels: reading("alerts.manage"),
    // Messages about all accounts go to an address of the caller's choice.
    createChannel: changing("alerts.manage"),
    updateChannel: changing("alerts.manage"),
    removeChannel: changing("alerts.manage"),
    testChannel: changing("alerts.manage"),
    getThresholds: reading("alerts.manage"),
    setThresholds: changing("alerts.manage"),
  }),
]);

/** Throws `unauthenticated` or `permission_denied` when the policy does not allow the call. */
export function admit(
  policy: Policy,
  signedIn: SignedIn | undefined,
  { clock, signIn }: Pick<AccessContext, "clock" | "signIn">,
): void {
  const { who, fresh, beforeSecondFactor, takesKeys = who !== "anybody" && who !== "signed in" } = policy;
  if (signedIn?.adminKey !== undefined && !takesKeys)
    throw new Failure("permission_denied", "This needs a person who has signed in: administration keys cannot do it.");
  if (who === "anybody") return;
  if (signedIn === undefined)
    throw new Failure("unauthenticated", "You are not signed in, or your session has expired.");
  if (beforeSecondFactor === undefined && isSecondFactorDue(signedIn, signIn))
    throw new Failure("permission_denied", "A second factor is required here: set one up first.", {
      detail: "second_factor_required",
    });
  if (who !== "signed in" && !permitsSomewhere(signedIn, who)) throw lacks(signedIn, who);
  if (fresh) requireFresh(signedIn, clock.now());
}

/** Policies of a service's RPCs by path. */
export function entries<M extends Readonly<Record<string, DescMethod>>>(
  methods: M,
  policies: Readonly<Record<keyof M, Policy>>,
): [path: string, policy: RpcPolicy][] {
  return Object.entries(methods).map(([local, { name, parent, methodKind }]) => {
    const streams = methodKind === "server_streaming";
    return [`/${parent.typeName}/${name}`, { maxBodyBytes: MAX_BODY_BYTES, ...policies[local]!, streams }];
  });
}

type HeaderList = readonly (readonly [name: string, value: string])[];

/** Headers of all responses of the dashboard's services, errors too: data for its own page only. */
export function securityHeaders(isSecure: boolean): HeaderList {
  return [
    ["cache-control", "no-store"],
    ["content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
    ...everywhere(isSecure),
  ];
}

/**
 * Headers of all pages and files of the dashboard. Scripts and styles are files of this origin; no evaluation, no HTML from
 * text, no requests to other origins, no framing.
 */
export function pageHeaders(isSecure: boolean): HeaderList {
  return [["content-security-policy", policyOf(PAGE_POLICY)], ...everywhere(isSecure)];
}

/** Headers of the API reference: the strictest policy under which Redoc works. */
export function referenceHeaders(isSecure: boolean): HeaderList {
  return [["content-security-policy", policyOf(REFERENCE_POLICY)], ...everywhere(isSecure)];
}

const PAGE_POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  // Generated images are data URLs; attached images are shown before they are sent.
  "img-src": "'self' data: blob:",
  "font-src": "'self'",
  "connect-src": "'self'",
  "form-action": "'self'",
  "base-uri": "'none'",
  "object-src": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  // No policy names: no code can create trusted HTML.
  "trusted-types": "'none'",
} as const;

/** The hash of an empty `<style>` element, to which styled-components adds rules through the CSSOM. */
const EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
/** The hash of perfect-scrollbar's style sheet, which Redoc contains. The browser test of the page verifies it. */
const SCROLLBAR_STYLE = "'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='";

const REFERENCE_POLICY = {
  ...PAGE_POLICY,
  "style-src": `'self' ${EMPTY_STYLE} ${SCROLLBAR_STYLE}`,
  "img-src": "'self' data:",
  "font-src": "'none'",
  "form-action": "'none'",
  // The search index runs in a worker that the page creates from a blob; the worker inherits this policy.
  "worker-src": "blob:",
  // `default` passes HTML through DOMPurify, which needs `dompurify` itself.
  "trusted-types": "default dompurify",
} as const;

function policyOf(directives: Readonly<Record<string, string>>): string {
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources}`)
    .join("; ");
}

function everywhere(isSecure: boolean): HeaderList {
  return [
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
    ["referrer-policy", "no-referrer"],
    ["x-content-type-options", "nosniff"],
    ...(isSecure ? ([["strict-transport-security", "max-age=31536000"]] as const) : []),
  ];
}
