import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import type { Account } from "../../gen/parley/console/v1/account_pb.js";
import { accountsQuery, eventsQuery } from "../api/accounts.ts";
import { keysQuery } from "../api/keys.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { SelectField } from "../components/field.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import { Administration } from "./administration.tsx";
import { describeDetails } from "./event-words.ts";
import { SecurityEventText, type Names } from "./security-event.tsx";

/** Page of the audit log of accounts, keys and sessions. */
export function Security() {
  return (
    <Administration title="Security" description="Audit log, newest first. Events are kept for 400 days.">
      {() => <Events />}
    </Administration>
  );
}

function Events() {
  const [search, setSearch] = useSearchParams();
  const accountId = search.get("account") ?? "";
  const { data: accounts = [] } = useQuery(accountsQuery);
  const { data: keys = [] } = useQuery(keysQuery);
  const names: Names = {
    accounts: new Map(accounts.map(({ id, name }) => [id, name])),
    keys: new Map(keys.map(({ id, name }) => [id, name])),
  };
  return (
    <>
      <div className="mb-5 max-w-sm">
        <SelectField
          label="Account"
          value={accountId}
          onChange={({ target }) => setSearch(target.value === "" ? {} : { account: target.value }, { replace: true })}
        >
          <option value="">All accounts</option>
          {accountId !== "" && !names.accounts.has(accountId) && <option value={accountId}>{accountId}</option>}
          {accounts.map((account) => (
            <option key={account.id} value={account.id}>
              {describeAccount(account)}
            </option>
          ))}
        </SelectField>
      </div>
      <EventList key={accountId} accountId={accountId} names={names} />
    </>
  );
}

function EventList({ accountId, names }: { readonly accountId: string; readonly names: Names }) {
  const events = useInfiniteQuery(eventsQuery(accountId));
  if (events.isPending) return <Loading what="the events" />;
  if (events.isLoadingError) return <Unavailable error={events.error} onRetry={() => void events.refetch()} />;
  const all = events.data.pages.flatMap((page) => page.events);
  if (all.length === 0) return <Empty title="No events">Events of this account appear here.</Empty>;
  return (
    <>
      <ol aria-label="Events" className="divide-y divide-line rounded-xl border border-line bg-surface">
        {all.map((event) => (
          <li key={event.id} className="px-5 py-3">
            <p className="wrap-anywhere">
              <SecurityEventText event={event} names={names} />
            </p>
            <p className="mt-0.5 flex flex-wrap gap-x-3 text-sm wrap-anywhere text-muted">
              {event.time && <span title={formatMoment(event.time)}>{formatFromNow(event.time)}</span>}
              <span>{event.network === "" ? "Command line" : `From ${event.network}`}</span>
              {describeDetails(event).map((detail) => (
                <bdi key={detail}>{detail}</bdi>
              ))}
            </p>
          </li>
        ))}
      </ol>
      {events.isError && (
        <div className="mt-4">
          <Alert>Could not load more events. Try again.</Alert>
        </div>
      )}
      {events.hasNextPage && (
        <div className="mt-4 text-center">
          <Button look="secondary" busy={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
            {events.isFetchingNextPage ? "Loading …" : "Show more"}
          </Button>
        </div>
      )}
    </>
  );
}

function describeAccount({ name, email }: Account): string {
  return email === "" ? name : `${name}, ${email}`;
}
