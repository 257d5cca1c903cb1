import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { LogFilter } from "../api/requests.ts";
import { useScopes } from "../api/scopes.ts";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { formatMoment } from "../format/time.ts";
import type { FilterField } from "./filter.ts";

interface FiltersProps {
  readonly filter: LogFilter;
  readonly onChange: (changes: Partial<Record<FilterField, string>>) => void;
}

/** Filter fields of the request log. */
export function Filters({ filter, onChange }: FiltersProps) {
  const { accountId = "", keyId = "", model = "", outcome = "" } = filter;
  const { models, keys, outcomes, accounts } = useScopes(accountId);
  return (
    <div className="space-y-3">
      <div className={`grid grid-cols-2 gap-x-3 gap-y-3 ${accounts ? "lg:grid-cols-4" : "lg:grid-cols-3"}`}>
        <Choose
          label="Status"
          value={outcome}
          all="All statuses"
          choices={outcomes}
          onChange={(value) => onChange({ outcome: value })}
        />
        <Choose
          label="Model"
          value={model}
          all="All models"
          choices={models}
          onChange={(value) => onChange({ model: value })}
        />
        <Choose
          label="Key"
          value={keyId}
          all="All keys"
          choices={keys}
          onChange={(value) => onChange({ keyId: value })}
        />
        {accounts && (
          <Choose
            label="Account"
            value={accountId}
            all={accounts.all}
            choices={accounts.choices}
            onChange={(value) => onChange({ accountId: value, keyId: "" })}
          />
        )}
      </div>
      {Object.keys(filter).length > 0 && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
          {describeTime(filter)}
          <Button
            look="quiet"
            size="small"
            className="-ml-3"
            onClick={() => onChange({ accountId: "", keyId: "", model: "", outcome: "", sinceMs: "", untilMs: "" })}
          >
            Clear filters
          </Button>
        </div>
      )}
    </div>
  );
}

function describeTime({ sinceMs, untilMs }: LogFilter): string {
  const since = sinceMs === undefined ? "" : formatMoment(timestampFromMs(sinceMs));
  const until = untilMs === undefined ? "" : formatMoment(timestampFromMs(untilMs));
  if (since === "") return until === "" ? "" : `Ended before ${until}.`;
  return until === "" ? `Ended after ${since}.` : `Ended between ${since} and ${until}.`;
}
