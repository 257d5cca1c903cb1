import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  AccountKind as KindMessage,
  AccountRole,
  type AccountSchema,
  type InvitationSchema,
} from "../../../gen/parley/console/v1/account_pb.js";
import type { UsageLimits as LimitsMessage, UsageLimitsSchema } from "../../../gen/parley/v1/key_pb.js";
import type { AccountKind, AccountRecord, BuiltInRole, InvitationRecord, Role } from "../../access/account-store.ts";
import { isId } from "../../access/checks.ts";
import { isCustom, ROLES as ROLE_NAMES } from "../../access/permissions.ts";
import { invalidField } from "../../core/failure.ts";
import type { Limits } from "../../core/principal.ts";
import { toTeamRoleMessage } from "./team-messages.ts";

const ROLES: Readonly<Record<BuiltInRole, AccountRole>> = {
  owner: AccountRole.OWNER,
  administrator: AccountRole.ADMINISTRATOR,
  developer: AccountRole.DEVELOPER,
  viewer: AccountRole.VIEWER,
};

const KINDS: Readonly<Record<AccountKind, KindMessage>> = {
  person: KindMessage.PERSON,
  team: KindMessage.TEAM,
  service: KindMessage.SERVICE,
};

/** An account without its password's hash. */
export function toAccountMessage(account: AccountRecord): MessageInitShape<typeof AccountSchema> {
  const { id, kind, email = "", name, role, limits, createdAtMs, disabledAtMs } = account;
  return {
    id,
    kind: KINDS[kind],
    email,
    name,
    ...toRoleFields(role),
    limits: toLimitsMessage(limits),
    createTime: timestampFromMs(createdAtMs),
    ...optionalTime("disableTime", disabledAtMs),
  };
}

/** An invitation without its token's hash. */
export function toInvitationMessage(invitation: InvitationRecord): MessageInitShape<typeof InvitationSchema> {
  const { id, email = "", role, team, createdBy, createdAtMs, expiresAtMs, usedAtMs } = invitation;
  return {
    id,
    email,
    ...toRoleFields(role),
    ...(team !== undefined && { teamId: team.teamId, teamRole: toTeamRoleMessage(team.role) }),
    createdBy,
    createTime: timestampFromMs(createdAtMs),
    expireTime: timestampFromMs(expiresAtMs),
    ...optionalTime("useTime", usedAtMs),
  };
}

/** The fields of a role. */
function toRoleFields(role: Role): { readonly role: AccountRole; readonly customRoleId: string } {
  return isCustom(role) ? { role: AccountRole.CUSTOM, customRoleId: role } : { role: ROLES[role], customRoleId: "" };
}

/** Reads the role of a request. Throws `invalid_request`. */
export function fromRoleMessage(role: AccountRole, customRoleId: string): Role {
  if (role === AccountRole.CUSTOM) {
    if (isId(customRoleId) && isCustom(customRoleId as Role)) return customRoleId as Role;
    throw invalidField("custom_role_id", "is not the ID of a role");
  }
  const found = ROLE_NAMES.find((name) => ROLES[name] === role);
  if (found !== undefined) return found;
  const names = [...ROLE_NAMES, "custom"].map((name) => `ACCOUNT_ROLE_${name.toUpperCase()}`);
  throw invalidField("role", `must be one of ${names.join(", ")}`);
}

/** A timestamp field; absent without a time. */
export function optionalTime<F extends string>(field: F, atMs: number | undefined): { [K in F]?: Timestamp } {
  return atMs === undefined ? {} : ({ [field]: timestampFromMs(atMs) } as { [K in F]?: Timestamp });
}

/** Limits of a request; `checkLimits` refuses those that are too large. */
export function fromLimitsMessage(message: LimitsMessage): Limits {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = message;
  return {
    requestsPerMinute: toNumber(requestsPerMinute),
    tokensPerMinute: toNumber(tokensPerMinute),
    concurrentRequests: toNumber(concurrentRequests),
    monthlyBudgetMicroUsd: toNumber(monthlyBudgetMicroUsd),
  };
}

/** Limits in a response; absent fields are not limited. */
export function toLimitsMessage(limits: Limits): MessageInitShape<typeof UsageLimitsSchema> {
  const given = Object.entries(limits).filter((entry): entry is [keyof Limits, number] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, BigInt(value)]));
}

/** A whole number of a message; undefined for an absent one. */
export function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}
