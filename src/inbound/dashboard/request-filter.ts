import type { RequestFilter } from "../../../gen/parley/console/v1/request_pb.js";
import type { SignedIn } from "../../access/sessions.ts";
import { invalidField } from "../../core/failure.ts";
import { type LedgerEntry, PROCESS_LOST } from "../../core/ledger.ts";
import type { AttributionFilter, LogQuery } from "../../ledger/ledger-store.ts";
import { FAILURE_TABLE } from "../failure-table.ts";
import { accountInView, readKeyFilter } from "./call.ts";
import { readTime } from "./list-page.ts";

/** A filter of requests within the caller's permissions. */
export type LogFilter = Omit<LogQuery, "limit" | "after">;

const MAX_MODEL_CHARS = 256;
const MAX_NAME_CHARS = 500;

/** Reads a filter. Throws `invalid_request`, and `permission_denied` for requests that the caller may not see. */
export function readFilter(filter: RequestFilter | undefined, signedIn: SignedIn): LogFilter {
  const { accountId = "", keyId = "", model = "", outcome = "", since, until } = filter ?? {};
  if (model.length > MAX_MODEL_CHARS || /\p{Cc}/u.test(model) || !model.isWellFormed())
    throw invalidField("filter.model", "is not a model ID");
  return {
    accountId: accountInView(signedIn, "requests.read", accountId),
    keyId: readKeyFilter(keyId),
    model: model === "" ? undefined : model,
    outcome: outcome === "" ? undefined : readOutcome(outcome),
    sinceMs: since && readTime("filter.since", since),
    untilMs: until && readTime("filter.until", until),
    ...readAttributionFilter(filter),
  };
}

/** Reads the conditions on attribution. Throws `invalid_request`. */
export function readAttributionFilter(
  filter: Pick<RequestFilter, "endUser" | "session" | "agent" | "tag"> | undefined,
): AttributionFilter {
  const { endUser = "", session = "", agent = "", tag = "" } = filter ?? {};
  return {
    endUser: readName("filter.end_user", endUser),
    session: readName("filter.session", session),
    agent: readName("filter.agent", agent),
    tag: readName("filter.tag", tag),
  };
}

/** A text for comparison with a column: PostgreSQL accepts no NUL. Undefined when empty. Throws `invalid_request`. */
export function readName(field: string, text: string): string | undefined {
  if (text === "") return undefined;
  if (text.length <= MAX_NAME_CHARS && !text.includes("\0") && text.isWellFormed()) return text;
  throw invalidField(field, `must have at most ${MAX_NAME_CHARS} characters, and none that is NUL`);
}

function readOutcome(outcome: string): LogQuery["outcome"] {
  if (outcome === "served" || outcome === "failed" || outcome === PROCESS_LOST || Object.hasOwn(FAILURE_TABLE, outcome))
    return outcome as LogQuery["outcome"];
  throw invalidField("filter.outcome", "must be served, failed, process_lost or a failure code");
}

/** Whether an entry matches the filter as in the ledger, except for the time. */
export function isAskedFor(entry: LedgerEntry, filter: LogFilter): boolean {
  const { accountId, keyId, model, outcome, endUser, session, agent, tag } = filter;
  const { attribution } = entry;
  return (
    (endUser === undefined || attribution?.endUser === endUser) &&
    (session === undefined || attribution?.session === session) &&
    (agent === undefined || attribution?.agent === agent) &&
    (tag === undefined || attribution?.tags?.includes(tag) === true) &&
    (accountId === undefined || entry.accountId === accountId) &&
    (keyId === undefined || entry.keyId === keyId) &&
    (model === undefined || entry.requestedModel === model || entry.servedModel === model) &&
    (outcome === undefined || entry.outcome === outcome || (outcome === "failed" && entry.outcome !== "served"))
  );
}
