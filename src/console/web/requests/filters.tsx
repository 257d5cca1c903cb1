import { useQuery } from "@tanstack/react-query";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { KeyState } from "../../../../gen/parley/console/v1/key_pb.js";
import { accountsQuery } from "../api/accounts.ts";
import { keysQuery } from "../api/keys.ts";
import type { LogFilter } from "../api/requests.ts";
import { isAdministrator, useAccount } from "../api/session.ts";
import { settingsQuery } from "../api/settings.ts";
import { Button } from "../parts/button.tsx";
import { SelectField } from "../parts/field.tsx";
import { formatMoment } from "../text/time.ts";
import type { FilterField } from "./filter.ts";
import { REQUEST_OUTCOMES } from "./outcomes.ts";

interface FiltersProps {
  readonly filter: LogFilter;
  readonly onChange: (changes: Partial<Record<FilterField, string>>) => void;
}

type Choice = readonly [value: string, label: string];

/** Which requests are shown. */
export function Filters({ filter, onChange }: FiltersProps) {
  const isAll = isAdministrator(useAccount());
  const keys = useQuery(keysQuery).data ?? [];
  const accounts = useQuery({ ...accountsQuery, enabled: isAll }).data ?? [];
  const models = useQuery(settingsQuery).data?.models ?? [];
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  const { accountId = "", keyId = "", model = "", outcome = "" } = filter;
  const own = keys.filter((key) => accountId === "" || key.accountId === accountId);
  const keyChoices = own.map((key): Choice => {
    const owner = isAll && accountId === "" ? ` · ${names.get(key.accountId) ?? key.accountId}` : "";
    return [key.id, `${key.name}${owner}${key.state === KeyState.ACTIVE ? "" : " (ended)"}`];
  });
  return (
    <div className="space-y-3">
      <div className={`grid grid-cols-2 gap-x-3 gap-y-3 ${isAll ? "lg:grid-cols-4" : "lg:grid-cols-3"}`}>
        <Choose
          label="Outcome"
          value={outcome}
          all="All"
          choices={[["failed", "All that failed"], ...REQUEST_OUTCOMES]}
          onChange={(value) => onChange({ outcome: value })}
        />
        <Choose
          label="Model"
          value={model}
          all="All models"
          choices={models.map(({ id }) => [id, id])}
          onChange={(value) => onChange({ model: value })}
        />
        <Choose
          label="Key"
          value={keyId}
          all="All keys"
          choices={keyChoices}
          onChange={(value) => onChange({ keyId: value })}
        />
        {isAll && (
          <Choose
            label="Account"
            value={accountId}
            all="All accounts"
            choices={accounts.map(({ id, name, email }) => [id, email === "" ? name : `${name} (${email})`])}
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

interface ChooseProps {
  readonly label: string;
  readonly value: string;
  readonly all: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}

function Choose({ label, value, all, choices, onChange }: ChooseProps) {
  // What a link names is shown, also when it is gone.
  const isKnown = value === "" || choices.some(([choice]) => choice === value);
  return (
    <SelectField label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{all}</option>
      {!isKnown && <option value={value}>{value}</option>}
      {choices.map(([choice, name]) => (
        <option key={choice} value={choice}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}

function describeTime({ sinceMs, untilMs }: LogFilter): string {
  const since = sinceMs === undefined ? "" : formatMoment(timestampFromMs(sinceMs));
  const until = untilMs === undefined ? "" : formatMoment(timestampFromMs(untilMs));
  if (since === "") return until === "" ? "" : `Ended before ${until}.`;
  return until === "" ? `Ended since ${since}.` : `Ended from ${since} to ${until}.`;
}
