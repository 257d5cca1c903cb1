import type { DescMethod } from "@bufbuild/protobuf";
import { AccountService } from "../../../gen/parley/console/v1/account_pb.js";
import { AuditService } from "../../../gen/parley/console/v1/audit_pb.js";
import { ConfigurationService } from "../../../gen/parley/console/v1/configuration_pb.js";
import { KeyService } from "../../../gen/parley/console/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/console/v1/model_pb.js";
import { OverviewService } from "../../../gen/parley/console/v1/overview_pb.js";
import { PlaygroundService } from "../../../gen/parley/console/v1/playground_pb.js";
import { RequestService } from "../../../gen/parley/console/v1/request_pb.js";
import { RoutingService } from "../../../gen/parley/console/v1/routing_pb.js";
import { SessionService } from "../../../gen/parley/console/v1/session_pb.js";
import { SettingsService } from "../../../gen/parley/console/v1/settings_pb.js";
import { UsageService } from "../../../gen/parley/console/v1/usage_pb.js";
import { requireAdministrator, requireFresh, type SignedIn } from "../../access/sessions.ts";
import { Failure } from "../../core/failure.ts";

/** Who may call an RPC, and how. Which objects a member may see is decided where they are looked up. */
export interface Policy {
  readonly who: "anybody" | "signed in" | "administrator";
  /** Whether the password must have been entered recently. */
  readonly fresh?: true;
  /** Whether it writes to the database for somebody who has signed in: the rate of such calls is limited. */
  readonly changes?: true;
  /** Size limit of requests. Default: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** Whether its request is one for a completion, which takes a slot before it is read. */
  readonly isCompletion?: true;
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
/** Changes stored data, without a recent password. */
const PLAIN_CHANGE: Policy = { who: "signed in", changes: true };
const SIGNED_IN_CHANGE: Policy = { ...PLAIN_CHANGE, fresh: true };
/** Prompts have pictures. */
const PLAYGROUND: Policy = { who: "signed in", maxBodyBytes: 16 * 1024 * 1024, isCompletion: true };
const EXPLAIN: Policy = { ...PLAYGROUND, who: "administrator" };
const LIVE: Policy = { who: "signed in", endsWithDrain: true };
const ADMINISTRATOR: Policy = { who: "administrator" };
const ADMINISTRATOR_CHANGE: Policy = { ...SIGNED_IN_CHANGE, who: "administrator" };
/** The document may have 256 KiB, in UTF-8 and with its quotation marks escaped in JSON. */
const DOCUMENT_CHANGE: Policy = { ...ADMINISTRATOR_CHANGE, maxBodyBytes: 1024 * 1024 };

/** The services of the dashboard. */
export const SERVICES = [
  SessionService,
  AccountService,
  AuditService,
  KeyService,
  RoutingService,
  OverviewService,
  UsageService,
  RequestService,
  SettingsService,
  ConfigurationService,
  ModelService,
  PlaygroundService,
] as const;

/** All RPCs by path; others cannot be called. */
export const POLICIES: ReadonlyMap<string, RpcPolicy> = new Map([
  ...entries(SessionService.method, {
    signUp: ANYBODY,
    signIn: ANYBODY,
    signOut: ANYBODY,
    getSession: ANYBODY,
    getInvitation: ANYBODY,
    reauthenticate: PLAIN_CHANGE,
    // The request has the password.
    changePassword: PLAIN_CHANGE,
    listSessions: SIGNED_IN,
    signOutElsewhere: PLAIN_CHANGE,
  }),
  ...entries(AccountService.method, {
    list: ADMINISTRATOR,
    // Members may change the name of their own account; the service checks the rest.
    update: PLAIN_CHANGE,
    createInvitation: ADMINISTRATOR_CHANGE,
    listInvitations: ADMINISTRATOR,
    revokeInvitation: ADMINISTRATOR_CHANGE,
  }),
  ...entries(AuditService.method, { list: SIGNED_IN, export: SIGNED_IN }),
  ...entries(KeyService.method, {
    list: SIGNED_IN,
    create: SIGNED_IN_CHANGE,
    update: SIGNED_IN_CHANGE,
    rotate: SIGNED_IN_CHANGE,
    revoke: SIGNED_IN_CHANGE,
  }),
  ...entries(RoutingService.method, {
    getRouting: SIGNED_IN,
    setCredential: SIGNED_IN_CHANGE,
    removeCredential: SIGNED_IN_CHANGE,
    setAliases: SIGNED_IN_CHANGE,
  }),
  ...entries(OverviewService.method, { get: SIGNED_IN }),
  ...entries(UsageService.method, { summarize: SIGNED_IN, getLatency: SIGNED_IN, getSpending: SIGNED_IN }),
  ...entries(RequestService.method, { list: SIGNED_IN, get: SIGNED_IN, watch: LIVE }),
  ...entries(SettingsService.method, { get: SIGNED_IN, getConfiguration: ADMINISTRATOR }),
  ...entries(ConfigurationService.method, {
    listEntries: ADMINISTRATOR,
    changeEntries: DOCUMENT_CHANGE,
    export: ADMINISTRATOR,
    import: DOCUMENT_CHANGE,
    listVersions: ADMINISTRATOR,
    getVersion: ADMINISTRATOR,
    rollBack: ADMINISTRATOR_CHANGE,
    listPresets: ADMINISTRATOR,
    // Sends a credential to an address of the caller's choice.
    testProvider: ADMINISTRATOR_CHANGE,
  }),
  ...entries(ModelService.method, {
    list: SIGNED_IN,
    listUpstreams: ADMINISTRATOR,
    explainRoute: EXPLAIN,
    testModel: ADMINISTRATOR,
  }),
  ...entries(PlaygroundService.method, { stream: PLAYGROUND }),
]);

/** Throws `unauthenticated` or `permission_denied` when the policy does not allow the call. */
export function admit({ who, fresh }: Policy, signedIn: SignedIn | undefined, nowMs: number): void {
  if (who === "anybody") return;
  if (signedIn === undefined)
    throw new Failure("unauthenticated", "You are not signed in, or your session has expired.");
  if (who === "administrator") requireAdministrator(signedIn);
  if (fresh) requireFresh(signedIn, nowMs);
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
