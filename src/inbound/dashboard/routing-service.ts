import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  AccountAliasSchema,
  OwnCredentialSchema,
  RoutingService,
} from "../../../gen/parley/console/v1/routing_pb.js";
import {
  findRouting,
  removeCredential,
  type RoutingContext,
  type RoutingRules,
  setAliases,
  setCredential,
} from "../../access/account-routing.ts";
import type { StoredCredential } from "../../access/account-store.ts";
import type { AccessContext } from "../../access/context.ts";
import type { AccountRouting } from "../../core/principal.ts";
import { accountToUse, actorOf, signedInOf } from "./call.ts";

/** Ports of the routing service. */
export interface RoutingServicePorts {
  readonly access: AccessContext;
  readonly rules: RoutingRules;
}

/** Credentials and aliases of accounts. */
export function createRoutingService({ access, rules }: RoutingServicePorts): ServiceImpl<typeof RoutingService> {
  const { store, clock, log } = access;
  const routing: RoutingContext = { store, clock, log, rules };
  const toMessage = ({
    provider,
    setAtMs,
    setBy = "",
  }: StoredCredential): MessageInitShape<typeof OwnCredentialSchema> => ({
    provider,
    setTime: timestampFromMs(setAtMs),
    setBy,
    inUse: rules.providers().includes(provider),
  });
  return {
    async getRouting({ accountId }, context) {
      const { credentials, aliases } = await findRouting(
        store,
        accountToUse(signedInOf(context), "routing.read", accountId),
      );
      return {
        credentials: credentials.map(toMessage),
        providers: [...rules.providers()],
        aliases: aliases.map(toAliasMessage),
      };
    },

    async setCredential({ accountId, provider, secret }, context) {
      const place = { accountId: ownerOf(accountId, context, "credentials.write"), provider };
      return { credential: toMessage(await setCredential(routing, { ...place, secret, actor: actorOf(context) })) };
    },

    async removeCredential({ accountId, provider }, context) {
      const place = { accountId: ownerOf(accountId, context, "credentials.write"), provider };
      await removeCredential(routing, { ...place, actor: actorOf(context) });
      return {};
    },

    async setAliases({ accountId, aliases }, context) {
      const set = await setAliases(routing, {
        accountId: ownerOf(accountId, context, "routing.write"),
        aliases: aliases.map(({ name, model }) => [name, model]),
        actor: actorOf(context),
      });
      return { aliases: set.map(toAliasMessage) };
    },
  };
}

/** The account to change. Throws `permission_denied`. */
function ownerOf(
  asked: string,
  context: Pick<HandlerContext, "values">,
  permission: "routing.write" | "credentials.write",
): string {
  return accountToUse(signedInOf(context), permission, asked);
}

function toAliasMessage([name, model]: AccountRouting["aliases"][number]): MessageInitShape<typeof AccountAliasSchema> {
  return { name, model };
}
