import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { FactorService, PasskeySchema } from "../../../gen/parley/console/v1/factor_pb.js";
import { findAccount } from "../../access/accounts.ts";
import type { AccessContext } from "../../access/context.ts";
import type { PasskeyRecord } from "../../access/factors/factor-store.ts";
import { hasOwnFactors, listFactors } from "../../access/factors/own-factors.ts";
import { addPasskey, beginPasskey, passkeyOptions, removePasskey, requireSite } from "../../access/factors/passkeys.ts";
import { resetFactors } from "../../access/factors/reset-factors.ts";
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes } from "../../access/factors/totp.ts";
import { signInByPasskey } from "../../access/sign-in.ts";
import { optionalTime } from "./account-messages.ts";
import { actorOf, callOf, signedInOf } from "./call.ts";
import type { Cookies } from "./cookies.ts";
import type { SiteFinder } from "./passkey-site.ts";
import { createBeginning } from "./session-service.ts";

interface FactorServicePorts {
  readonly access: AccessContext;
  readonly cookies: Cookies;
  readonly siteOf: SiteFinder;
}

/** Passkeys, authenticator apps and recovery codes. */
export function createFactorService({
  access,
  cookies,
  siteOf,
}: FactorServicePorts): ServiceImpl<typeof FactorService> {
  const begin = createBeginning(access, cookies);
  return {
    async getPasskeyOptions(_, context) {
      const site = requireSite(siteOf(context));
      return { optionsJson: await passkeyOptions(access, callOf(context).signedIn, site) };
    },

    async signInByPasskey({ responseJson: response }, context) {
      const site = requireSite(siteOf(context));
      return begin(await signInByPasskey(access, { response, site }, callOf(context)), context);
    },

    async list(_, context) {
      const signedIn = signedInOf(context);
      const { passkeys, totp, recoveryCodes } = await listFactors(access, signedIn.account.id);
      return {
        passkeys: passkeys.map(toPasskeyMessage),
        ...optionalTime("totpTime", totp?.createdAtMs),
        recoveryCodes,
        required: access.signIn.secondFactor === "required",
        available: hasOwnFactors(access, signedIn),
      };
    },

    async beginPasskey(_, context) {
      return { optionsJson: await beginPasskey(access, signedInOf(context), requireSite(siteOf(context))) };
    },

    async addPasskey({ name, responseJson: response }, context) {
      const site = requireSite(siteOf(context));
      const added = { signedIn: signedInOf(context), name, response, site };
      return { passkey: toPasskeyMessage(await addPasskey(access, added, callOf(context))) };
    },

    async removePasskey({ id }, context) {
      await removePasskey(access, { signedIn: signedInOf(context), id }, callOf(context));
      return {};
    },

    async beginTotp(_, context) {
      return beginTotp(access, signedInOf(context));
    },

    async confirmTotp({ enrolment, code }, context) {
      const confirmation = { signedIn: signedInOf(context), enrolment, code };
      return { recoveryCodes: [...(await confirmTotp(access, confirmation, callOf(context)))] };
    },

    async removeTotp(_, context) {
      await removeTotp(access, signedInOf(context), callOf(context));
      return {};
    },

    async renewRecoveryCodes(_, context) {
      return { recoveryCodes: [...(await renewRecoveryCodes(access, signedInOf(context), callOf(context)))] };
    },

    async reset({ id }, context) {
      return resetFactors(access, await findAccount(access.store, id), actorOf(context));
    },
  };
}

function toPasskeyMessage({ id, name, createdAtMs, usedAtMs }: PasskeyRecord): MessageInitShape<typeof PasskeySchema> {
  return { id, name, createTime: timestampFromMs(createdAtMs), ...optionalTime("lastUseTime", usedAtMs) };
}
