import type { DescMethod } from "@bufbuild/protobuf";
import { AccountService } from "../../gen/parley/console/v1/account_pb.js";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
import { ModelService } from "../../gen/parley/console/v1/model_pb.js";
import { SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { SettingsService } from "../../gen/parley/console/v1/settings_pb.js";
import { UsageService } from "../../gen/parley/console/v1/usage_pb.js";
import { requireAdministrator, requireFresh, type SignedIn } from "../access/sessions.ts";
import { Failure } from "../core/failure.ts";

/** Who may call an RPC at all. What of its objects a member may see is decided where they are looked up. */
export interface Policy {
  readonly who: "anybody" | "signed in" | "administrator";
  /** Whether the password must have been given within the last minutes. */
  readonly fresh?: true;
}

const ANYBODY: Policy = { who: "anybody" };
const SIGNED_IN: Policy = { who: "signed in" };
const SIGNED_IN_FRESH: Policy = { who: "signed in", fresh: true };
const ADMINISTRATOR: Policy = { who: "administrator" };
const ADMINISTRATOR_FRESH: Policy = { who: "administrator", fresh: true };

/** The services of the console. */
export const SERVICES = [
  SessionService,
  AccountService,
  KeyService,
  UsageService,
  SettingsService,
  ModelService,
] as const;

/** Every RPC by its path; one that is not here cannot be called. */
export const POLICIES: ReadonlyMap<string, Policy> = new Map([
  ...entries(SessionService.method, {
    signUp: ANYBODY,
    signIn: ANYBODY,
    signOut: ANYBODY,
    getSession: ANYBODY,
    reauthenticate: SIGNED_IN,
    // Asks for the password itself.
    changePassword: SIGNED_IN,
    listSessions: SIGNED_IN,
    signOutElsewhere: SIGNED_IN,
  }),
  ...entries(AccountService.method, {
    list: ADMINISTRATOR,
    // Of one's own account the name; the rest is looked at there.
    update: SIGNED_IN,
    createInvitation: ADMINISTRATOR_FRESH,
    listInvitations: ADMINISTRATOR,
    revokeInvitation: ADMINISTRATOR_FRESH,
    listSecurityEvents: SIGNED_IN,
  }),
  ...entries(KeyService.method, {
    list: SIGNED_IN,
    create: SIGNED_IN_FRESH,
    update: SIGNED_IN_FRESH,
    rotate: SIGNED_IN_FRESH,
    revoke: SIGNED_IN_FRESH,
  }),
  ...entries(UsageService.method, { summarize: SIGNED_IN, listCompletions: SIGNED_IN }),
  ...entries(SettingsService.method, { get: SIGNED_IN, getConfiguration: ADMINISTRATOR }),
  ...entries(ModelService.method, { list: SIGNED_IN, listUpstreams: ADMINISTRATOR }),
]);

/** Throws `unauthenticated` or `permission_denied` for somebody who may not call an RPC with this policy. */
export function admit({ who, fresh }: Policy, signedIn: SignedIn | undefined, nowMs: number): void {
  if (who === "anybody") return;
  if (signedIn === undefined) throw new Failure("unauthenticated", "Nobody is signed in, or the session has ended.");
  if (who === "administrator") requireAdministrator(signedIn);
  if (fresh) requireFresh(signedIn, nowMs);
}

function entries<M extends Readonly<Record<string, DescMethod>>>(
  methods: M,
  policies: Readonly<Record<keyof M, Policy>>,
): [path: string, policy: Policy][] {
  return Object.entries(methods).map(([local, { name, parent }]) => [`/${parent.typeName}/${name}`, policies[local]!]);
}
