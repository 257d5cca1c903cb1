import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AttributedBudgetSchema,
  type AttributionService,
  BudgetHolder,
} from "../../../gen/parley/console/v1/attribution_pb.js";
import {
  type AttributedBudget,
  type AttributedBudgetStore,
  givenBudget,
  setOwnBudget,
} from "../../access/attributed-budgets.ts";
import type { AccessContext } from "../../access/context.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { requireIn } from "../../access/sessions.ts";
import { MAX_NAME_CHARS } from "../../core/attribution.ts";
import { endOfPeriod, periodAt } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";
import type { StopKind } from "../../core/stops.ts";
import { toNumber } from "./account-messages.ts";
import { actorOf, signedInOf } from "./call.ts";
import { actorFor, keyInView } from "./key-service.ts";
import { pageSize } from "./list-page.ts";

/** Ports of the attribution service. */
export interface AttributionServicePorts {
  readonly access: Pick<AccessContext, "clock" | "log">;
  readonly keys: Pick<KeyStore, "find">;
  readonly budgets: AttributedBudgetStore;
}

/** Budgets of the end users and sessions of a key. */
export function createAttributionService({
  access: { clock, log },
  keys,
  budgets,
}: AttributionServicePorts): ServiceImpl<typeof AttributionService> {
  return {
    async listBudgets({ keyId, holder, search, pageToken, limit: asked }, context) {
      const { keyFamilyId, attributionLimits } = await keyInView(keys, { id: keyId, field: "key_id" }, context);
      const kind = readHolder(holder);
      const limit = pageSize(asked);
      const after = readToken(pageToken);
      if (search.length > MAX_NAME_CHARS || search.includes("\0"))
        throw invalidField("search", `must have at most ${MAX_NAME_CHARS} characters, and none that is NUL`);
      const given = givenBudget(attributionLimits, kind);
      if (given === undefined) return {};
      const nowMs = clock.now();
      const period = periodAt(nowMs, given.period);
      const page = await budgets.list({ kind, keyFamilyId, period, search, limit, after });
      const last = page.budgets.at(-1);
      return {
        budgets: page.budgets.map((budget) => toMessage(budget, given.limitMicroUsd)),
        count: BigInt(page.count),
        budgetMicroUsd: BigInt(given.limitMicroUsd),
        period,
        ...(given.period !== "session" && { resetTime: timestampFromMs(endOfPeriod(nowMs, given.period)) }),
        nextPageToken: last === undefined || page.budgets.length < limit ? "" : toToken(last),
      };
    },

    async setBudget({ keyId, holder, name, budgetMicroUsd }, context) {
      const key = await keyInView(keys, { id: keyId, field: "key_id" }, context);
      requireIn(signedInOf(context), "keys.write", key.accountId);
      const budget = await setOwnBudget({ budgets, clock, log }, key, {
        kind: readHolder(holder),
        name,
        limitMicroUsd: toNumber(budgetMicroUsd),
        by: actorFor(context),
        actor: actorOf(context),
      });
      return { budget: toMessage(budget, givenBudget(key.attributionLimits, readHolder(holder))!.limitMicroUsd) };
    },
  };
}

const KINDS: Readonly<Record<number, StopKind>> = {
  [BudgetHolder.END_USER]: "end_user",
  [BudgetHolder.SESSION]: "session",
};

function readHolder(asked: BudgetHolder): StopKind {
  const kind = KINDS[asked];
  if (kind === undefined) throw invalidField("holder", "must be BUDGET_HOLDER_END_USER or BUDGET_HOLDER_SESSION");
  return kind;
}

/** The end of a page as an opaque token, without a name. */
function toToken({ spentMicroUsd, id }: Pick<AttributedBudget, "spentMicroUsd" | "id">): string {
  return Buffer.from(`${spentMicroUsd} ${id}`).toString("base64url");
}

function readToken(token: string): Pick<AttributedBudget, "spentMicroUsd" | "id"> | undefined {
  if (token === "") return undefined;
  const [, spent, id] = /^(\d{1,16}) ([\w-]{1,64})$/.exec(Buffer.from(token, "base64url").toString("latin1")) ?? [];
  if (spent === undefined || id === undefined) throw invalidField("page_token", "is not a valid page token");
  return { spentMicroUsd: Number(spent), id };
}

function toMessage(
  { name = "", spentMicroUsd, heldMicroUsd, limitMicroUsd }: AttributedBudget,
  givenMicroUsd: number,
): MessageInitShape<typeof AttributedBudgetSchema> {
  const budget = limitMicroUsd ?? givenMicroUsd;
  return {
    name,
    spentMicroUsd: BigInt(spentMicroUsd),
    heldMicroUsd: BigInt(heldMicroUsd),
    budgetMicroUsd: BigInt(budget),
    leftMicroUsd: BigInt(Math.max(0, budget - spentMicroUsd - heldMicroUsd)),
    isOwn: limitMicroUsd !== undefined,
  };
}
