import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { FactorService, PasskeySchema } from "../../../gen/parley/console/v1/factor_pb.js";
import type { AccessContext } from "../../access/context.ts";
import type { PasskeyRecord } from "../../access/factors/factor-store.ts";
import { hasOwnFactors, listFactors } from "../../access/factors/own-factors.ts";
import { addPasskey, beginPasskey, removePasskey, requireSite } from "../../access/factors/passkeys.ts";
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes } from "../../access/factors/totp.ts";
import { optionalTime } from "./account-messages.ts";
import { callOf, signedInOf } from "./call.ts";
import type { SiteFinder } from "./passkey-site.ts";

interface FactorServicePorts {
  readonly access: AccessContext;
  readonly siteOf: SiteFinder;
}

/** The own passkeys, authenticator app and recovery codes of who is signed in. */
export function createFactorService({ access, siteOf }: FactorServicePorts): ServiceImpl<typeof FactorService> {
  return {
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
      await removePasskey(access, signedInOf(context), id, callOf(context));
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
  };
}

function toPasskeyMessage({ id, name, createdAtMs, usedAtMs }: PasskeyRecord): MessageInitShape<typeof PasskeySchema> {
  return { id, name, createTime: timestampFromMs(createdAtMs), ...optionalTime("lastUseTime", usedAtMs) };
}
