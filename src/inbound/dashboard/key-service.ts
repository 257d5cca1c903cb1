import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { KeyService, ProviderOptionSelection } from "../../../gen/parley/console/v1/key_pb.js";
import type { KeyRecord, KeyStore } from "../../access/key-store.ts";
import { createKey, type KeyActor, revokeKey, rotateKey, updateKey } from "../../access/keys.ts";
import { findAccount } from "../../access/accounts.ts";
import type { AccessContext } from "../../access/context.ts";
import { isId, unknownId } from "../../access/names.ts";
import type { NewSecurityEvent } from "../../access/security-log.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { monthOf } from "../../core/month.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import { accountInView, actorOf, signedInOf } from "./call.ts";
import {
  fromCapabilitySelection,
  fromModelSelection,
  fromOptionSelection,
  fromRevocationScope,
  fromRotationGrace,
  toKeyMessage,
} from "./key-messages.ts";
import { fromLimitsMessage } from "./limits-message.ts";
import { endOfPage, readPage } from "./list-page.ts";

const LIFETIME_MS = [60_000, 3650 * 24 * 60 * 60 * 1000] as const;

/** What the key service stands on. */
export interface KeyServicePorts {
  readonly access: AccessContext;
  readonly keys: KeyStore;
  readonly ledger: Pick<LedgerStore, "spending">;
  /** The IDs of the models there are now. */
  readonly models: () => ReadonlySet<string>;
}

/** API keys: members' own ones, and all of them for administrators. */
export function createKeyService({
  access,
  keys: store,
  ledger,
  models,
}: KeyServicePorts): ServiceImpl<typeof KeyService> {
  const { clock, log } = access;
  const keys = { store, clock };
  /** A key that the caller may see. One of somebody else is answered like one that does not exist. */
  const find = async (id: string, context: HandlerContext): Promise<KeyRecord> => {
    const { account } = signedInOf(context);
    const record = isId(id) ? await store.find(id) : undefined;
    if (record !== undefined && (account.role === "administrator" || record.accountId === account.id)) return record;
    throw unknownId("key", id);
  };
  const record = (
    { id, accountId }: KeyRecord,
    type: NewSecurityEvent["type"],
    context: HandlerContext,
  ): Promise<void> => log.record({ type, accountId, ...actorOf(context), details: { key_id: id } });
  const toMessage = (key: KeyRecord) => toKeyMessage(key, clock.now());
  /** By the IDs of the keys' lines, whose budgets they are. */
  const spentThisMonth = async (listed: readonly KeyRecord[]): Promise<ReadonlyMap<string, bigint>> => {
    const lines = [...new Set(listed.map(({ keyFamilyId }) => keyFamilyId))];
    const subjects = lines.map((line) => `key:${line}`);
    const spending = await ledger.spending(subjects, monthOf(clock.now()));
    return new Map(spending.map(({ spentMicroUsd }, index) => [lines[index]!, BigInt(spentMicroUsd)]));
  };

  return {
    async list({ accountId, pageToken, limit }, context) {
      const owner = accountInView(signedInOf(context), accountId);
      const page = readPage({ pageToken, limit });
      const listed = await store.list(owner, page);
      const spent = await spentThisMonth(listed);
      return {
        keys: listed.map((key) => ({ ...toMessage(key), monthSpentMicroUsd: spent.get(key.keyFamilyId) ?? 0n })),
        nextPageToken: endOfPage(listed, page),
      };
    },

    async create({ name, models: selection, capabilities, limits, lifetime, accountId, providerOptions }, context) {
      const signedIn = signedInOf(context);
      const owner = accountInView(signedIn, accountId) ?? signedIn.account.id;
      await findAccount(access.store, owner);
      const made = await createKey(keys, {
        name,
        models: selection && fromModelSelection(selection, models()),
        capabilities: capabilities && fromCapabilitySelection(capabilities),
        limits: limits && fromLimitsMessage(limits),
        options: providerOptions && readOptions(providerOptions, context),
        lifetimeMs: lifetime && checkLifetime(Math.round(durationMs(lifetime))),
        accountId: owner,
        by: actorFor(context),
      });
      await record(made.record, "key_created", context);
      return { key: toMessage(made.record), secret: made.secret };
    },

    async update({ id, name, models: selection, capabilities, limits, providerOptions }, context) {
      const before = await find(id, context);
      await updateKey(keys, id, {
        by: actorFor(context),
        ...(name !== undefined && { name }),
        ...(selection !== undefined && { models: fromModelSelection(selection, models()) }),
        ...(capabilities !== undefined && { capabilities: fromCapabilitySelection(capabilities) }),
        ...(limits !== undefined && { limits: fromLimitsMessage(limits) }),
        ...(providerOptions !== undefined && { options: readOptions(providerOptions, context) }),
      });
      await record(before, "key_updated", context);
      return { key: toMessage(await find(id, context)) };
    },

    async rotate({ id, grace }, context) {
      const before = await find(id, context);
      const made = await rotateKey(keys, id, fromRotationGrace(grace));
      await record(before, "key_rotated", context);
      return { key: toMessage(made.record), secret: made.secret };
    },

    async revoke({ id, scope }, context) {
      const before = await find(id, context);
      const revoked = await revokeKey(keys, id, fromRevocationScope(scope));
      for (const each of revoked) await record({ ...before, id: each }, "key_revoked", context);
      return { key: toMessage(await find(id, context)), revokedPredecessors: revoked.slice(1) };
    },
  };
}

/** As whom the caller makes or changes a key of this account: administrators bind others, and are not bound themselves. */
function actorFor(context: HandlerContext): KeyActor {
  return signedInOf(context).account.role;
}

/** The options are the operator's choice. Throws `permission_denied` for members. */
function readOptions(selection: ProviderOptionSelection, context: HandlerContext): KeyRecord["options"] {
  if (signedInOf(context).account.role !== "administrator")
    throw new Failure("permission_denied", "Only an administrator may choose a key's provider options.");
  return fromOptionSelection(selection);
}

function checkLifetime(lifetimeMs: number): number {
  const [min, max] = LIFETIME_MS;
  if (lifetimeMs >= min && lifetimeMs <= max) return lifetimeMs;
  throw invalidField("lifetime", "must be one minute to ten years");
}
