import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { StopKind as KindMessage, type StopSchema, type StopService } from "../../../gen/parley/console/v1/stop_pb.js";
import type { AccessContext } from "../../access/context.ts";
import { type AccountStop, createStop, listStops, removeStop, type StopStore } from "../../access/stops.ts";
import { readName } from "../../core/attribution-names.ts";
import { invalidField } from "../../core/failure.ts";
import type { StopKind } from "../../core/stops.ts";
import { accountsInView, accountToUse, actorOf, signedInOf } from "./call.ts";

/** Ports of the stop service. */
export interface StopServicePorts {
  readonly access: Pick<AccessContext, "clock" | "log">;
  readonly stops: StopStore;
}

const KINDS: Readonly<Record<StopKind, KindMessage>> = {
  session: KindMessage.SESSION,
  end_user: KindMessage.END_USER,
};

/** Stops of sessions and end users. */
export function createStopService({ access, stops }: StopServicePorts): ServiceImpl<typeof StopService> {
  const { clock, log } = access;
  const ports = { stops, clock, log };
  return {
    async list({ accountId }, context) {
      const found = await listStops(ports, accountsInView(signedInOf(context), "keys.read", accountId));
      return { stops: found.map(toMessage) };
    },

    async create({ accountId: asked, kind, value, duration }, context) {
      const signedIn = signedInOf(context);
      const accountId = accountToUse(signedIn, "keys.write", asked);
      const lengthMs = duration && durationMs(duration);
      const actor = { ...actorOf(context), actorId: signedIn.account.id };
      const made = { accountId, kind: readKind(kind), value: readName("value", value), lengthMs, actor };
      return { stop: toMessage(await createStop(ports, made)) };
    },

    async remove({ accountId: asked, id }, context) {
      const accountId = accountToUse(signedInOf(context), "keys.write", asked);
      await removeStop(ports, { accountId, id, actor: actorOf(context) });
      return {};
    },
  };
}

function readKind(asked: KindMessage): StopKind {
  const found = (Object.keys(KINDS) as StopKind[]).find((kind) => KINDS[kind] === asked);
  if (found === undefined) throw invalidField("kind", "must be STOP_KIND_SESSION or STOP_KIND_END_USER");
  return found;
}

function toMessage(stop: AccountStop): MessageInitShape<typeof StopSchema> {
  const { id, accountId, kind, value, createdAtMs, untilMs, createdBy } = stop;
  return {
    id,
    accountId,
    kind: KINDS[kind],
    value,
    createTime: timestampFromMs(createdAtMs),
    expireTime: timestampFromMs(untilMs),
    createdBy,
  };
}
